/** What may be reached: a stance on loopback and on unix sockets, a list of entries, and what their names resolved to. It decides
 * over values and reaches nothing; the rules are those of `spec/policy.md`. */

import { coversHost, coversPort, coversUnix, type Entry, isUnix, parseEntry } from "./entry.js";
import { type Host, isThisMachine, readHost, spell } from "./host.js";

/** Something that a program wants to reach: a host at a port, where the question has one, or a unix socket, whose leading NUL
 * marks the abstract kind. */
export type Target = { host: string; port: number | null } | { unix: string };

const ENTRIES_MAX = 1024;
/** Addresses of allowed names that are remembered; the oldest gives way to the newest. */
const REMEMBERED_MAX = 1024;

export class Policy {
  readonly #allowsLoopback: boolean;
  readonly #allowsUnix: boolean;
  readonly #entries: readonly Entry[];
  /** Entries by the addresses that their names led to. */
  readonly #memory = new Map<string, Set<Entry>>();

  /** Throws a `TypeError` for an entry that could never match. */
  constructor({ loopback = false, unix = false, entries = [] as readonly string[] } = {}) {
    if (entries.length > ENTRIES_MAX) {
      throw new TypeError(`stricttest: a policy has at most ${ENTRIES_MAX} entries: use networks or *.domain`);
    }
    this.#allowsLoopback = loopback;
    this.#allowsUnix = unix;
    this.#entries = entries.map(parseEntry);
  }

  /** Whether the target may be reached.
   *
   *     new Policy({ entries: ["*.example.com:443"] }).allows({ host: "api.example.com", port: 443 }) === true
   */
  allows(target: Target): boolean {
    return "unix" in target ? this.#allowsPath(target.unix) : this.#allowsHost(readHost(target.host), target.port);
  }

  /** Notes that a look-up of a name gave an address. Does nothing unless an entry allows the name. */
  remember(name: string, address: string): void {
    const [asked, found] = [readHost(name), readHost(address)];
    if (typeof asked !== "string" || typeof found === "string") return;
    const key = spell(found);
    for (const entry of this.#entries.filter((one) => coversHost(one, asked, null))) {
      const known = this.#memory.get(key) ?? new Set();
      this.#memory.set(key, known.add(entry));
    }
    if (this.#memory.size > REMEMBERED_MAX) this.#memory.delete(this.#memory.keys().next().value!);
  }

  #allowsHost(asked: Host, port: number | null): boolean {
    if (this.#allowsLoopback && isThisMachine(asked)) return true;
    if (this.#entries.some((entry) => coversHost(entry, asked, port))) return true;
    if (typeof asked === "string") return false;
    return [...(this.#memory.get(spell(asked)) ?? [])].some((entry) => coversPort(entry, port));
  }

  #allowsPath(path: string): boolean {
    if (this.#allowsUnix) return true;
    const asked = path.startsWith("\0") ? path : path.split("\0")[0]!;
    return this.#entries.some((entry) => isUnix(entry) && coversUnix(entry, asked));
  }
}

/** A target as an entry would spell it, so that it can be pasted into a policy. */
export function spellTarget(target: Target): string {
  const text = "unix" in target ? target.unix.replace(/^\0/, "unix:@") : spellHost(target.host, target.port);
  return text.replace(/\p{Cc}/gu, (letter) => JSON.stringify(letter).slice(1, -1));
}

function spellHost(host: string, port: number | null): string {
  if (port === null) return host;
  if (host === "") return `localhost:${port}`;
  return host.includes(":") && !host.startsWith("[") ? `[${host}]:${port}` : `${host}:${port}`;
}
