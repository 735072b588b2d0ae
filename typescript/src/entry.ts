/** One entry of a network policy: what it covers, how it is written, and why a text can be none. The grammar is that of
 * `spec/policy.md`: whatever could never match is refused, so that a slip shows at once and not as a refused connection. */

import {
  type Address,
  canonical,
  type Host,
  isLoopback,
  isMachineName,
  parseV4,
  parseV6,
  spell,
  unmapped,
} from "./host.js";
import { portOf, SERVICES } from "./service.js";

/** The hosts or sockets of an entry. */
type Scope =
  | { kind: "machine" }
  | { kind: "name" | "subdomains"; name: string }
  | { kind: "address"; address: Address }
  | { kind: "network"; base: Address; prefixLen: number }
  | { kind: "path" | "folder"; parts: readonly string[] }
  | { kind: "abstract"; name: string };

/** What one entry allows; without a port all of them. */
export interface Entry {
  scope: Scope;
  port?: number | undefined;
}

const LABEL_LEN_MAX = 63;
const NAME_LEN_MAX = 253;
/** Longest path of a unix socket on Linux, without the closing NUL. */
const UNIX_PATH_LEN_MAX = 107;
/** Characters of an unacceptable entry that its error repeats. */
const ERROR_ENTRY_LEN_MAX = 120;

const ACCEPTED =
  "accepted are host:port, *.domain:port, an IP address, [IPv6]:port, a network such as 10.0.0.0/8:5432 (:* is every port), and an " +
  "absolute unix socket path (one that ends in / covers everything below)";

/** Why a text is no entry; {@link parseEntry} names the text. */
class Unusable extends Error {}

/** Reads an entry. Throws a `TypeError` that names the text, what is wrong, and what to write instead.
 *
 *     formatEntry(parseEntry("API.example.com.:https")) === "api.example.com:443"
 */
export function parseEntry(spelled: string): Entry {
  const text = String(spelled).trim();
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof Unusable)) throw error;
    const shown = JSON.stringify(text.slice(0, ERROR_ENTRY_LEN_MAX)) + (text.length > ERROR_ENTRY_LEN_MAX ? "…" : "");
    throw new TypeError(`stricttest: cannot use network entry ${shown}: ${error.message}; ${ACCEPTED}`);
  }
}

/** The one canonical spelling, which reads back as the same entry. */
export function formatEntry({ scope, port }: Entry): string {
  return formatScope(scope, port !== undefined) + (port === undefined ? "" : `:${port}`);
}

/** Whether the entry is a unix socket, or some. */
export function isUnix({ scope }: Entry): boolean {
  return scope.kind === "path" || scope.kind === "folder" || scope.kind === "abstract";
}

/** Whether the entry covers a host. Where the question has no port, an entry for any port will do. */
export function coversHost(entry: Entry, asked: Host, port: number | null): boolean {
  return (
    coversPort(entry, port) && (typeof asked === "string" ? coversName(entry, asked) : coversAddress(entry, asked))
  );
}

export function coversPort(entry: Entry, port: number | null): boolean {
  return entry.port === undefined || port === null || entry.port === port;
}

/** Whether the entry covers a unix socket; a leading NUL marks the abstract kind. A relative path matches none. */
export function coversUnix({ scope }: Entry, path: string): boolean {
  if (path.startsWith("\0")) return scope.kind === "abstract" && scope.name === path.slice(1);
  if (!path.startsWith("/") || !(scope.kind === "path" || scope.kind === "folder")) return false;
  const asked = partsOf(path);
  const isBelow = scope.parts.every((part, at) => part === asked[at]);
  return isBelow && (scope.kind === "folder" ? asked.length > scope.parts.length : asked.length === scope.parts.length);
}

function coversName({ scope }: Entry, name: string): boolean {
  switch (scope.kind) {
    case "machine":
      return isMachineName(name);
    case "name":
      return scope.name === name;
    case "subdomains":
      return name.endsWith(`.${scope.name}`) && name.length > scope.name.length + 1;
    default:
      return false;
  }
}

function coversAddress({ scope }: Entry, address: Address): boolean {
  switch (scope.kind) {
    case "machine":
      return isLoopback(address);
    case "address":
      return isSame(scope.address, address);
    case "network":
      return scope.base.family === address.family && isSame(masked(address, scope.prefixLen), scope.base);
    default:
      return false;
  }
}

