import assert from "node:assert/strict";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isolate, throwawayHome } from "stricttest";
import { during, PACKAGE, registry, run } from "./support.mjs";

/** Everything in a home: kinds, modes and texts. */
function listing(folder, below = "") {
  return readdirSync(folder)
    .sort()
    .flatMap((name) => {
      const stat = lstatSync(join(folder, name));
      const line = `${below}${name} ${stat.mode.toString(8)}`;
      if (stat.isDirectory()) return [line, ...listing(join(folder, name), `${below}${name}/`)];
      return [`${line} ${stat.isFile() ? readFileSync(join(folder, name), "utf8") : ""}`];
    });
}

const TOUCHES = {
  nothing: () => {},
  file: (home) => writeFileSync(join(home, ".profile"), ""),
  "deep file": (home) => writeFileSync(join(home, ".local/state/x"), ""),
  folder: (home) => mkdirSync(join(home, ".cache/x")),
  removed: (home) => rmdirSync(join(home, ".config")),
  mode: (home) => chmodSync(home, 0o755),
  link: (home) => {
    rmdirSync(join(home, ".cache"));
    symlinkSync("/", join(home, ".cache"));
  },
  "git setting": (home) => appendFileSync(join(home, "gitconfig-global"), "[a]\n\tb = c\n"),
  "git removed": (home) => unlinkSync(join(home, "gitconfig-system")),
  "write-protected": (home) => {
    mkdirSync(join(home, "go/pkg/mod/m"), { recursive: true });
    writeFileSync(join(home, "go/pkg/mod/m/x.go"), "");
    chmodSync(join(home, "go/pkg/mod/m"), 0o555);
  },
};

// The first visit of a program leaves a file in the home. No later test may find it, whatever it is.
for (const [name, touch] of Object.entries(TOUCHES)) {
  test(`nothing of a test reaches the next home: ${name}`, () => {
    const pristine = during((own) => (isolate(own), listing(process.env.HOME)));
    for (const turn of ["first", "second"]) {
      const home = during((own) => {
        isolate(own);
        assert.deepEqual(listing(process.env.HOME), pristine, turn);
        touch(process.env.HOME);
        return process.env.HOME;
      });
      assert.ok(!existsSync(home), "the home is removed");
    }
  });
}

test("a home without git's files is not one with them, also when both wait", () => {
  during(isolate);
  during((own) => assert.deepEqual(readdirSync(throwawayHome(own)).sort(), [".cache", ".config", ".local"]));
  during((own) => (isolate(own), assert.ok(existsSync(join(process.env.HOME, "gitconfig-global")))));
});

test("homes of nested tests are apart", () => {
  const all = Array.from({ length: 12 }, () => registry());
  const paths = all.map((own) => throwawayHome(own));
  assert.equal(new Set(paths).size, all.length);
  all.reverse().forEach((own) => own.end());
  assert.deepEqual(paths.filter(existsSync), []);
});

const ENDINGS = {
  "by itself": "",
  "at once": "process.exit(0);",
  "by an error": "throw new Error('x');",
  "with fake timers": "",
  "in the middle of a test": "isolate({ after: () => {} });",
};

for (const [name, ending] of Object.entries(ENDINGS)) {
  test(`a process that ends ${name} leaves nothing behind`, (t) => {
    const temporary = mkdtempSync(join(tmpdir(), "leaves-"));
    t.after(() => rmSync(temporary, { recursive: true }));
    const program = `
      import { isolate } from "stricttest";
      globalThis.setImmediate = () => ({});
      let end;
      isolate({ after: (fn) => (end = fn) });
      end();
      isolate({ after: (fn) => (end = fn) });
      end();
      ${ending}`;
    run(process.execPath, ["--input-type=module", "--eval", program], { cwd: PACKAGE, env: { TMPDIR: temporary } });
    assert.deepEqual(readdirSync(temporary), []);
  });
}

test("waiting homes go soon while the process goes on", async () => {
  const folder = join(during(throwawayHome), "..");
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  for (let count = 0; count < 100 && existsSync(folder); count += 1) await turn();
  assert.ok(!existsSync(folder));
});

test("a home that nobody touched is the next test's, under another name", () => {
  const look = (own) => (isolate(own), [process.env.HOME, statSync(process.env.HOME).ino]);
  const [[firstPath, first], [secondPath, second]] = [during(look), during(look)];
  assert.equal(first, second);
  assert.notEqual(firstPath, secondPath);
});
