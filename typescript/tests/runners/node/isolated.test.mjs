import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, test } from "node:test";
import { isolate } from "stricttest";

const { HOME } = process.env;

function isFirstVisit() {
  const card = join(homedir(), ".zoo", "visited.json");
  const isFirst = !existsSync(card);
  mkdirSync(join(homedir(), ".zoo"), { recursive: true });
  writeFileSync(card, "{}\n");
  return isFirst;
}

describe("in a hook", () => {
  beforeEach((t) => isolate(t));
  test("a first visit", () => assert.ok(isFirstVisit()));
  test("another first visit", () => assert.ok(isFirstVisit()));
  test("a subtest is isolated too", async (t) => {
    const outer = process.env.HOME;
    await t.test("inside", () => assert.notEqual(process.env.HOME, outer));
    assert.equal(process.env.HOME, outer);
  });
});

test("in the test", (t) => {
  isolate(t);
  assert.ok(isFirstVisit());
});

test("afterwards", () => assert.equal(process.env.HOME, HOME));
