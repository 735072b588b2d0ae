/**
 * The environment, changed and restored variable by variable.
 *
 * Some runners give a test file a copy of `process.env` (jest does). Child processes that get no environment of their own, and
 * `os.homedir()`, go by the real one. So both are changed: what `process.env` is now, and what it was when this module was
 * loaded, and the process's own.
 */

import { runInThisContext } from "node:vm";

type Environ = NodeJS.ProcessEnv;

/** The process as Node itself has it, whatever a runner put into its place. */
export const realProcess: NodeJS.Process = runInThisContext("process");
const atLoad = process.env;

/** The variables that a scope changed, and what they held before. */
export class Environment {
  readonly #targets: readonly Environ[] = [...new Set([process.env, atLoad, realProcess.env])];
  readonly #before = new Map<string, (string | undefined)[]>();

  set(name: string, value: string): void {
    this.#remember(name);
    for (const target of this.#targets) target[name] = value;
  }

  /** Truly absent, not empty: programs ask whether a variable is there. */
  unset(name: string): void {
    this.#remember(name);
    for (const target of this.#targets) delete target[name];
  }

  get(name: string): string | undefined {
    return this.#targets[0]![name];
  }

  /** Every name, of the real environment too. */
  names(): string[] {
    if (this.#targets.length === 1) return Object.keys(this.#targets[0]!);
    return [...new Set(this.#targets.flatMap((target) => Object.keys(target)))];
  }

  /** Everything as it was before the scope. Where `later` scopes that are still open have changed the same variables, it is them
   * who will restore, and to this value. */
  restore(later: readonly Environment[]): void {
    for (const [name, values] of this.#before) {
      const heir = later.find((one) => one.#before.has(name));
      if (heir) heir.#before.set(name, values);
      else this.#targets.forEach((target, at) => put(target, name, values[at]));
    }
    this.#before.clear();
  }

  /** What is set now, of the variables that the scope did not change. */
  untouched(): Map<string, string | undefined> {
    const target = this.#targets[0]!;
    const names = Object.keys(target).filter((name) => !this.#before.has(name));
    return new Map(names.map((name) => [name, target[name]]));
  }

  /** Makes the variables that the scope did not change what they were, and returns the names of those that differed, sorted. */
  undo(promised: ReadonlyMap<string, string | undefined>): string[] {
    const found = this.untouched();
    const names = [...new Set([...promised.keys(), ...found.keys()])];
    const changed = names.filter((name) => !this.#before.has(name) && promised.get(name) !== found.get(name)).sort();
    for (const name of changed) for (const target of this.#targets) put(target, name, promised.get(name));
    return changed;
  }

  #remember(name: string): void {
    if (this.#before.has(name)) return;
    this.#before.set(
      name,
      this.#targets.map((target) => target[name]),
    );
  }
}

function put(target: Environ, name: string, value: string | undefined): void {
  if (value === undefined) delete target[name];
  else target[name] = value;
}
