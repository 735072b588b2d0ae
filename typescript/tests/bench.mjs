/** What an isolation costs: `npm run bench`. The first one makes a home, later ones find one that waits. */

import { isolate } from "stricttest";

const ROUNDS = 500;
const starts = [];
const ends = [];
for (let round = 0; round < ROUNDS; round += 1) {
  let end;
  const begin = process.hrtime.bigint();
  isolate({ after: (fn) => (end = fn) });
  const isolated = process.hrtime.bigint();
  end();
  starts.push(Number(isolated - begin) / 1000);
  ends.push(Number(process.hrtime.bigint() - isolated) / 1000);
}

function summary(figures) {
  const first = figures[0];
  const sorted = figures.toSorted((left, right) => left - right);
  const at = (share) => `${sorted[Math.floor(share * ROUNDS)].toFixed(0)} µs`;
  return `median ${at(0.5)}, 9 of 10 below ${at(0.9)}, the first ${first.toFixed(0)} µs`;
}

console.log(`set-up  ${summary(starts)}`);
console.log(`end     ${summary(ends)}`);
