/**
 * stricttest keeps a test from everything on a developer's machine that is not the test's: the home directory, credentials, git's
 * configuration and identity, remote repositories.
 *
 *     import { test } from "node:test";
 *     import { isolate } from "stricttest";
 *
 *     test("something", (t) => {
 *       isolate(t);
 *     });
 *
 * With `sockets` in its options `isolate` refuses connections, sends and look-ups of Node's own modules as well. What it leaves to
 * others: native code, worker threads, and child processes. Node has no place where connects could be refused for good; the sandbox
 * runner closes the network for the whole process, and `requireSandbox` refuses a run outside of it.
 *
 * @packageDocumentation
 */

export { NetworkBlocked } from "./blocked.js";
export {
  chdir,
  isolate,
  isolateGitConfig,
  type IsolateOptions,
  lockdownTransports,
  preserveVars,
  stripCredentials,
  throwawayHome,
} from "./floor.js";
export { type SocketStance } from "./guard.js";
export { type KnownVar } from "./preserve.js";
export {
  insideSandbox,
  requireSandbox,
  type RequireSandboxOptions,
  type SandboxPolicy,
  SandboxRequiredError,
} from "./sandbox.js";
export { type CleanupRegistry, IsolationOverlapError } from "./scope.js";
export {
  CREDENTIAL_VARS,
  DEFAULT_RUNNER_COMMAND,
  DEFAULT_SANDBOX_ENV,
  IDENTITY_EMAIL,
  IDENTITY_NAME,
  KNOWN_VARS,
} from "./tables.gen.js";
