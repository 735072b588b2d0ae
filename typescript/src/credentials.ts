/** Decides over names what the floor takes away. It neither reads nor changes the environment. */

import { CREDENTIAL_PATTERNS, CREDENTIAL_VARS, GIT_REMOVED } from "./tables.gen.js";

const EXACT = new Set(CREDENTIAL_VARS);
const PATTERN = expression(CREDENTIAL_PATTERNS);
const GIT = expression(GIT_REMOVED);

/** Whether the variable is taken away, when those in `kept` may stay. Case does not matter.
 *
 *     isTaken("GITHUB_TOKEN", ["GITHUB_TOKEN"]) === true // no setting keeps a name of the table
 *     isTaken("SHOP_TOKEN", ["SHOP_TOKEN"]) === false    // only a pattern takes this one
 */
export function isTaken(name: string, kept: readonly string[]): boolean {
  const upper = name.toUpperCase();
  if (EXACT.has(upper)) return true;
  return PATTERN.test(upper) && !kept.some((one) => one.toUpperCase() === upper);
}

/** Whether no setting can keep the variable. */
export function isListed(name: string): boolean {
  return EXACT.has(name.toUpperCase());
}

/** Whether the variable would lead git to another repository or to another configuration. */
export function isGitState(name: string): boolean {
  return GIT.test(name.toUpperCase());
}

/** One expression for many patterns, in which `*` stands for any run of characters. */
function expression(patterns: readonly string[]): RegExp {
  const escape = (text: string) => text.replace(/[.+?^${}()|[\]\\]/g, "\\$&");
  const bodies = patterns.map((pattern) => pattern.split("*").map(escape).join(".*"));
  return new RegExp(`^(?:${bodies.join("|")})$`, "s");
}
