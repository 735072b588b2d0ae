/** Runs the vectors that all languages share, and prints how many cases of each: a test of the project compares the languages. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { isGitState, isTaken } from "../dist/credentials.js";
import { preserved } from "../dist/preserve.js";
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
