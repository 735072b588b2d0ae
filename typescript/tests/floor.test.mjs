import assert from "node:assert/strict";
import { existsSync, lstatSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  chdir,
  CREDENTIAL_VARS,
  IDENTITY_EMAIL,
  IDENTITY_NAME,
  isolate,
  isolateGitConfig,
  lockdownTransports,
  stripCredentials,
  throwawayHome,
} from "stricttest";
import { during, git, isSet, registry, resolved, run, variables } from "./support.mjs";

const XDG = {
  XDG_CONFIG_HOME: ".config",
  XDG_DATA_HOME: ".local/share",
  XDG_CACHE_HOME: ".cache",
  XDG_STATE_HOME: ".local/state",
};

test("isolate binds the whole floor and gives everything back", (t) => {
  variables(t, {
    HOME: "/dev/home",
    USERPROFILE: undefined,
    XDG_CONFIG_HOME: "/dev/config",
    XDG_RUNTIME_DIR: "/run/user/1000",
    GIT_CONFIG_GLOBAL: "/dev/gitconfig",
    GIT_DIR: "/dev/.git",
    GIT_ALLOW_PROTOCOL: "",
    GH_TOKEN: "real",
    SHOP_API_KEY: "real",
  });
  const before = { ...process.env };
  during((own) => {
    isolate(own);
    const { HOME } = process.env;
    assert.equal(throwawayHome(own), HOME);
    assert.notEqual(HOME, "/dev/home");
    assert.equal(process.env.GIT_CONFIG_GLOBAL, `${HOME}/gitconfig-global`);
    assert.equal(process.env.GIT_ALLOW_PROTOCOL, "file");
    assert.equal(own.ends.length, 1, "one function is registered, whatever the runner does with more");
    for (const name of ["GH_TOKEN", "SHOP_API_KEY", "GIT_DIR", "XDG_RUNTIME_DIR"]) assert.ok(!isSet(name), name);
  });
  assert.deepEqual({ ...process.env }, before);
});

test("throwawayHome moves HOME and the XDG directories, for Node and for children too", () => {
  const home = during((own) => {
    const path = throwawayHome(own);
    assert.equal(throwawayHome(own), path, "a second call returns the same");
    assert.deepEqual([process.env.HOME, process.env.USERPROFILE, homedir()], [path, path, path]);
    for (const [name, folder] of Object.entries(XDG)) {
      assert.equal(process.env[name], join(path, folder));
      assert.ok(statSync(process.env[name]).isDirectory());
    }
    assert.equal(run("sh", ["-c", "echo $HOME"]).output.trim(), path);
    assert.deepEqual(readdirSync(path).sort(), [".cache", ".config", ".local"]);
    assert.equal(lstatSync(path).mode & 0o777, 0o700);
    return path;
  });
  assert.ok(!existsSync(home), "the home is removed");
});

test("each test has a home of its own", () => {
  assert.notEqual(during(throwawayHome), during(throwawayHome));
});

test("isolateGitConfig gives git files, an identity and no questions", (t) => {
  variables(t, { GIT_AUTHOR_NAME: "Real Developer", GIT_TERMINAL_PROMPT: undefined });
  during((own) => {
    isolateGitConfig(own);
    const home = throwawayHome(own);
    assert.equal(process.env.GIT_CONFIG_GLOBAL, join(home, "gitconfig-global"));
    assert.equal(process.env.GIT_CONFIG_SYSTEM, join(home, "gitconfig-system"));
    for (const part of ["AUTHOR", "COMMITTER"]) {
      assert.equal(process.env[`GIT_${part}_NAME`], IDENTITY_NAME);
      assert.equal(process.env[`GIT_${part}_EMAIL`], IDENTITY_EMAIL);
    }
    assert.equal(process.env.GIT_TERMINAL_PROMPT, "0");
  });
  assert.equal(process.env.GIT_AUTHOR_NAME, "Real Developer");
  assert.ok(!isSet("GIT_TERMINAL_PROMPT"));
});

test("a home that was there before gets git's files too, once", () => {
  during((own) => {
    const home = throwawayHome(own);
    isolateGitConfig(own);
    isolateGitConfig(own);
    assert.match(readFileSync(join(home, "gitconfig-system"), "utf8"), /defaultBranch = main/);
  });
});

