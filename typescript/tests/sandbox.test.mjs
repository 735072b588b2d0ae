import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  DEFAULT_RUNNER_COMMAND,
  DEFAULT_SANDBOX_ENV,
  insideSandbox,
  requireSandbox,
  SandboxRequiredError,
} from "stricttest";
import { run, variables } from "./support.mjs";

test("the defaults are those of the Python plugin", () => {
  assert.deepEqual([DEFAULT_SANDBOX_ENV, DEFAULT_RUNNER_COMMAND], ["STRICTTEST_SANDBOX", "scripts/test.sh"]);
});

test("insideSandbox is exactly 1", (t) => {
  for (const [value, want] of [
    ["1", true],
    ["0", false],
    ["true", false],
    ["", false],
    [undefined, false],
  ]) {
    variables(t, { STRICTTEST_SANDBOX: value });
    assert.equal(insideSandbox(), want, value);
  }
  variables(t, { SHOP_SANDBOX: "1" });
  assert.ok(insideSandbox("SHOP_SANDBOX"));
});

test("policy always refuses every bare run", (t) => {
  variables(t, { STRICTTEST_SANDBOX: undefined });
  assert.throws(
    () => requireSandbox({ policy: "always" }),
    (error) => {
      assert.ok(error instanceof SandboxRequiredError && error.name === "SandboxRequiredError");
      assert.match(
        error.message,
        /Refusing to run this suite outside the sandbox.\nRun it by scripts\/test.sh.*STRICTTEST_SANDBOX=1/,
      );
      return true;
    },
  );
  variables(t, { STRICTTEST_SANDBOX: "1" });
  requireSandbox({ policy: "always" });
});

test("policy threshold refuses a run that is larger", (t) => {
  variables(t, { STRICTTEST_SANDBOX: undefined });
  requireSandbox({ policy: "threshold", threshold: 50, count: 50 });
  requireSandbox({ policy: "threshold", threshold: 50, count: 0 });
  const large = { policy: "threshold", threshold: 50, count: 51 };
  assert.throws(() => requireSandbox(large), /Refusing to run 51 tests bare \(> 50\)/);
  variables(t, { STRICTTEST_SANDBOX: "1" });
  requireSandbox(large);
});

test("variable and command may be others", (t) => {
  variables(t, { STRICTTEST_SANDBOX: "1", MY_SANDBOX: undefined });
  const own = { policy: "always", sandboxEnv: "MY_SANDBOX", runnerCommand: "make sandbox" };
  assert.throws(() => requireSandbox(own), /make sandbox, which sets MY_SANDBOX=1/);
  variables(t, { MY_SANDBOX: "1" });
  requireSandbox(own);
});

test("options that make no sense are an error inside the sandbox too", (t) => {
  variables(t, { STRICTTEST_SANDBOX: "1" });
  for (const threshold of [0, -1, 1.5, NaN, "5", undefined]) {
    const wrong = { policy: "threshold", threshold, count: 1 };
    assert.throws(() => requireSandbox(wrong), { name: "TypeError", message: /threshold must be an integer >= 1/ });
  }
  for (const count of [-1, 2.5, undefined]) {
    assert.throws(
      () => requireSandbox({ policy: "threshold", threshold: 5, count }),
      /count must be a non-negative integer/,
    );
  }
  for (const wrong of [{ policy: "sometimes" }, {}, undefined]) {
    assert.throws(() => requireSandbox(wrong), /needs an explicit policy/);
  }
});

// The reason why requireSandbox is called and does not hook itself in.
test("a module that --import names is loaded in the process of each file, never in the one that owns the run", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "imports-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = (name, text) => writeFileSync(join(folder, name), text);
  file(
    "setup.mjs",
    `import { appendFileSync } from "node:fs";
     appendFileSync(new URL("loads.txt", import.meta.url), (process.env.NODE_TEST_CONTEXT ?? "parent") + "\\n");`,
  );
  for (const name of ["a", "b"]) file(`${name}.test.mjs`, 'import { test } from "node:test"; test("x", () => {});');
  assert.equal(run(process.execPath, ["--import", "./setup.mjs", "--test"], { cwd: folder }).status, 0);
  const loads = readFileSync(join(folder, "loads.txt"), "utf8").trim().split("\n");
  assert.equal(loads.length, 2);
  for (const load of loads) assert.match(load, /^child/);
});
