import { expect, onTestFinished, test } from "vitest";
import { isolate } from "stricttest";

const { HOME } = process.env;

// A worker thread has a copy of the environment, which libc never sees: the floor refuses rather than half hold.
test("in a worker thread", () => {
  expect(() => isolate({ after: onTestFinished })).toThrow(/os\.homedir\(\) still says .* pool: "forks"/);
});

test("afterwards", () => expect(process.env.HOME).toBe(HOME));
