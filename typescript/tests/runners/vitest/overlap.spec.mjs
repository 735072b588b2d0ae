import { describe, test } from "vitest";
import { isolate } from "stricttest";

let secondIsDone;
const second = new Promise((resolve) => (secondIsDone = resolve));

describe.concurrent("at the same time", () => {
  test("starts first, ends last", async ({ onTestFinished }) => {
    isolate({ after: onTestFinished });
    await second;
  });
  test("starts last, ends first", async ({ onTestFinished }) => {
    onTestFinished(() => void setImmediate(secondIsDone));
    isolate({ after: onTestFinished });
  });
});