function formatScope(scope: Scope, hasPort: boolean): string {
  const inBrackets = (address: Address) => (hasPort && address.family === 6 ? `[${spell(address)}]` : spell(address));
  switch (scope.kind) {
    case "machine":
      return "localhost";
    case "name":
      return scope.name;
    case "subdomains":
      return `*.${scope.name}`;
    case "address":
      return inBrackets(scope.address);
    case "network":
      return `${inBrackets(scope.base)}/${scope.prefixLen}`;
    case "path":
      return `/${scope.parts.join("/")}`;
    case "folder":
      return scope.parts.map((part) => `/${part}`).join("") + "/";
    case "abstract":
      return `unix:@${scope.name}`;
  }
}

function parse(text: string): Entry {
  if (text === "") throw new Unusable("it is empty");
  if (text.includes("://")) throw url(text);
  const socket = /^unix:/i.test(text) ? text.slice("unix:".length) : /^[/@]/.test(text) ? text : undefined;
  if (socket !== undefined) return { scope: parseUnix(socket) };
  if (text === "*" || text.startsWith("*:")) {
    throw new Unusable("it would allow everything: leave `sockets` out to leave the network alone");
  }
  const { host, isBracketed, prefix, port } = split(text);
  const number = port === undefined ? undefined : parsePort(port);
  const scope = prefix === undefined ? parseHost(host, isBracketed) : parseNetwork(host, prefix, isBracketed, text);
  return { scope, port: number };
}

interface Pieces {
  host: string;
  isBracketed: boolean;
  prefix: string | undefined;
  port: string | undefined;
}

/** `host[/prefix][:port]` taken apart, the host without its brackets. */
function split(text: string): Pieces {
  const isBracketed = text.startsWith("[");
  // Without brackets the host ends at a slash, else at its only colon: with more than one it is IPv6 to the end.
  const form = isBracketed
    ? /^\[([^\]]*)\](.*)$/s
    : text.includes("/")
      ? /^([^/]*)(.*)$/s
      : /^([^:]*(?:$|(?=:[^:]*$))|.*)(.*)$/s;
  const [, host = "", rest = ""] = form.exec(text) ?? fail(brackets());
  const [, prefix, port] = /^(?:\/([^:]*))?(?::(.*))?$/s.exec(rest) ?? fail(brackets());
  return { host, isBracketed, prefix, port };
}

/** `*` is any port, as is leaving it out. */
function parsePort(text: string): number | undefined {
  if (text === "*") return undefined;
  if (!/^[\d+-]*$/.test(text)) {
    const known = [...SERVICES.keys()].join(", ");
    const remedy = `write the port's number, or one of ${known}`;
    return portOf(text) ?? fail(new Unusable(`${JSON.stringify(text)} is not a known service: ${remedy}`));
  }
  const port = /^\d+$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 0xffff) return port;
  throw new Unusable(`${JSON.stringify(text)} is not a port: write a number from 1 to 65535`);
}

function parseHost(text: string, isBracketed: boolean): Scope {
  if (isBracketed) return { kind: "address", address: canonical(parseV6(text) ?? fail(brackets())) };
  if (text.includes(":")) return { kind: "address", address: canonical(parseV6(text) ?? fail(colons())) };
  if (text.startsWith("*.")) return { kind: "subdomains", name: parseName(text.slice(2)) };
  if (isNumeric(text)) return { kind: "address", address: canonical(parsePlainV4(text)) };
  const name = parseName(text);
  return isMachineName(name) ? { kind: "machine" } : { kind: "name", name };
}

/** A name whose last label is a number, or begins like a hexadecimal one, is read as an address by every resolver. */
function isNumeric(text: string): boolean {
  return /(^|\.)(\d+|0x[^.]*)$/i.test(text) && !text.includes("*");
}

/** Entries take short forms such as `127.1`, but no lone number (a port, most likely), and no octal or hexadecimal part, which
 * programs do not agree about. */
function parsePlainV4(text: string): Address {
  const isPlain = text.includes(".") && !/(^|\.)0[^.]/.test(text);
  const remedy = "write four numbers from 0 to 255 without leading zeros, or host:port if it was meant as a port";
  return (
    (isPlain && parseV4(text)) ||
    fail(new Unusable(`${JSON.stringify(text)} is numeric, but not an address: ${remedy}`))
  );
}

