import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { beforeEach, describe, test } from "node:test";
import { isolate, throwawayHome } from "stricttest";

// What a developer's shell may hold.
process.env.NOTES_TOKEN = "a real one";
const program = new URL("../notes.py", import.meta.url).pathname;

function notes(...words) {
  const { status, stdout, stderr } = spawnSync("python3", [program, ...words], { encoding: "utf8" });
  return { status, said: `${stdout}${stderr}`.trim() };
}

describe("notes", () => {
  beforeEach((t) => isolate(t));

  // Each run sees an empty home, so the first note is the first one for ever.
  test("the first note is number one", () => {
    assert.deepEqual(notes("add", "buy plums"), { status: 0, said: "1" });
    assert.deepEqual(notes("list"), { status: 0, said: "buy plums" });
  });

  test("notes are by nobody we know", (t) => {
    notes("add", "buy plums");
    const folder = join(throwawayHome(t), ".local/share/notes");
    const { stdout } = spawnSync("git", ["-C", folder, "log", "--format=%an <%ae>"], { encoding: "utf8" });
    assert.equal(stdout.trim(), "stricttest <stricttest@example.invalid>");
  });

  // A developer's token is not there, and git would not push with it.
  test("nothing is published", () => {
    notes("add", "buy plums");
    const { status, said } = notes("publish");
    assert.notEqual(status, 0);
    assert.match(said, /not allowed/);
    assert.doesNotMatch(said, /a real one/);
  });
});
