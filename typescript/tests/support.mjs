/** What tests share: a registry whose end they decide, and programs that run as a user would run them. */

import { spawnSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

/** A registry as a runner would give one to a test. `end` runs what was registered, the latest first. */
export function registry(extra = {}) {
  const ends = [];
  return {
    ...extra,
    ends,
    after: (fn) => ends.push(fn),
    end() {
      while (ends.length > 0) ends.pop()();
    },
  };
}

/** Runs a function as an isolated test would run, and ends it. */
export function during(body, extra) {
  const own = registry(extra);
  try {
    return body(own);
  } finally {
    own.end();
  }
}

/** Sets variables (or takes them away, where the value is undefined) until the test ends. */
export function variables(t, values) {
  for (const [name, value] of Object.entries(values)) {
    const before = process.env[name];
    put(name, value);
    t.after(() => put(name, before));
  }
}

function put(name, value) {
  if (value === undefined) delete process.env[name];
  else process.env[name] = value;
}

export function isSet(name) {
  return Object.hasOwn(process.env, name);
}

/** Runs a program; the variables by which one `node --test` talks to another are none of its business. */
export function run(program, args, { cwd = PACKAGE, env = {} } = {}) {
  const { NODE_TEST_CONTEXT, NODE_OPTIONS, ...rest } = process.env;
  const done = spawnSync(program, args, { cwd, env: { ...rest, ...env }, encoding: "utf8", timeout: 120_000 });
  return { status: done.status, output: `${done.stdout}${done.stderr}` };
}

export function git(...args) {
  return run("git", args, { cwd: process.cwd() });
}

export function resolved(path) {
  return realpathSync(path);
}
