import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { isolate } from "stricttest";

const { HOME } = process.env;

describe("in a hook", () => {
  let end, last;
  afterEach(() => end());
  beforeEach(() => isolate({ after: (fn) => (end = fn) }));

  it("one", () => {
    last = process.env.HOME;
    assert.notEqual(last, HOME);
  });
  it("two", async () => {
    await null;
    assert.notEqual(process.env.HOME, HOME);
    assert.ok(!existsSync(last));
  });
});

it("afterwards", () => assert.equal(process.env.HOME, HOME));
