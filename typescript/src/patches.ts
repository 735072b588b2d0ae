/**
 * The calls by which Node reaches the network, each replaced by one that asks first.
 *
 * `net.connect`, http, https, http2, tls, `fetch` and `WebSocket` all end in `net.Socket.prototype.connect`; beside it there are
 * look-ups and datagrams. A replaced call that somebody kept beyond the end behaves like the original.
 */

import dgram from "node:dgram";
import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";
import { type Action, type NetworkBlocked, type Trace, traceAbove } from "./blocked.js";
import { realProcess } from "./environ.js";
import type { Target } from "./policy.js";

/** Who decides. */
export interface Judge {
  /** The refusal of a target, if it is refused; `trace` says who asks. */
  judge(action: Action, target: Target, trace: () => Trace): NetworkBlocked | undefined;
  /** Hears of each address that a name led to. */
  remember(name: string, address: string): void;
}

/** Taken before a test's clock can put a fake into its place. */
const { nextTick } = realProcess;

type Call = (this: unknown, ...args: unknown[]) => unknown;
type Callback = (error: Error | null, ...results: unknown[]) => void;
type Lookup = (name: string, options: object, done: Callback) => void;
type ConnectOptions = { host?: string; port?: number | string; path?: string; lookup?: Lookup };

/** What asks a name server, and what asks it for the name of an address. */
const QUESTIONS = [
  ...["lookup", "lookupService", "resolve", "reverse"],
  ...["4", "6", "Any", "Caa", "Cname", "Mx", "Naptr", "Ns", "Ptr", "Soa", "Srv", "Tlsa", "Txt"].map(
    (kind) => `resolve${kind}`,
  ),
];
/** A name that nobody can have: a refused connect gets no further than its look-up. */
const NOWHERE = { host: "refused.invalid", port: 1, path: undefined };

/** All of the replaced calls, together. */
export class Patches {
  readonly #judge: Judge;
  readonly #undo: (() => void)[] = [];
  /** What each replacement stands for. */
  readonly #originals = new WeakMap<Call, Call>();
  #lookup: unknown;

  constructor(judge: Judge) {
    this.#judge = judge;
  }

  apply(): void {
    this.#replace(net.Socket.prototype, "connect", (original) => this.#connect(original));
    this.#replace(dgram.Socket.prototype, "send", (original) => this.#datagram(original, "send to", sendTarget));
    this.#replace(dgram.Socket.prototype, "connect", (original) => this.#datagram(original, "connect to", peerTarget));
    for (const owner of [dns, dns.Resolver.prototype]) {
      this.#replaceAll(owner, (original, name) => this.#question(original, name));
    }
    for (const owner of [dns.promises, dns.promises.Resolver.prototype]) {
      this.#replaceAll(owner, (original, name) => this.#promise(original, name));
    }
    this.#lookup = dns.lookup;
    syncBuiltinESMExports();
  }

  /** Each property as it was. */
  restore(): void {
    for (const undo of this.#undo.splice(0).reverse()) undo();
    syncBuiltinESMExports();
  }

  #replaceAll(owner: object, wrap: (original: Call, name: string) => Call): void {
    for (const name of QUESTIONS) {
      if (Object.hasOwn(owner, name)) this.#replace(owner, name, (original) => wrap(original, name));
    }
  }

