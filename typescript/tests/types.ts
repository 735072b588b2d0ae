/** What the compiler must accept and refuse; it is never run. */

import { test, type TestContext } from "node:test";
import {
  type CleanupRegistry,
  isolate,
  type IsolateOptions,
  type KnownVar,
  requireSandbox,
  type SocketStance,
  throwawayHome,
} from "stricttest";

test("a context of node:test is a registry", (t: TestContext) => {
  const home: string = throwawayHome(t);
  isolate(t, { preserve: ["goCache"], keep: [home] });
});

const known: KnownVar = "npmCache";
const registry: CleanupRegistry = { after: (fn: () => void | Promise<void>) => void fn };
const options: IsolateOptions = { preserve: [known] as const, within: registry };
isolate(registry, options);
const stance: SocketStance = { sockets: "allowlist", socketAllowlist: ["localhost:*"], loopback: "deny" };
isolate(registry, { ...stance, unixSocketAllowlist: ["/run/x.sock"] });

// @ts-expect-error: the set is closed
isolate(registry, { preserve: ["OPENAI_API_KEY"] });
// @ts-expect-error: nothing switches a part off
isolate(registry, { git: false });
// @ts-expect-error: a stance is one of two
isolate(registry, { sockets: "off" });
// @ts-expect-error: a suite says where it stands
requireSandbox({});
// @ts-expect-error: a threshold needs a count
requireSandbox({ policy: "threshold", threshold: 1 });
requireSandbox({ policy: "always", runnerCommand: "make test" });
