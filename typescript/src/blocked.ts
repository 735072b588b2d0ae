/** What a refused call gives to the code that made it. */

import { fileURLToPath } from "node:url";
import { spellTarget, type Target } from "./policy.js";

/** What was tried: `connect` and `send` reach a host, `look up` asks for one. */
export type Action = "connect to" | "send to" | "look up";

/** Frames that are read for the call site: below `fetch` lie some thirty of Node's own. */
const FRAME_COUNT_MAX = 100;

/** The stack above a call. */
export interface Trace {
  stack?: string;
}

/** Who wants to hear that a test asked for a refusal by its class. */
const listeners = new WeakMap<NetworkBlocked, (refusal: NetworkBlocked) => void>();

/** A connection, a send or a look-up was refused. It fails the test when its isolation ends, whatever became of the error. A test
 * that expects a refusal says so by the class, with `instanceof` or what uses it; refusals of that target are then its own affair.
 *
 *     await assert.rejects(dns.promises.lookup("db.invalid"), NetworkBlocked);
 *     await assert.rejects(fetch("http://db.invalid/"), ({ cause }) => cause instanceof NetworkBlocked);
 */
export class NetworkBlocked extends Error {
  override readonly name = "NetworkBlocked";
  /** What Node itself would say: that of a connection that nobody accepts, or of a name that nobody knows. */
  readonly code: "ECONNREFUSED" | "ENOTFOUND";
  /** The host, address or path. */
  readonly subject: string;
  readonly port: number | null;
  /** The `file:line in function` that asked. */
  readonly site: string;

  /** @internal */
  constructor(action: Action, target: Target, remedy: string, trace: Trace) {
    super(`stricttest refused to ${action} ${spellTarget(target)}; ${remedy}`);
    this.code = action === "look up" ? "ENOTFOUND" : "ECONNREFUSED";
    this.subject = "unix" in target ? target.unix : target.host;
    this.port = "unix" in target ? null : target.port;
    const [, ...frames] = String(trace.stack).split("\n");
    this.stack = [`${this.name}: ${this.message}`, ...frames].join("\n");
    this.site = siteIn(frames);
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    const isOne = Function.prototype[Symbol.hasInstance].call(this, value);
    if (isOne) listeners.get(value as NetworkBlocked)?.(value as NetworkBlocked);
    return isOne;
  }
}

/** What is thrown in truth: `util.inspect` asks the very class of what it prints, and printing is no expectation. */
class Refusal extends NetworkBlocked {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return Function.prototype[Symbol.hasInstance].call(this, value);
  }
}
Object.defineProperty(Refusal, "name", { value: "NetworkBlocked" });

/** A refusal, whose `onExpected` runs when a test asks for it by its class. */
export function refuse(
  action: Action,
  target: Target,
  remedy: string,
  trace: Trace,
  onExpected: (refusal: NetworkBlocked) => void,
): NetworkBlocked {
  const refusal = new Refusal(action, target, remedy, trace);
  listeners.set(refusal, onExpected);
  return refusal;
}

/** Frames of functions with a name and without. */
const NAMED = /^ +at (?:async )?(.*) \((.+):(\d+):\d+\)$/;
const BARE = /^ +at (?:async )?()(.+):(\d+):\d+$/;

/** The stack above a function that runs. */
export function traceAbove(caller: Function): Trace {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAME_COUNT_MAX;
  const trace: Trace = {};
  Error.captureStackTrace(trace, caller);
  Error.stackTraceLimit = limit;
  return trace;
}

/** The first place in a stack that is not Node's. */
function siteIn(frames: readonly string[]): string {
  for (const frame of frames) {
    const [, name, file = "node:", line] = NAMED.exec(frame) ?? BARE.exec(frame) ?? [];
    if (file.startsWith("node:")) continue;
    return `${file.startsWith("file:") ? fileURLToPath(file) : file}:${line}${name ? ` in ${name}` : ""}`;
  }
  return "a place that the stack does not show";
}
