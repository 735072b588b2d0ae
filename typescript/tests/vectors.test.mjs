/** Runs the vectors that all languages share, and prints how many cases of each: a test of the project compares the languages. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { isGitState, isTaken } from "../dist/credentials.js";
import { formatEntry, parseEntry } from "../dist/entry.js";
import { Policy } from "../dist/policy.js";
import { preserved } from "../dist/preserve.js";
import { SERVICES } from "../dist/service.js";
import { GIT_PINS, TRANSPORT_PINS } from "../dist/tables.gen.js";

function vectors(t, behaviour, isRun = () => true) {
  const path = new URL(`../../spec/vectors/${behaviour}.json`, import.meta.url);
  if (!existsSync(path)) {
    t.skip(`spec/vectors/${behaviour}.json is not there: packages do not ship vectors`);
    return [];
  }
  const cases = JSON.parse(readFileSync(path, "utf8")).cases.filter(isRun);
  console.log(`vectors ${behaviour}: ${cases.length} cases`);
  return cases;
}

test("credentials", (t) => {
  for (const { id, input, want } of vectors(t, "credentials")) {
    assert.equal(isTaken(input.name, input.keep ?? []) ? "removed" : "stays", want, id);
  }
});

// Python's floor is one directory for a session and has another layout; what does not depend on it holds here too.
test("environment", (t) => {
  const isShared = ({ want }) => !JSON.stringify(want).includes("{root}");
  for (const { id, input, want } of vectors(t, "environment", isShared)) {
    const got = planned(input);
    for (const [name, value] of Object.entries(want)) assert.equal(got.get(name) ?? null, value, `${id}: ${name}`);
  }
});

/** What the floor makes of an environment, but for the home. */
function planned({ variables, preserve, keep }) {
  const left = Object.entries(variables).filter(([name]) => !isTaken(name, keep) && !isGitState(name));
  const camel = preserve.map((name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase()));
  return new Map([...left, ...preserved(camel, (name) => variables[name]), ...GIT_PINS, ...TRANSPORT_PINS]);
}

test("policy entries", (t) => {
  for (const { id, input, want, error } of vectors(t, "policy-entries")) {
    if (want === undefined) {
      const names = (thrown) => thrown instanceof TypeError && thrown.message.includes(error);
      assert.throws(() => parseEntry(input), names, id);
    } else {
      assert.equal(formatEntry(parseEntry(input)), want, id);
    }
  }
});

// Node opens no sockets of other families.
test("policy", (t) => {
  for (const { id, input, want } of vectors(t, "policy", ({ input }) => !("family" in input.target))) {
    const policy = new Policy(input);
    for (const [name, addresses] of Object.entries(input.resolved ?? {})) {
      for (const address of addresses) policy.remember(name, address);
    }
    const { name, address, unix, port } = input.target;
    const target = unix === undefined ? { host: name ?? address, port } : { unix };
    assert.equal(policy.allows(target) ? "allowed" : "refused", want, id);
  }
});

test("services are those of the other languages", (t) => {
  const table = new URL("../../crates/policy/src/service.rs", import.meta.url);
  if (!existsSync(table)) return t.skip("crates/policy is not there: packages do not ship it");
  const rows = readFileSync(table, "utf8").matchAll(/^ {4}\("([\w-]+)", (\d+)\),$/gm);
  assert.deepEqual(
    [...SERVICES],
    [...rows].map(([, name, port]) => [name, Number(port)]),
  );
});