  #replace(owner: object, name: string, wrap: (original: Call) => Call): void {
    const before = Object.getOwnPropertyDescriptor(owner, name)!;
    // A mock that outlived its isolation puts back what it found: the replacement of then.
    const original = this.#originals.get(before.value as Call) ?? (before.value as Call);
    const call = wrap(original);
    this.#originals.set(call, original);
    // Its name and its length, and the mark by which util.promisify knows what it returns.
    Object.defineProperties(call, Object.getOwnPropertyDescriptors(original));
    Object.defineProperty(owner, name, { ...before, value: call });
    this.#undo.push(() => Object.defineProperty(owner, name, { ...before, value: original }));
  }

  #connect(original: Call): Call {
    const patches = this;
    return function connect(this: unknown, ...args) {
      const [options, done] = readConnect(args);
      const target = connectTarget(options);
      if (target === undefined) return original.apply(this, args);
      const lookup = "host" in target && net.isIP(target.host) === 0 ? patches.#lookupOf(options) : undefined;
      const overriding = lookup
        ? { lookup: patches.#judged(lookup, (target as { port: number }).port, traceAbove(connect)) }
        : patches.#refused(target, () => traceAbove(connect));
      if (overriding === undefined) return original.apply(this, args);
      return original.call(this, derived(options, overriding), done);
    };
  }

  /** The look-up of the test's own making, if there is one: where it leads is judged then, and not the name. */
  #lookupOf({ lookup }: ConnectOptions): Lookup | undefined {
    return lookup ?? (dns.lookup === this.#lookup ? undefined : (dns.lookup as unknown as Lookup));
  }

  #judged(lookup: Lookup, port: number, trace: Trace): Lookup {
    return (name, options, done) =>
      lookup(name, options, (error, ...results) => {
        const addresses = error ? [] : addressesOf(results[0]);
        for (const host of addresses) error ??= this.#judge.judge("connect to", { host, port }, () => trace) ?? null;
        done(error, ...results);
      });
  }

  /** Options of a connect that fails as a connect whose look-up fails does, so that every state and event is Node's own. */
  #refused(target: Target, trace: () => Trace): object | undefined {
    const refusal = this.#judge.judge("connect to", target, trace);
    const lookup: Lookup = (_name, _options, done) => nextTick(done, refusal);
    return refusal && { ...NOWHERE, lookup };
  }

  #datagram(original: Call, action: Action, targetOf: (args: unknown[]) => Target | undefined): Call {
    const { judge } = this.#judge;
    return function datagram(this: unknown, ...args) {
      const socket = this as dgram.Socket;
      // What is connected was judged when it was.
      const target = isConnected(socket) ? undefined : targetOf(args);
      const refusal = target && judge(action, target, () => traceAbove(datagram));
      if (refusal === undefined) return original.apply(this, args);
      const done = args.at(-1);
      nextTick(() => (typeof done === "function" ? done(refusal) : socket.emit("error", refusal)));
      return undefined;
    };
  }

  #question(original: Call, name: string): Call {
    const { judge, remember } = this.#judge;
    return function question(this: unknown, ...args) {
      const done = args.at(-1);
      const target = questionTarget(name, args);
      if (target === undefined || typeof done !== "function") return original.apply(this, args);
      const refusal = judge("look up", target, () => traceAbove(question));
      if (refusal !== undefined) {
        nextTick(done as Callback, refusal);
        return {};
      }
      const remembering: Callback = (error, ...results) => {
        for (const address of addressesOf(results[0])) remember(target.host, address);
        (done as Callback)(error, ...results);
      };
      return original.call(this, ...args.slice(0, -1), remembering);
    };
  }

  #promise(original: Call, name: string): Call {
    const { judge, remember } = this.#judge;
    return function question(this: unknown, ...args) {
      const target = questionTarget(name, args);
      if (target === undefined) return original.apply(this, args);
      const refusal = judge("look up", target, () => traceAbove(question));
      if (refusal !== undefined) return Promise.reject(refusal);
      return (original.apply(this, args) as Promise<unknown>).then((result) => {
        for (const address of addressesOf(result)) remember(target.host, address);
        return result;
      });
    };
  }
}

/** The arguments of a connect, as Node reads them: normalised ones, options, a path, or port and host; then a callback. */
function readConnect(args: unknown[]): [options: ConnectOptions, done: unknown] {
  const [first, second] = args;
  if (Array.isArray(first)) return [(first[0] ?? {}) as ConnectOptions, first[1]];
  const done = typeof args.at(-1) === "function" ? args.at(-1) : undefined;
  if (typeof first === "object" && first !== null) return [first as ConnectOptions, done];
  if (typeof first === "string" && !(Number(first) >= 0)) return [{ path: first }, done];
  return [{ port: first as number, ...(typeof second === "string" && { host: second }) }, done];
}

/** None where Node itself will throw. */
function connectTarget({ path, host, port }: ConnectOptions): Target | undefined {
  if (path) return { unix: /^[/\0]/.test(path) ? path : `${process.cwd()}/${path}` };
  return isPort(port) ? { host: host || "localhost", port: Number(port) } : undefined;
}

/** `send(message, [offset, length,] port, address, done)`: short where neither `port` nor `address` of the long form is there. */
function sendTarget([, offset, length, port, address]: unknown[]): Target | undefined {
  const isLong = Boolean(address) || (Boolean(port) && typeof port !== "function");
  return isLong ? peerTarget([port, address]) : peerTarget([offset, length]);
}

/** Without an address it is this machine. */
function peerTarget([port, address]: unknown[]): Target | undefined {
  return isPort(port) ? { host: typeof address === "string" ? address : "", port: Number(port) } : undefined;
}

/** None where nothing is asked: an address is its own answer, and for what is no text Node itself throws. */
function questionTarget(name: string, [host, port]: unknown[]): { host: string; port: number | null } | undefined {
  if (typeof host !== "string") return undefined;
  if (name === "lookup") return host === "" || net.isIP(host) !== 0 ? undefined : { host, port: null };
  return { host, port: name === "lookupService" && isPort(port) ? Number(port) : null };
}

/** The addresses in an answer, in each of the forms that Node gives them. */
function addressesOf(answer: unknown): string[] {
  const all = Array.isArray(answer) ? answer : [answer];
  return all
    .map((one) => (typeof one === "object" && one !== null ? (one as { address?: unknown }).address : one))
    .filter((one): one is string => typeof one === "string" && net.isIP(one) !== 0);
}

function isPort(port: unknown): boolean {
  const number = Number(port);
  return (
    port !== undefined && typeof port !== "function" && Number.isInteger(number) && number >= 0 && number <= 0xffff
  );
}

function isConnected(socket: dgram.Socket): boolean {
  try {
    socket.remoteAddress();
    return true;
  } catch {
    return false;
  }
}

/** Options that say something else in places, whatever kind of object they are. */
function derived(options: object, overriding: object): object {
  return Object.create(options, Object.getOwnPropertyDescriptors(overriding)) as object;
}
