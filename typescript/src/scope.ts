/**
 * What this package changed for one test, and how it ends with the test.
 *
 * HOME, the working directory and git's identity belong to the process, so at most one test may have them at a time; a subtest
 * inside an isolated test is fine. Go's runner refuses the conflict by itself. Node's does not, so a scope that opens while another
 * one is open must prove that it lies inside: both names say so (`suite > test > subtest`), or it was opened in code that the
 * outer test started. Everything else is an overlap, whichever of the two would end first.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { Environment } from "./environ.js";

/** What a runner must offer: a call for each test that runs a function when the test ends. The context of `node:test` is one. */
export interface CleanupRegistry {
  after(fn: () => void | Promise<void>): void;
}

/** Two tests want to own the process at the same time. */
export class IsolationOverlapError extends Error {
  override name = "IsolationOverlapError";
}

const REMEDY =
  "HOME and the working directory belong to the whole process. Run the tests of this file one after another, " +
  "or pass { within: registry } if the other isolation is meant to be around this one.";

/** Scopes that are open, outermost first. */
const open: Scope[] = [];
const scopes = new WeakMap<CleanupRegistry, Scope>();
const around = new AsyncLocalStorage<Scope | null>();
// Contexts are told apart only from the first use on. Tests that a runner starts together must be apart when the first of them
// isolates itself, so the first use is now.
around.run(null, () => {});

export class Scope {
  readonly environment = new Environment();
  readonly registry: CleanupRegistry;
  /** The scope that the code which opened this one ran in. */
  readonly outer: Scope | undefined;
  readonly #undo: (() => void)[] = [];
  #isOpen = true;

  private constructor(registry: CleanupRegistry) {
    this.registry = registry;
    this.outer = innermost(around.getStore() ?? undefined);
  }

  /** The scope of a test; opens one if it has none. */
  static of(registry: CleanupRegistry, within?: CleanupRegistry): Scope {
    const known = scopes.get(registry);
    if (known && !known.#isOpen) {
      throw new Error("stricttest: this test's isolation was already released; call the helpers while the test runs");
    }
    return known ?? Scope.#open(registry, within);
  }

  static #open(registry: CleanupRegistry, within: CleanupRegistry | undefined): Scope {
    if (typeof registry?.after !== "function") {
      throw new TypeError(
        "stricttest: the first argument must have a function `after`: the context of node:test, or { after: onTestFinished }",
      );
    }
    const scope = new Scope(registry);
    const last = open.at(-1);
    if (last && !scope.#liesIn(last, within)) {
      throw new IsolationOverlapError(
        `stricttest: ${title(registry)} started its isolation while another test's isolation is open (${title(last.registry)}). ${REMEDY}`,
      );
    }
    registry.after(() => scope.#end());
    scopes.set(registry, scope);
    open.push(scope);
    around.enterWith(scope);
    return scope;
  }

  /** Runs a function when the scope ends, the latest first. */
  onEnd(undo: () => void): void {
    this.#undo.push(undo);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  #liesIn(last: Scope, within: CleanupRegistry | undefined): boolean {
    if (within !== undefined) return within === last.registry;
    const [own, its] = [nameOf(this.registry), nameOf(last.registry)];
    if (own !== undefined && its !== undefined) return own.startsWith(`${its} > `);
    return this.outer === last;
  }

  #end(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const at = open.indexOf(this);
    open.splice(at, 1);
    const later = open.slice(at);
    const problems: unknown[] = [];
    for (const undo of this.#undo.reverse()) {
      try {
        undo();
      } catch (problem) {
        problems.push(problem);
      }
    }
    // While others are open, what differs may be theirs.
    if (later.length === 0) this.#tellLeaks(this.environment.keepPromise());
    this.environment.restore(later.map((scope) => scope.environment));
    if (later.length > 0) {
      problems.push(
        new IsolationOverlapError(
          `stricttest: ${title(this.registry)} finished its isolation while another test's isolation is open ` +
            `(${title(later[0]!.registry)}). ${REMEDY}`,
        ),
      );
    }
    if (problems.length > 1) throw new AggregateError(problems, problems.map(String).join("\n"));
    if (problems.length === 1) throw problems[0];
  }

  #tellLeaks(names: readonly string[]): void {
    const { diagnostic } = this.registry as { diagnostic?: (text: string) => void };
    if (names.length > 0 && typeof diagnostic === "function") {
      diagnostic.call(this.registry, `stricttest: the test left variables changed, now restored: ${names.join(", ")}`);
    }
  }
}

/** A context outlives its scope: what is over does not count. */
function innermost(scope: Scope | undefined): Scope | undefined {
  while (scope && !scope.isOpen) scope = scope.outer;
  return scope;
}

/** The full name that `node:test` gives a test. */
function nameOf(registry: CleanupRegistry): string | undefined {
  const { fullName } = registry as { fullName?: unknown };
  return typeof fullName === "string" ? fullName : undefined;
}

function title(registry: CleanupRegistry): string {
  const name = nameOf(registry);
  return name === undefined ? "a test" : `test "${name}"`;
}
