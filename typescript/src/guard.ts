/**
 * The network guard of an isolation: what the test may reach, and what it was refused.
 *
 * The calls are replaced while some guard is open and the originals are back when none is, in whatever order they end. Where
 * guards lie inside each other, all have to allow: an inner one narrows and never widens.
 */

import { type Action, type NetworkBlocked, refuse, type Trace } from "./blocked.js";
import { isUnix, parseEntry } from "./entry.js";
import { isThisMachine, readHost } from "./host.js";
import { Patches } from "./patches.js";
import { Policy, spellTarget, type Target } from "./policy.js";

/** What a test may reach; the names and meanings are those of the settings of stricttest for pytest. */
export interface SocketStance {
  /** Whether anything may be reached at all: `deny` nothing, `allowlist` what `socketAllowlist` names. Without it there is no guard. */
  sockets?: "deny" | "allowlist";
  /** What may be reached: `host:port`, `*.domain:port`, `[v6]:port`, `10.0.0.0/8:port`; `:*` is every port. A name is allowed at the
   * addresses that it resolves to. */
  socketAllowlist?: readonly string[];
  /** Unix sockets that may be reached, whatever the other stances say: absolute paths, a trailing `/` for all below, `unix:@name`. */
  unixSocketAllowlist?: readonly string[];
  /** Whether this machine may be reached by its loopback addresses and names; by default `deny`. */
  loopback?: "deny" | "allow";
}

/** Guards that are open, outermost first. */
const open: Guard[] = [];
const patches = new Patches({
  judge: (action, target, trace) => {
    const refusing = open.findLast((guard) => !guard.policy.allows(target));
    return refusing && open.at(-1)!.refuse(action, target, trace());
  },
  remember: (name, address) => open.forEach((guard) => guard.policy.remember(name, address)),
});

/** Reads a stance; undefined where there is none. Throws a `TypeError` that names the value and what is accepted. */
export function readStance(stance: SocketStance): Policy | undefined {
  const { sockets, socketAllowlist, unixSocketAllowlist = [], loopback } = stance;
  if (sockets === undefined) return refuseIdle(stance);
  choose("sockets", sockets, ["deny", "allowlist"]);
  choose("loopback", loopback ?? "deny", ["deny", "allow"]);
  if (sockets === "deny" && socketAllowlist !== undefined && socketAllowlist.length > 0) {
    throw new TypeError(
      `stricttest: socketAllowlist names ${socketAllowlist.join(", ")}, but sockets is "deny", which reaches nothing; ` +
        `write sockets: "allowlist" or empty the list`,
    );
  }
  if (sockets === "allowlist" && socketAllowlist === undefined) {
    throw new TypeError(`stricttest: sockets is "allowlist", but there is no list; add socketAllowlist: ["host:port"]`);
  }
  for (const entry of socketAllowlist ?? []) checkHostEntry(entry);
  for (const entry of unixSocketAllowlist) checkUnixEntry(entry);
  return new Policy({
    loopback: loopback === "allow",
    entries: [...(socketAllowlist ?? []), ...unixSocketAllowlist],
  });
}

/** What one test may reach, and what it was refused. */
export class Guard {
  /** By target and place: a loop that tries again and again is told once. */
  readonly #refusals = new Map<string, { refusal: NetworkBlocked; spelled: string }>();
  readonly #expected = new Set<string>();

  private constructor(readonly policy: Policy) {}

  /** Guards from now on. */
  static open(policy: Policy): Guard {
    const guard = new Guard(policy);
    if (open.length === 0) patches.apply();
    open.push(guard);
    return guard;
  }

  refuse(action: Action, target: Target, trace: Trace): NetworkBlocked {
    const spelled = spellTarget(target);
    const refusal = refuse(action, target, remedy(target), trace, () => this.#expected.add(spelled));
    this.#refusals.set(`${action} ${spelled}, at ${refusal.site}`, { refusal, spelled });
    return refusal;
  }

  /** Guards no longer. Throws an `AggregateError` of the refusals that the test did not ask for. */
  end(): void {
    open.splice(open.indexOf(this), 1);
    if (open.length === 0) patches.restore();
    const left = [...this.#refusals].filter(([, { spelled }]) => !this.#expected.has(spelled));
    if (left.length === 0) return;
    throw new AggregateError(
      left.map(([, { refusal }]) => refusal),
      "stricttest: the test tried to reach what it may not, and was refused:\n" +
        left.map(([line]) => `  ${line}\n`).join("") +
        "A test that expects a refusal says so by the class, as in assert.rejects(…, NetworkBlocked).",
    );
  }
}

/** What would allow a target, to be pasted into the options of `isolate`. */
function remedy(target: Target): string {
  const tail = "in the options of isolate() would allow it";
  if ("unix" in target) return `unixSocketAllowlist: [${JSON.stringify(spellTarget(target))}] ${tail}`;
  const entry = target.port === null ? `${spellTarget(target)}:*` : spellTarget(target);
  const list = `sockets: "allowlist", socketAllowlist: [${JSON.stringify(entry)}]`;
  return isThisMachine(readHost(target.host)) ? `loopback: "allow" or ${list} ${tail}` : `${list} ${tail}`;
}

/** A stance that would have no effect is a slip. */
function refuseIdle(stance: SocketStance): undefined {
  for (const name of ["socketAllowlist", "unixSocketAllowlist", "loopback"] as const) {
    if (stance[name] === undefined) continue;
    throw new TypeError(
      `stricttest: ${name} has no effect without sockets; add sockets: "deny" or sockets: "allowlist"`,
    );
  }
  return undefined;
}

function choose(name: string, value: string, choices: readonly string[]): void {
  if (choices.includes(value)) return;
  const accepted = choices.map((choice) => JSON.stringify(choice)).join(" or ");
  throw new TypeError(`stricttest: ${name} must be ${accepted}, not ${JSON.stringify(value)}`);
}

function checkHostEntry(text: string): void {
  const entry = parseEntry(text);
  const shown = JSON.stringify(text);
  if (isUnix(entry)) {
    throw new TypeError(
      `stricttest: ${shown} is a unix socket and can never match here; move it to unixSocketAllowlist`,
    );
  }
  if (entry.port === undefined && !text.trimEnd().endsWith(":*")) {
    throw new TypeError(`stricttest: ${shown} in socketAllowlist has no port; write host:port, or :* for every port`);
  }
}

function checkUnixEntry(text: string): void {
  if (isUnix(parseEntry(text))) return;
  throw new TypeError(
    `stricttest: ${JSON.stringify(text)} is no unix socket and can never match here; move it to socketAllowlist`,
  );
}
