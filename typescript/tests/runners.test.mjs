/** The package as it is packed, installed beside suites of other runners, each run as a user would. */

import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import { PACKAGE, run } from "./support.mjs";

const PROJECT = join(PACKAGE, "build", "project");
const OVERLAP = /started its isolation while another test's isolation is open/;

before(() => {
  rmSync(PROJECT, { recursive: true, force: true });
  cpSync(join(PACKAGE, "tests", "runners"), PROJECT, { recursive: true });
  const installed = join(PROJECT, "node_modules", "stricttest");
  mkdirSync(installed, { recursive: true });
  const packed = run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", PROJECT]);
  assert.equal(packed.status, 0, packed.output);
  const archive = join(PROJECT, packed.output.trim());
  assert.equal(run("tar", ["-xzf", archive, "--strip-components=1", "-C", installed]).status, 0);
  writeFileSync(join(PROJECT, "package.json"), JSON.stringify({ name: "project", private: true, type: "module" }));
  assert.deepEqual(readdirSync(installed).sort(), ["README.md", "dist", "package.json"]);
});

const tool = (name) => join(PACKAGE, "node_modules", name);

const RUNNERS = {
  node: { args: ["--test"], files: ".test.mjs" },
  vitest: { args: [tool("vitest/vitest.mjs"), "run"], files: ".spec.mjs" },
  jest: {
    args: [
      "--experimental-vm-modules",
      tool("jest/bin/jest.js"),
      "--testRegex=\\.test\\.mjs$",
      "--no-cache",
      "--rootDir=.",
    ],
    files: ".test.mjs",
  },
  mocha: { args: [tool("mocha/bin/mocha.js")], files: ".spec.mjs" },
};

for (const [name, { args, files }] of Object.entries(RUNNERS)) {
  const start = (file) => {
    const temporary = mkdtempSync(join(tmpdir(), "runner-"));
    const options = { cwd: join(PROJECT, name), env: { TMPDIR: temporary } };
    const done = run(process.execPath, [...args, `${file}${files}`], options);
    const left = readdirSync(temporary).filter((entry) => entry.startsWith("stricttest-"));
    rmSync(temporary, { recursive: true });
    assert.deepEqual(left, [], "homes are left behind");
    return done;
  };

  test(`${name}: each test is isolated`, () => {
    const { status, output } = start("isolated");
    assert.equal(status, 0, output);
    assert.doesNotMatch(output, /Warning: (?!.*(VM Modules|ExperimentalWarning))/, output);
  });

  test(`${name}: an overlap is found, also when it ends in nested order`, () => {
    const { status, output } = start("overlap");
    assert.notEqual(status, 0, output);
    assert.match(output, OVERLAP);
  });

  test(`${name}: a refusal that is expected passes its test`, () => {
    const { status, output } = start("guarded");
    assert.equal(status, 0, output);
  });

  test(`${name}: a refusal that is swallowed fails its test`, () => {
    const { status, output } = start("swallowed");
    assert.notEqual(status, 0, output);
    assert.match(output, /connect to 203\.0\.113\.1:80, at .*swallowed\.\w+\.mjs:\d+/);
  });
}

test("vitest: worker threads are refused", () => {
  const args = [tool("vitest/vitest.mjs"), "run", "--pool=threads", "threads.spec.mjs"];
  const { status, output } = run(process.execPath, args, { cwd: join(PROJECT, "vitest") });
  assert.equal(status, 0, output);
});
