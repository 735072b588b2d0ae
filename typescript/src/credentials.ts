/** Decides over names what the floor takes away. It neither reads nor changes the environment. */

import { CREDENTIAL_PATTERNS, CREDENTIAL_VARS, GIT_REMOVED } from "./tables.gen.js";

const EXACT = new Set(CREDENTIAL_VARS);
const isLikely = matcher(CREDENTIAL_PATTERNS);

/** Whether the variable is taken away, when those in `kept` may stay. Case does not matter.
 *
 *     isTaken("GITHUB_TOKEN", ["GITHUB_TOKEN"]) === true // no setting keeps a name of the table
 *     isTaken("SHOP_TOKEN", ["SHOP_TOKEN"]) === false    // only a pattern takes this one
 */
export function isTaken(name: string, kept: readonly string[]): boolean {
  const upper = name.toUpperCase();
  if (EXACT.has(upper)) return true;
  return isLikely(upper) && !kept.some((one) => one.toUpperCase() === upper);
}

/** Whether no setting can keep the variable. */
export function isListed(name: string): boolean {
  return EXACT.has(name.toUpperCase());
}

/** Whether the variable would lead git to another repository or to another configuration. */
export const isGitState = matcher(GIT_REMOVED);

/** Tells whether a name fits one of the patterns, in which `*` stands for any run of characters. Case does not matter. Every
 * test asks about the same names, and to try the patterns costs as much as all else that an isolation does: answers are kept. */
function matcher(patterns: readonly string[]): (name: string) => boolean {
  const escape = (text: string) => text.replace(/[.+?^${}()|[\]\\]/g, "\\$&");
  const bodies = patterns.map((pattern) => pattern.split("*").map(escape).join(".*"));
  const expression = new RegExp(`^(?:${bodies.join("|")})$`, "s");
  const answers = new Map<string, boolean>();
  return (name) => {
    const known = answers.get(name);
    if (known !== undefined) return known;
    const answer = expression.test(name.toUpperCase());
    answers.set(name, answer);
    return answer;
  };
}
