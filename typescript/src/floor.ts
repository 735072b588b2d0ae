/** The floor's helpers: each binds one part to a test, {@link isolate} binds all. */

import * as os from "node:os";
import { isListed, isGitState, isTaken } from "./credentials.js";
import { GIT_CONFIG_FILES, type Home, homes } from "./directory.js";
import { Guard, readStance, type SocketStance } from "./guard.js";
import { type Policy } from "./policy.js";
import { type KnownVar, preserved } from "./preserve.js";
import { type CleanupRegistry, Scope } from "./scope.js";
import { GIT_PINS, TRANSPORT_PINS } from "./tables.gen.js";

const XDG_HOMES = [
  ["XDG_CACHE_HOME", ".cache"],
  ["XDG_CONFIG_HOME", ".config"],
  ["XDG_DATA_HOME", ".local/share"],
  ["XDG_STATE_HOME", ".local/state"],
] as const;

/** Taken before a test can put a fake into its place. */
const { homedir } = os;
const homeOf = new WeakMap<Scope, Home>();

/** What {@link isolate} keeps, and whether it guards the network. There is no option that switches a part of the floor off. */
export interface IsolateOptions extends SocketStance {
  /** Toolchain caches that stay where they are while HOME moves. */
  preserve?: readonly KnownVar[];
  /** Variables that stay although a pattern takes them; a name of `CREDENTIAL_VARS` cannot stay. */
  keep?: readonly string[];
  /** The registry of an isolation that is meant to be around this one, such as a whole suite's. */
  within?: CleanupRegistry;
}

/** Binds the whole floor to a test: preserved caches, then {@link throwawayHome}, {@link isolateGitConfig},
 * {@link lockdownTransports} and {@link stripCredentials}. When the test ends, everything comes back; variables of
 * `process.env` that the test itself changed come back too, and a diagnostic names them where the runner shows some.
 *
 *     test("something", (t) => {
 *       isolate(t);
 *     });
 *
 * Throws an `IsolationOverlapError` if another test's isolation is open that this one does not lie in, and a `TypeError` for an
 * option that names something unknown. It registers exactly one function with the registry.
 *
 * With `sockets` the network is guarded too: connections, sends and look-ups that the stance does not allow are refused with a
 * `NetworkBlocked`, and fail the test when it ends, whatever became of the error.
 *
 *     isolate(t, { sockets: "allowlist", socketAllowlist: ["localhost:5432"] });
 */
export function isolate(registry: CleanupRegistry, options: IsolateOptions = {}): void {
  const { preserve = [], keep = [], within } = options;
  const listed = keep.find(isListed);
  if (listed !== undefined) {
    throw new TypeError(
      `stricttest: cannot keep ${JSON.stringify(listed)}: it is in CREDENTIAL_VARS; set a fake value after isolate()`,
    );
  }
  // Names are checked before anything changes.
  preserved(preserve, () => undefined);
  const policy = readStance(options);
  const scope = Scope.of(registry, within);
  // Looking through the environment costs more than changing it, so it is done once.
  const names = scope.environment.names();
  pin(
    scope,
    preserved(preserve, (name) => scope.environment.get(name)),
  );
  moveHome(scope, true);
  isolateGit(scope, names);
  pin(scope, TRANSPORT_PINS);
  strip(scope, names, keep);
  scope.environment.promise(names);
  if (policy) guard(scope, policy);
}

/** Gives the test a home of its own and returns its path. HOME and USERPROFILE name it, XDG_CONFIG_HOME, XDG_DATA_HOME,
 * XDG_CACHE_HOME and XDG_STATE_HOME name directories in it, and XDG_RUNTIME_DIR, where agents and keyrings keep their sockets, is
 * gone. It is removed when the test ends. A second call for the same test returns the same directory.
 *
 * Throws where the runner gives the test a copy of the environment that cannot be left, as worker threads have. */
export function throwawayHome(registry: CleanupRegistry): string {
  return moveHome(Scope.of(registry), false).path;
}

