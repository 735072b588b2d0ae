import { describe, test } from "node:test";
import { isolate } from "stricttest";

let secondIsDone;
const second = new Promise((resolve) => (secondIsDone = resolve));

describe("at the same time", { concurrency: 2 }, () => {
  test("starts first, ends last", async (t) => {
    isolate(t);
    await second;
  });
  test("starts last, ends first", async (t) => {
    t.after(() => setImmediate(secondIsDone));
    isolate(t);
  });
});
