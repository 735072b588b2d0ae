import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { isolate } from "stricttest";

const { HOME } = process.env;
let last;

test("in the test", () => {
  isolate({ after: onTestFinished });
  last = process.env.HOME;
  expect(last).not.toBe(HOME);
  expect(homedir()).toBe(last);
  expect(execFileSync("sh", ["-c", "echo $HOME"], { encoding: "utf8" }).trim()).toBe(last);
});

test("afterwards", () => {
  expect(process.env.HOME).toBe(HOME);
  expect(existsSync(last)).toBe(false);
});

describe("in a hook", () => {
  beforeEach(() => isolate({ after: onTestFinished }));
  test("one", () => expect(process.env.HOME).not.toBe(HOME));
  test("two", () => expect(process.env.HOME).not.toBe(HOME));
});
