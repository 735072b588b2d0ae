import { isolate } from "stricttest";

let secondIsDone;
const second = new Promise((resolve) => (secondIsDone = resolve));

test.concurrent("starts first, ends last", async () => {
  let end;
  isolate({ after: (fn) => (end = fn) });
  await second;
  end();
});

test.concurrent("starts last, ends first", async () => {
  let end = () => {};
  try {
    isolate({ after: (fn) => (end = fn) });
  } finally {
    end();
    secondIsDone();
  }
});