function parseName(text: string): string {
  const name = text.replace(/\.$/, "");
  if (name.includes("*")) throw new Unusable("* stands for whole first labels only: write *.domain");
  if (/[^\0-\x7f]/.test(name)) {
    throw new Unusable(`${JSON.stringify(text)} is not ASCII: write the name as it is looked up, in its xn-- form`);
  }
  const isLabel = (label: string) => /^[\w-]+$/.test(label) && label.length <= LABEL_LEN_MAX;
  if (name.length > NAME_LEN_MAX || !name.split(".").every(isLabel) || isNumeric(name)) {
    throw new Unusable(
      `${JSON.stringify(text)} is not a host name: labels of letters, digits, - and _, at most ${LABEL_LEN_MAX} each and ` +
        `${NAME_LEN_MAX} in all, separated by single dots`,
    );
  }
  return name.toLowerCase();
}

function parseNetwork(text: string, prefix: string, isBracketed: boolean, entry: string): Scope {
  const v6 = parseV6(text);
  if (!v6 && isBracketed) throw brackets();
  if (!v6 && text.includes(":")) throw colons();
  if (!v6 && !isNumeric(text)) throw url(entry);
  const address = v6 ?? parsePlainV4(text);
  const lenMax = address.family === 4 ? 32 : 128;
  if (!/^\d+$/.test(prefix) || Number(prefix) > lenMax) {
    const remedy = `write a number from 0 to ${lenMax} after the slash`;
    throw new Unusable(`${JSON.stringify(prefix)} is not the length of a network: ${remedy}`);
  }
  const scope = networkAround(address, Number(prefix));
  if (!isSame(scope.base, networkAround(address, lenMax).base)) {
    const network = formatScope(scope, false);
    throw new Unusable(`it has bits set beyond its prefix: write ${network}, or the address without a prefix`);
  }
  return scope;
}

/** The block of `prefixLen` leading bits in which an address lies. A block of mapped addresses is one of IPv4. */
function networkAround(address: Address, prefixLen: number): Scope & { kind: "network" } {
  const base = masked(address, prefixLen);
  const plain = prefixLen >= 96 ? unmapped(base) : base;
  return { kind: "network", base: plain, prefixLen: plain.family === base.family ? prefixLen : prefixLen - 96 };
}

function masked({ family, bits }: Address, prefixLen: number): Address {
  const free = BigInt((family === 4 ? 32 : 128) - prefixLen);
  return { family, bits: (bits >> free) << free };
}

function isSame(left: Address, right: Address): boolean {
  return left.family === right.family && left.bits === right.bits;
}

function parseUnix(text: string): Scope {
  const isUsable = Buffer.byteLength(text) <= UNIX_PATH_LEN_MAX && !/\p{Cc}/u.test(text) && /^(@.|\/)/s.test(text);
  if (!isUsable) {
    throw new Unusable(
      `a unix socket is written as an absolute path or unix:@name, at most ${UNIX_PATH_LEN_MAX} bytes without control characters`,
    );
  }
  if (text.startsWith("@")) return { kind: "abstract", name: text.slice(1) };
  // A path that ends in a slash or a dot part can only be a folder.
  return { kind: /\/\.{0,2}$/.test(text) ? "folder" : "path", parts: partsOf(text) };
}

/** The parts of a path; `..` is taken away with the part before it, by text. */
function partsOf(path: string): string[] {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts;
}

/** Names the entry that a URL, or a host with a path, most likely stands for. */
function url(text: string): Unusable {
  const [, scheme, rest = ""] = /^(?:(.*?):\/\/)?(.*)$/s.exec(text)!;
  const host = rest.split(/[/?#]/)[0]!.split("@").pop()!;
  let instead = "its host and port";
  try {
    const entry = parse(host);
    const port = entry.port ?? (scheme === undefined ? undefined : portOf(scheme));
    instead = JSON.stringify(formatEntry({ ...entry, port }));
  } catch (error) {
    if (!(error instanceof Unusable)) throw error;
  }
  return new Unusable(`it is a URL or has a path, and rules are about hosts and ports: write ${instead}`);
}

function brackets(): Unusable {
  return new Unusable("brackets hold exactly one IPv6 address: write [address] or [address]:port");
}

function colons(): Unusable {
  return new Unusable("it has more than one colon and is not an IPv6 address: write [address]:port for IPv6");
}

function fail(error: Error): never {
  throw error;
}
