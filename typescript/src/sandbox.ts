/**
 * Bare-run refusal: a suite that belongs into the sandbox runner refuses to run outside of it.
 *
 * It is a function to call and no hook, because `node --test` runs each file in a process of its own, and a module that is loaded
 * with `--import` is loaded in those processes: none of them can know how large the run is. A programmatic runner knows its files
 * and says `threshold`; a set-up module can only say `always`.
 */

import { DEFAULT_RUNNER_COMMAND, DEFAULT_SANDBOX_ENV } from "./tables.gen.js";

/** A run was refused. */
export class SandboxRequiredError extends Error {
  override name = "SandboxRequiredError";
}

/** How much of a bare run is refused: all of it, or one of more than `threshold` items when it has `count`. There is no default: a
 * suite says where it stands. */
export type SandboxPolicy = { policy: "always" } | { policy: "threshold"; threshold: number; count: number };

export type RequireSandboxOptions = SandboxPolicy & {
  /** The variable that the sandbox runner sets to `1`; by default {@link DEFAULT_SANDBOX_ENV}. */
  sandboxEnv?: string;
  /** What the refusal points to; by default {@link DEFAULT_RUNNER_COMMAND}. */
  runnerCommand?: string;
};

/** Whether the sandbox runner started this process: whether its variable is exactly `1`. */
export function insideSandbox(sandboxEnv: string = DEFAULT_SANDBOX_ENV): boolean {
  return process.env[sandboxEnv] === "1";
}

/** Throws a {@link SandboxRequiredError} if the run is outside of the sandbox and the policy refuses it. Options that make no sense
 * are a `TypeError` inside the sandbox too: the mistake would else show on the run that it was to refuse.
 *
 *     requireSandbox({ policy: "threshold", threshold: 10, count: files.length });
 */
export function requireSandbox(options: RequireSandboxOptions): void {
  check(options);
  const { sandboxEnv = DEFAULT_SANDBOX_ENV, runnerCommand = DEFAULT_RUNNER_COMMAND } = options;
  if (insideSandbox(sandboxEnv)) return;
  if (options.policy === "always") {
    throw new SandboxRequiredError(
      `Refusing to run this suite outside the sandbox.\nRun it by ${runnerCommand}, which sets ${sandboxEnv}=1.`,
    );
  }
  if (options.count > options.threshold) {
    throw new SandboxRequiredError(
      `Refusing to run ${options.count} tests bare (> ${options.threshold}).\n` +
        `Run them by ${runnerCommand}, which sets ${sandboxEnv}=1, or select fewer.`,
    );
  }
}

function check(options: RequireSandboxOptions): void {
  switch (options?.policy) {
    case "always":
      return;
    case "threshold":
      if (!Number.isInteger(options.threshold) || options.threshold < 1) {
        throw new TypeError(
          `stricttest: threshold must be an integer >= 1, not ${options.threshold}; policy "always" refuses every bare run`,
        );
      }
      if (!Number.isInteger(options.count) || options.count < 0) {
        throw new TypeError(`stricttest: count must be a non-negative integer, not ${options.count}`);
      }
      return;
    default:
      throw new TypeError(
        `stricttest: requireSandbox needs an explicit policy, "always" or "threshold", not ${JSON.stringify((options as { policy?: unknown } | undefined)?.policy)}`,
      );
  }
}
