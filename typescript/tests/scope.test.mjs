import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, test } from "node:test";
import { isolate, IsolationOverlapError, stripCredentials, throwawayHome } from "stricttest";
import { registry, variables } from "./support.mjs";

const { HOME } = process.env;
const overlap = /isolation while another test's isolation is open/;

test("nested isolations end in order", () => {
  const [outer, inner] = [registry(), registry()];
  isolate(outer);
  const outerHome = process.env.HOME;
  isolate(inner);
  assert.notEqual(process.env.HOME, outerHome);
  inner.end();
  assert.equal(process.env.HOME, outerHome);
  assert.ok(existsSync(outerHome));
  outer.end();
  assert.equal(process.env.HOME, HOME);
});

test("an outer isolation that ends first is reported, and all comes back with the last", () => {
  const before = { ...process.env };
  const [outer, inner] = [registry(), registry()];
  isolate(outer);
  isolate(inner);
  const innerHome = process.env.HOME;
  assert.throws(() => outer.end(), overlap);
  assert.equal(process.env.HOME, innerHome, "the other test keeps what it has");
  inner.end();
  assert.deepEqual({ ...process.env }, before);
});

test("what only the outer isolation changed comes back when it ends, in whatever order", (t) => {
  variables(t, { SHOP_TOKEN: "real" });
  const [outer, inner] = [registry(), registry()];
  stripCredentials(outer);
  throwawayHome(inner);
  assert.throws(() => outer.end(), overlap);
  assert.equal(process.env.SHOP_TOKEN, "real");
  inner.end();
  assert.equal(process.env.HOME, HOME);
});

/** Two tests that run at the same time, as a runner starts them: each in an asynchronous context of its own. */
async function concurrently(first, second) {
  await Promise.all([Promise.resolve().then(first), Promise.resolve().then(second)]);
}

test("an overlap is found when it begins, so also one that ends in nested order", async () => {
  const [a, b] = [registry(), registry()];
  let secondDone;
  const isSecondDone = new Promise((resolve) => (secondDone = resolve));
  await concurrently(
    async () => {
      isolate(a);
      await isSecondDone;
      a.end();
    },
    async () => {
      assert.throws(() => isolate(b), { name: "IsolationOverlapError", message: overlap });
      b.end();
      secondDone();
    },
  );
  assert.equal(process.env.HOME, HOME);
  assert.equal(b.ends.length, 0, "nothing was bound to the test that was refused");
});

test("two subtests of one isolated test overlap as well", async () => {
  const parent = registry();
  isolate(parent);
  const parentHome = process.env.HOME;
  const [a, b] = [registry(), registry()];
  await concurrently(
    () => isolate(a),
    () => assert.throws(() => isolate(b), IsolationOverlapError),
  );
  a.end();
  assert.equal(process.env.HOME, parentHome);
  parent.end();
});

test("what an ended test started may isolate itself", async () => {
  const first = registry();
  isolate(first);
  const later = Promise.resolve().then(async () => {
    await Promise.resolve();
    const second = registry();
    isolate(second);
    second.end();
  });
  first.end();
  await later;
  assert.equal(process.env.HOME, HOME);
});

test("full names tell nested tests from others, whatever context they come from", async () => {
  const [suite, inside, beside] = ["a", "a > b", "ab > c"].map((fullName) => registry({ fullName }));
  await concurrently(
    () => isolate(suite),
    () => isolate(inside),
  );
  inside.end();
  assert.throws(() => isolate(beside), /test "ab > c" started its isolation .*\(test "a"\)/);
  suite.end();
});

test("within names the isolation that is meant to be around", async () => {
  const [suite, inner, other] = [registry(), registry(), registry()];
  await concurrently(
    () => isolate(suite),
    () => isolate(inner, { within: suite }),
  );
  assert.throws(() => isolate(other, { within: suite }), IsolationOverlapError, "it is not the innermost");
  inner.end();
  suite.end();
  assert.equal(process.env.HOME, HOME);
});

test("a helper that comes too late, or without a registry, is an error", () => {
  const own = registry();
  isolate(own);
  own.end();
  assert.throws(() => isolate(own), /already released/);
  for (const wrong of [undefined, null, {}, { after: true }]) {
    assert.throws(() => isolate(wrong), /the first argument must have a function `after`/);
  }
});

describe("with node:test's own contexts", () => {
  test("no adapter is needed", (t) => {
    isolate(t);
    assert.equal(throwawayHome(t), process.env.HOME);
    assert.notEqual(process.env.HOME, HOME);
  });

  test("the isolation of the test before is gone", () => {
    assert.equal(process.env.HOME, HOME);
  });

  test("a subtest isolates inside its parent", async (t) => {
    isolate(t);
    const outer = process.env.HOME;
    await t.test("subtest", (t) => {
      isolate(t);
      assert.notEqual(process.env.HOME, outer);
    });
    assert.equal(process.env.HOME, outer);
  });
});
