/** Names of ports. A small table of its own, that of `crates/policy/src/service.rs`, because a policy must read the same on every
 * machine and in every language, and `/etc/services` differs between them. */

// prettier-ignore
export const SERVICES: ReadonlyMap<string, number> = new Map([
  ["amqp", 5672],
  ["amqps", 5671],
  ["dns", 53],
  ["domain", 53],
  ["ftp", 21],
  ["git", 9418],
  ["http", 80],
  ["http-alt", 8080],
  ["https", 443],
  ["imap", 143],
  ["imaps", 993],
  ["kafka", 9092],
  ["ldap", 389],
  ["ldaps", 636],
  ["memcached", 11211],
  ["mongodb", 27017],
  ["mqtt", 1883],
  ["mysql", 3306],
  ["ntp", 123],
  ["pop3s", 995],
  ["postgres", 5432],
  ["postgresql", 5432],
  ["redis", 6379],
  ["smtp", 25],
  ["ssh", 22],
  ["submission", 587],
  ["telnet", 23],
]);

/** The port of a service, in any case. */
export function portOf(name: string): number | undefined {
  return SERVICES.get(name.toLowerCase());
}
