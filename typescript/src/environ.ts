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
  #promised: Map<string, string | undefined> | undefined;

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

  /** Every name, of the real environment too. `Object.keys` would ask Node about each one once more. */
  names(): string[] {
    if (this.#targets.length === 1) return Object.getOwnPropertyNames(this.#targets[0]!);
    return [...new Set(this.#targets.flatMap((target) => Object.getOwnPropertyNames(target)))];
  }

  /** Notes what is set now, of those variables that the scope did not change: a test shall leave them so. */
  promise(names: readonly string[]): void {
    this.#promised = this.#untouched(names);
  }

  /** Restores what the test left changed, of the promised variables and of new ones, and returns their names, sorted. */
  keepPromise(): string[] {
    const promised = this.#promised;
    if (promised === undefined) return [];
    const found = this.#untouched(this.names());
    const names = [...new Set([...promised.keys(), ...found.keys()])];
    const changed = names.filter((name) => !this.#before.has(name) && promised.get(name) !== found.get(name)).sort();
    for (const name of changed) for (const target of this.#targets) put(target, name, promised.get(name));
    return changed;
  }

  /** Everything as it was before the scope. Where `later` scopes that are still open have changed the same variables, it is them
   * who will restore, and to this value. */
  restore(later: readonly Environment[]): void {
    for (const [name, values] of this.#before) {
      const heir = later.find((one) => one.#before.has(name));
      if (heir) {
        heir.#before.set(name, values);
        continue;
      }
      this.#targets.forEach((target, at) => put(target, name, values[at]));
      for (const one of later) one.#promised?.set(name, values[0]);
    }
    this.#before.clear();
  }

  #untouched(names: readonly string[]): Map<string, string | undefined> {
    const found = new Map<string, string | undefined>();
    for (const name of names) if (!this.#before.has(name)) found.set(name, this.get(name));
    return found;
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