/** Cuts git off from the developer: GIT_CONFIG_GLOBAL and GIT_CONFIG_SYSTEM name files in the throwaway home that hold a throwaway
 * identity and refuse remote transports, author and committer are pinned to that identity, git asks no questions, and variables
 * that would lead it to another repository (GIT_DIR, GIT_INDEX_FILE, GIT_CONFIG_COUNT, …) are gone. core.hooksPath stays alone:
 * hooks of a repository that the test makes shall run. */
export function isolateGitConfig(registry: CleanupRegistry): void {
  const scope = Scope.of(registry);
  moveHome(scope, true);
  isolateGit(scope, scope.environment.names());
}

/** Leaves git the local transport alone: GIT_ALLOW_PROTOCOL is `file`, and GIT_SSH_COMMAND and GIT_PROXY_COMMAND are pinned to
 * `/bin/false`, so that a test that lifts the first still gets no connection. */
export function lockdownTransports(registry: CleanupRegistry): void {
  pin(Scope.of(registry), TRANSPORT_PINS);
}

/** Removes every variable that carries a credential, leads to one or to an agent that holds some: those of `CREDENTIAL_VARS`, and
 * what looks like one. They are truly absent. A test that needs one sets a fake value afterwards. */
export function stripCredentials(registry: CleanupRegistry): void {
  const scope = Scope.of(registry);
  strip(scope, scope.environment.names(), []);
}

/** Pins toolchain caches so that they stay where they are while HOME moves. Call it before anything moves HOME; {@link isolate}
 * does. Throws a `TypeError` for a name outside of `KNOWN_VARS`. */
export function preserveVars(registry: CleanupRegistry, names: readonly KnownVar[]): void {
  preserved(names, () => undefined);
  const scope = Scope.of(registry);
  pin(
    scope,
    preserved(names, (name) => scope.environment.get(name)),
  );
}

/** Moves the test to another working directory, and back when it ends; PWD follows. A move back that fails (the directory is gone)
 * fails the test: every later one would run in the wrong place. */
export function chdir(registry: CleanupRegistry, dir: string): void {
  const from = process.cwd();
  const scope = Scope.of(registry);
  process.chdir(dir);
  scope.onEnd(() => {
    try {
      process.chdir(from);
    } catch (cause) {
      throw new Error(`stricttest: restoring the working directory ${from}: ${String(cause)}`, { cause });
    }
  });
  scope.environment.set("PWD", process.cwd());
}

function moveHome(scope: Scope, hasGitConfig: boolean): Home {
  const known = homeOf.get(scope);
  if (known) return known;
  const home = homes.take(hasGitConfig);
  homeOf.set(scope, home);
  scope.onEnd(() => homes.giveBack(home));
  const { environment } = scope;
  environment.set("HOME", home.path);
  environment.set("USERPROFILE", home.path);
  for (const [name, folder] of XDG_HOMES) environment.set(name, `${home.path}/${folder}`);
  environment.unset("XDG_RUNTIME_DIR");
  if (homedir() !== home.path) {
    throw new Error(
      `stricttest: this runner gives the test a copy of the environment: HOME is ${home.path}, os.homedir() still says ` +
        `${homedir()}. Run the tests in processes and not in worker threads (vitest: pool: "forks").`,
    );
  }
  return home;
}

function isolateGit(scope: Scope, names: readonly string[]): void {
  const home = homeOf.get(scope)!;
  home.writeGitConfig();
  for (const name of names) if (isGitState(name)) scope.environment.unset(name);
  for (const [name, file] of Object.entries(GIT_CONFIG_FILES)) scope.environment.set(name, `${home.path}/${file}`);
  pin(scope, GIT_PINS);
}

function guard(scope: Scope, policy: Policy): void {
  const own = Guard.open(policy);
  scope.onEnd(() => own.end());
}

function strip(scope: Scope, names: readonly string[], kept: readonly string[]): void {
  for (const name of names) if (isTaken(name, kept)) scope.environment.unset(name);
}

function pin(scope: Scope, pins: readonly (readonly [string, string])[]): void {
  for (const [name, value] of pins) scope.environment.set(name, value);
}
