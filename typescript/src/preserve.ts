/** Decides what the variables of preserved toolchain caches must hold. It neither reads nor changes the environment. */

import { delimiter, join } from "node:path";
import { KNOWN_VARS } from "./tables.gen.js";

/** A toolchain cache that may stay where it is while HOME moves: one of the names of {@link KNOWN_VARS}. */
export type KnownVar = keyof typeof KNOWN_VARS;

type Lookup = (name: string) => string | undefined;

/** The variables of the caches, and what they must hold so that their tools find them after HOME has moved. `lookup` is that of
 * the environment before the move. A variable that is set and not empty keeps its value; without a home, a cache that is looked
 * for below it is left out. Throws a `TypeError` for a name that is no {@link KnownVar}. */
export function preserved(names: readonly KnownVar[], lookup: Lookup): [name: string, value: string][] {
  const pins: [string, string][] = [];
  for (const name of names) {
    if (!Object.hasOwn(KNOWN_VARS, name)) {
      const known = Object.keys(KNOWN_VARS).join(", ");
      throw new TypeError(
        `stricttest: cannot preserve ${JSON.stringify(name)}: only the closed enum is accepted: ${known}`,
      );
    }
    const cache = KNOWN_VARS[name];
    const value = lookup(cache.env) || defaultOf(cache.default, lookup);
    if (value) pins.push([cache.env, value]);
  }
  return pins;
}

function defaultOf(pattern: string, lookup: Lookup): string | undefined {
  const [base, ...rest] = pattern.split("/");
  const home = lookup("HOME");
  const root = base === "{gopath}" ? gopath(home, lookup) : home;
  return root ? join(root, ...rest) : undefined;
}

/** The work space that Go downloads into: the first of the list, as go itself takes it. Empty counts as absent. */
function gopath(home: string | undefined, lookup: Lookup): string | undefined {
  const first = (lookup("GOPATH") ?? "").split(delimiter)[0];
  return first || (home ? join(home, "go") : undefined);
}
