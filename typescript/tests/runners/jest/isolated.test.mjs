import { jest } from "@jest/globals";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { isolate } from "stricttest";

const { HOME } = process.env;
let end, last;

afterEach(() => end());
beforeEach(() => isolate({ after: (fn) => (end = fn) }));

for (const name of ["one", "two"]) {
  test(name, () => {
    expect(process.env.HOME).not.toBe(HOME);
    expect(process.env.HOME).not.toBe(last);
    last = process.env.HOME;
    expect(existsSync(last)).toBe(true);
  });
}

// jest gives a test file a copy of process.env; these two go by the real one.
test("children and os.homedir are isolated too", () => {
  expect(homedir()).toBe(process.env.HOME);
  expect(execFileSync("sh", ["-c", "echo $HOME"], { encoding: "utf8" }).trim()).toBe(process.env.HOME);
});

test("with a clock that stands still", () => {
  jest.useFakeTimers();
  expect(existsSync(process.env.HOME)).toBe(true);
});