test("git reads the configuration that the Python floor has", () => {
  during((own) => {
    isolateGitConfig(own);
    for (const file of ["--global", "--system"]) {
      const said = git("config", file, "--list").output;
      for (const line of [
        "user.name=stricttest",
        "init.defaultbranch=main",
        "protocol.ssh.allow=never",
        "maintenance.auto=false",
      ]) {
        assert.ok(said.includes(line), `${file}: ${line}`);
      }
      assert.doesNotMatch(said, /hookspath/i);
    }
  });
});

test("a commit is made by the throwaway identity, whatever a hook passed on", (t) => {
  const developers = mkdtempSync(join(tmpdir(), "developers-"));
  t.after(() => rmSync(developers, { recursive: true }));
  run("git", ["init", "-q", developers]);
  variables(t, {
    GIT_DIR: join(developers, ".git"),
    GIT_INDEX_FILE: join(developers, ".git/index"),
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "user.name",
    GIT_CONFIG_VALUE_0: "Real Developer",
    GIT_AUTHOR_EMAIL: "developer@example.com",
  });
  during((own) => {
    isolate(own);
    chdir(own, throwawayHome(own));
    assert.equal(git("init", "-q").status, 0);
    assert.equal(git("commit", "-q", "--allow-empty", "-m", "junk from a test").status, 0);
    assert.equal(git("log", "--format=%an <%ae>").output.trim(), `${IDENTITY_NAME} <${IDENTITY_EMAIL}>`);
    assert.notEqual(git("-C", developers, "log").status, 0, "the developer's repository has a commit");
  });
  assert.equal(process.env.GIT_CONFIG_VALUE_0, "Real Developer");
});

test("every variable that git itself calls local is taken away", (t) => {
  const names = run("git", ["rev-parse", "--local-env-vars"]).output.trim().split("\n");
  assert.ok(names.includes("GIT_DIR"));
  variables(t, Object.fromEntries(names.map((name) => [name, ""])));
  during((own) => {
    isolateGitConfig(own);
    assert.deepEqual(names.filter(isSet), []);
  });
});

test("lockdownTransports pins protocol and programs", (t) => {
  variables(t, { GIT_SSH_COMMAND: "ssh -i key", GIT_PROXY_COMMAND: undefined });
  during((own) => {
    lockdownTransports(own);
    const { GIT_ALLOW_PROTOCOL, GIT_SSH_COMMAND, GIT_PROXY_COMMAND } = process.env;
    assert.deepEqual([GIT_ALLOW_PROTOCOL, GIT_SSH_COMMAND, GIT_PROXY_COMMAND], ["file", "/bin/false", "/bin/false"]);
  });
  assert.equal(process.env.GIT_SSH_COMMAND, "ssh -i key");
  assert.ok(!isSet("GIT_PROXY_COMMAND"));
});

test("git refuses every remote transport, and the second lock holds where a test lifts the first", () => {
  during((own) => {
    isolate(own);
    for (const address of ["ssh://example.invalid/x.git", "https://example.invalid/x.git", "git://example.invalid/x"]) {
      const { status, output } = git("ls-remote", address);
      assert.notEqual(status, 0);
      assert.match(output, /not allowed/);
    }
    process.env.GIT_ALLOW_PROTOCOL = "ssh:file";
    const { status, output } = git("ls-remote", "git@example.invalid:x.git");
    assert.notEqual(status, 0);
    assert.doesNotMatch(output, /ssh:/, "a real ssh ran");
  });
});

test("stripCredentials takes every name away and gives it back", (t) => {
  variables(t, Object.fromEntries(CREDENTIAL_VARS.map((name) => [name, `real ${name}`])));
  variables(t, {
    SHOP_TOKEN: "real",
    shop_client_secret: "real",
    https_proxy: "real",
    SHOP_COLOUR: "red",
    NPM_TOKEN: "",
  });
  during((own) => {
    stripCredentials(own);
    assert.deepEqual([...CREDENTIAL_VARS, "SHOP_TOKEN", "shop_client_secret", "https_proxy"].filter(isSet), []);
    assert.equal(process.env.SHOP_COLOUR, "red");
  });
  assert.equal(process.env.GITHUB_TOKEN, "real GITHUB_TOKEN");
  assert.equal(process.env.NPM_TOKEN, "", "an empty variable comes back empty");
});

