/**
 * Hosts as programs spell them: case, trailing dots, brackets, zones, short and octal IPv4 forms, IPv4 inside IPv6. The rules are
 * those of `spec/policy.md`.
 */

import { isIPv6 } from "node:net";

/** An address as a number, so that networks can be compared by their bits. */
export interface Address {
  family: 4 | 6;
  bits: bigint;
}

/** What a spelled host turns out to be; names are lower case, without a trailing dot. */
export type Host = Address | string;

/** Names that mean this machine in every installation of Linux. */
const MACHINE_NAMES = new Set(["localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"]);
const LOCALHOST_V4: Address = { family: 4, bits: 0x7f000001n };
/** What stands in front of the IPv4 part of a mapped address. */
const MAPPED = 0xffffn;

/** Reads a host the way resolvers do. An empty one means this machine.
 *
 *     readHost("Example.COM.") === "example.com"
 *     readHost("127.1")        // the address 127.0.0.1
 */
export function readHost(spelled: string): Host {
  const bare = spelled.startsWith("[") && spelled.endsWith("]") ? spelled.slice(1, -1) : spelled;
  if (bare === "") return LOCALHOST_V4;
  const address = parseV4(bare) ?? parseV6(bare);
  if (address) return canonical(address);
  return bare.replace(/\.$/, "").toLowerCase();
}

/** Whether the host is one of this machine's names or loopback addresses. */
export function isThisMachine(host: Host): boolean {
  if (typeof host === "string") return isMachineName(host) || host.endsWith(".localhost");
  return isLoopback(host);
}

/** Whether the name is one of the machine itself, and not only below `localhost`. */
export function isMachineName(name: string): boolean {
  return MACHINE_NAMES.has(name);
}

export function isLoopback({ family, bits }: Address): boolean {
  return family === 4 ? bits >> 24n === 127n : bits === 1n;
}

/** The one spelling of an address: IPv4 inside IPv6 comes out, and the unspecified address, to which Linux connects as to
 * loopback, becomes loopback. */
export function canonical(address: Address): Address {
  const plain = unmapped(address);
  if (plain.bits !== 0n) return plain;
  return plain.family === 4 ? LOCALHOST_V4 : { family: 6, bits: 1n };
}

export function unmapped({ family, bits }: Address): Address {
  return family === 6 && bits >> 32n === MAPPED ? { family: 4, bits: bits & 0xffffffffn } : { family, bits };
}

/** The forms of `inet_aton`: one to four parts, each decimal, octal (`0…`) or hexadecimal (`0x…`), the last of which fills all
 * remaining bytes. */
export function parseV4(text: string): Address | undefined {
  const parts = text.split(".").map(parsePart);
  const last = parts.pop();
  if (last === undefined || parts.length > 3 || parts.some((part) => part === undefined || part > 0xff))
    return undefined;
  const free = 8 * (4 - parts.length);
  if (last >= 2 ** free) return undefined;
  const high = parts.reduce<bigint>((bits, part) => (bits << 8n) | BigInt(part!), 0n);
  return { family: 4, bits: (high << BigInt(free)) | BigInt(last) };
}

function parsePart(part: string): number | undefined {
  if (/^0x[0-9a-f]+$/i.test(part)) return Number(part);
  if (/^0[0-7]+$/.test(part)) return Number.parseInt(part, 8);
  return /^(0|[1-9]\d*)$/.test(part) ? Number(part) : undefined;
}

/** IPv6 text with an optional zone, which only chooses an interface. */
export function parseV6(text: string): Address | undefined {
  const [address = "", zone] = text.split(/%(.*)/s, 2);
  if (!isIPv6(address) || zone === "") return undefined;
  // The one spelling of URLs has no dotted part.
  const [head = "", tail] = hostnameOf(address).split("::");
  const [front, back] = [groups(head), groups(tail ?? "")];
  const zeros = Array<string>(8 - front.length - back.length).fill("0");
  const bits = [...front, ...zeros, ...back].reduce((all, group) => (all << 16n) | BigInt(`0x${group}`), 0n);
  return { family: 6, bits };
}

/** An address as it is written, IPv6 without brackets. */
export function spell({ family, bits }: Address): string {
  const part = (at: number, width: bigint) => (bits >> (BigInt(at) * width)) & ((1n << width) - 1n);
  if (family === 4) return [3, 2, 1, 0].map((at) => part(at, 8n)).join(".");
  return hostnameOf([7, 6, 5, 4, 3, 2, 1, 0].map((at) => part(at, 16n).toString(16)).join(":"));
}

function groups(text: string): string[] {
  return text === "" ? [] : text.split(":");
}

function hostnameOf(v6: string): string {
  return new URL(`http://[${v6}]`).hostname.slice(1, -1);
}
