import assert from "node:assert/strict";
import { test } from "node:test";
import { isolate, KNOWN_VARS, preserveVars } from "stricttest";
import { during, isSet, registry, variables } from "./support.mjs";

const NAMES = {
  goPath: "GOPATH",
  goModCache: "GOMODCACHE",
  goCache: "GOCACHE",
  pythonUserBase: "PYTHONUSERBASE",
  cargoHome: "CARGO_HOME",
  rustupHome: "RUSTUP_HOME",
  npmCache: "npm_config_cache",
  uvCache: "UV_CACHE_DIR",
  pipCache: "PIP_CACHE_DIR",
  gradleUserHome: "GRADLE_USER_HOME",
};

test("KNOWN_VARS is the closed set, each anchored at the home or at GOPATH", () => {
  const found = Object.fromEntries(Object.entries(KNOWN_VARS).map(([name, { env }]) => [name, env]));
  assert.deepEqual(found, NAMES);
  for (const cache of Object.values(KNOWN_VARS)) assert.match(cache.default, /^\{(home|gopath)\}\//);
});

test("preserve keeps what is set and fills in what is not", (t) => {
  variables(t, { HOME: "/home/dev", GOCACHE: "/cache/go", GOPATH: undefined, GOMODCACHE: undefined, CARGO_HOME: "" });
  during((own) => {
    isolate(own, { preserve: ["goCache", "goModCache", "goCache"] });
    assert.notEqual(process.env.HOME, "/home/dev");
    assert.equal(process.env.GOCACHE, "/cache/go");
    assert.equal(process.env.GOMODCACHE, "/home/dev/go/pkg/mod");
    assert.deepEqual([isSet("GOPATH"), process.env.CARGO_HOME], [false, ""]);
  });
  assert.ok(!isSet("GOMODCACHE"));
});

test("an empty GOPATH counts as absent, a list by its first", (t) => {
  variables(t, { HOME: "/home/dev", GOPATH: "", GOMODCACHE: undefined });
  during((own) => {
    preserveVars(own, ["goModCache"]);
    assert.equal(process.env.GOMODCACHE, "/home/dev/go/pkg/mod");
  });
  process.env.GOPATH = "/one:/two";
  during((own) => {
    preserveVars(own, ["goPath", "goModCache"]);
    assert.deepEqual([process.env.GOPATH, process.env.GOMODCACHE], ["/one:/two", "/one/pkg/mod"]);
  });
});

test("preserveVars before isolate holds, and none changes nothing", (t) => {
  variables(t, { HOME: "/home/dev", CARGO_HOME: undefined });
  during((own) => {
    preserveVars(own, ["cargoHome"]);
    isolate(own);
    assert.equal(process.env.CARGO_HOME, "/home/dev/.cargo");
  });
  const before = { ...process.env };
  during((own) => {
    preserveVars(own, []);
    assert.deepEqual({ ...process.env }, before);
  });
});

test("a name outside of the set is refused before anything changes", () => {
  const before = { ...process.env };
  for (const name of ["OPENAI_API_KEY", "__proto__", "toString", "go_path"]) {
    const own = registry();
    assert.throws(() => isolate(own, { preserve: [name] }), /only the closed enum is accepted: goPath, /);
    assert.throws(() => preserveVars(own, [name]), /only the closed enum/);
    assert.equal(own.ends.length, 0);
  }
  assert.deepEqual({ ...process.env }, before);
});