test("CREDENTIAL_VARS is sorted, names each variable once and holds what was promised", () => {
  const promised =
    "SSH_AUTH_SOCK GIT_ASKPASS GITHUB_TOKEN GH_TOKEN GITHUB_API_TOKEN NPM_TOKEN NODE_AUTH_TOKEN PYPI_TOKEN TWINE_PASSWORD " +
    "TWINE_USERNAME CARGO_REGISTRY_TOKEN AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN CLOUDFLARE_API_TOKEN " +
    "CF_PAGES_API_TOKEN ANTHROPIC_API_KEY OPENAI_API_KEY";
  assert.deepEqual([...new Set(CREDENTIAL_VARS)].sort(), [...CREDENTIAL_VARS]);
  assert.deepEqual(
    promised.split(" ").filter((name) => !CREDENTIAL_VARS.includes(name)),
    [],
  );
});

test("keep lets a variable stay that only a pattern takes", (t) => {
  variables(t, { SHOP_PUBLIC_KEY: "no secret", SHOP_API_KEY: "real", GITHUB_TOKEN: "real" });
  during((own) => {
    isolate(own, { keep: ["SHOP_PUBLIC_KEY"] });
    assert.equal(process.env.SHOP_PUBLIC_KEY, "no secret");
    assert.ok(!isSet("SHOP_API_KEY"));
  });
  during((own) => (isolate(own), assert.ok(!isSet("SHOP_PUBLIC_KEY"), "it stays for the test that said so")));
  const own = registry();
  assert.throws(() => isolate(own, { keep: ["github_token"] }), /cannot keep "github_token": it is in CREDENTIAL_VARS/);
  assert.equal(process.env.GITHUB_TOKEN, "real");
  assert.equal(own.ends.length, 0);
});

test("chdir moves the process and PWD, and back", (t) => {
  const before = [process.cwd(), process.env.PWD];
  const folder = mkdtempSync(join(tmpdir(), "chdir-"));
  t.after(() => rmSync(folder, { recursive: true }));
  during((own) => {
    chdir(own, folder);
    assert.equal(process.cwd(), resolved(folder));
    assert.equal(process.env.PWD, process.cwd());
    chdir(own, "/");
    assert.equal(process.env.PWD, "/");
  });
  assert.deepEqual([process.cwd(), process.env.PWD], before);
});

test("chdir to nowhere throws and moves nothing", () => {
  const before = [process.cwd(), process.env.PWD];
  during((own) => assert.throws(() => chdir(own, "/does/not/exist"), { code: "ENOENT" }));
  assert.deepEqual([process.cwd(), process.env.PWD], before);
});

test("chdir that cannot go back fails the test, and the environment comes back all the same", (t) => {
  const real = process.cwd();
  t.after(() => process.chdir(real));
  const { HOME } = process.env;
  const gone = mkdtempSync(join(tmpdir(), "gone-"));
  process.chdir(gone);
  const own = registry();
  isolate(own);
  chdir(own, "/");
  rmSync(gone, { recursive: true });
  assert.throws(() => own.end(), /restoring the working directory .*gone-/);
  assert.equal(process.env.HOME, HOME);
});

test("variables that a test leaves are restored, and named where the runner shows it", (t) => {
  variables(t, { SHOP_THEME: undefined, SHOP_SIZE: "small", SHOP_COLOUR: "red" });
  const said = [];
  during(
    (own) => {
      isolate(own);
      process.env.SHOP_THEME = "dark";
      process.env.SHOP_SIZE = "large";
      delete process.env.SHOP_COLOUR;
      process.env.GITHUB_TOKEN = "fake";
    },
    { diagnostic: (text) => said.push(text) },
  );
  assert.deepEqual([isSet("SHOP_THEME"), process.env.SHOP_SIZE, process.env.SHOP_COLOUR], [false, "small", "red"]);
  assert.match(said.join(), /SHOP_COLOUR, SHOP_SIZE, SHOP_THEME$/);
});
