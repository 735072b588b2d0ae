"""Shows what Hermetic does, on the flaky suite beside this file: `make demo`.

Six acts: the suite bare, recorded until it fails, its journal read, the journal replayed, the suite repeated under
seeds, and tests that wait for hours. Every count, every time and every word of a failure comes from the runs
themselves. The exit code is 1 if a replay or a seed did not repeat, or an hour took longer than a second, so the demo
is also a test.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUITE = ROOT / "examples" / "flaky"
WAITS = ROOT / "examples" / "waits"
SCRATCH = ROOT / "build" / "demo"
JOURNALS = SCRATCH / "journals"

BARE_RUNS = 12
RECORDED_RUNS_MAX = 40
REPLAYS = 3
STEADY_SEEDS = (1, 2, 3)
SWEPT_SEEDS_MAX = 40
RUNS_PER_SEED = 3
WAITS_RUNS = 5
HOUR_REAL_MAX_S = 1.0

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def paint(text: str, code: str) -> str:
    return f"\033[{code}m{text}\033[0m" if COLOUR else text


def bold(text: str) -> str:
    return paint(text, "1")


def verdict(passed: bool) -> str:
    return paint("ok    ", "32") if passed else paint("FAILED", "31")


def say(text: str = "") -> None:
    print(text, flush=True)


@dataclass(frozen=True)
class Run:
    """One run of the suite: for each failed test the words of the failure, for each test its real seconds."""

    failures: dict[str, str]
    output: str
    seconds: dict[str, float]

    @property
    def selected(self) -> int:
        return len(self.seconds)

    @property
    def passed(self) -> bool:
        return not self.failures

    def names(self) -> str:
        return ", ".join(self.failures)


def failure_of(case: ElementTree.Element) -> str | None:
    """The lines in which pytest states what went wrong, without the addresses at which functions happen to lie."""
    for kind in ("failure", "error"):
        if (node := case.find(kind)) is not None:
            lines = [
                ADDRESS.sub("", line[1:].strip()) for line in (node.text or "").splitlines() if line.startswith("E ")
            ]
            return "\n".join(lines) or node.get("message", "")
    return None


def run_suite(*options: str, suite: Path = SUITE) -> Run:
    report = SCRATCH / "report.xml"
    report.unlink(missing_ok=True)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    words += [f"--basetemp={SCRATCH / 'tmp'}", *options]
    env = {key: value for key, value in os.environ.items() if key not in ("PYTEST_ADDOPTS", "PYTHONHASHSEED")}
    done = subprocess.run(words, cwd=suite, env=env, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not report.exists():
        sys.exit(f"pytest did not run the suite (exit code {done.returncode}):\n{done.stdout}{done.stderr}")
    cases = [case for case in ElementTree.parse(report).iter("testcase") if case.find("skipped") is None]
    found = {case.get("name", "?"): words for case in cases if (words := failure_of(case)) is not None}
    seconds = {case.get("name", "?"): float(case.get("time", "nan")) for case in cases}
    return Run(found, done.stdout + done.stderr, seconds)


def shown(path: Path) -> str:
    return os.path.relpath(path, ROOT)


def act_bare() -> None:
    say(bold(f"1  Bare: the same code and the same tests, {BARE_RUNS} times"))
    say("   $ pytest")
    runs = []
    for number in range(1, BARE_RUNS + 1):
        runs.append(run_suite())
        say(f"   run {number:>2}   {verdict(runs[-1].passed)}   {runs[-1].names()}".rstrip())
    say(f"   {sum(run.passed for run in runs)} of {BARE_RUNS} runs passed. Nothing was changed between them.")


def act_recorded() -> tuple[Path, Run] | None:
    say(bold("2  Recorded: as CI would run it, until a run fails"))
    say(f"   $ pytest --hermetic-all --hermetic-record={shown(JOURNALS)}")
    for number in range(1, RECORDED_RUNS_MAX + 1):
        run = run_suite("--hermetic-all", f"--hermetic-record={JOURNALS}")
        say(f"   run {number:>2}   {verdict(run.passed)}   {run.names() or 'leaves nothing behind'}")
        if not run.passed:
            break
    journals = sorted(path for path in JOURNALS.glob("*.journal") if not path.name.startswith("unfinished"))
    if run.passed or not journals:
        say(f"   no journal after {number} runs; something is wrong")
        return None
    name = next(iter(run.failures))
    [journal] = [path for path in journals if name in path.name][:1] or journals[:1]
    say(f"   kept: {shown(journal)} ({journal.stat().st_size:,} bytes)")
    for line in run.failures[name].splitlines()[:4]:
        say(f"         {line}")
    return journal, run


def act_shown(journal: Path) -> None:
    say(bold("3  Read: what the journal says happened"))
    say("   $ hermetic journal show FILE")
    console = Path(sys.executable).with_name("hermetic")
    done = subprocess.run([console, "journal", "show", journal], capture_output=True, text=True)
    lines = (done.stdout or done.stderr).splitlines()
    for line in lines[:14]:
        say(f"   {line[:116]}")
    if len(lines) > 14:
        say(f"   … {len(lines) - 14} lines more")


def act_replayed(journal: Path, recorded: Run) -> int:
    say(bold(f"4  Replayed: from the file alone, {REPLAYS} times"))
    say("   $ pytest --hermetic-replay=FILE")
    same = 0
    for number in range(1, REPLAYS + 1):
        run = run_suite(f"--hermetic-replay={journal}")
        name = next(iter(run.failures), "")
        equal = bool(name) and recorded.failures.get(name) == run.failures[name]
        same += equal
        told = "the same failure, word for word" if equal else f"NOT the same: {run.failures or 'it passed'}"
        say(f"   replay {number}   {verdict(run.passed)}   {run.selected} test; {told}")
    say(f"   {same} of {REPLAYS} replays failed as recorded.")
    return same


def first_failing_seed() -> int | None:
    """The smallest seed under which the suite fails: a sweep, as a nightly job would make it."""
    for seed in range(1, SWEPT_SEEDS_MAX + 1):
        if not run_suite("--hermetic-all", f"--hermetic-seed={seed}").passed:
            return seed
    return None


def act_seeded() -> bool:
    found = first_failing_seed()
    seeds = [*STEADY_SEEDS, *([found] if found and found not in STEADY_SEEDS else [])]
    say(bold(f"5  Repeatable: {len(seeds)} seeds, {RUNS_PER_SEED} runs of each"))
    say("   $ pytest --hermetic-all --hermetic-seed=N")
    steady = 0
    for seed in seeds:
        runs = [run_suite("--hermetic-all", f"--hermetic-seed={seed}") for _ in range(RUNS_PER_SEED)]
        same = all(run.failures == runs[0].failures for run in runs)
        steady += same
        told = f"{RUNS_PER_SEED} of {RUNS_PER_SEED} alike" if same else "NOT alike"
        say(f"   seed {seed:>2}   {verdict(runs[0].passed)}   {told}   {runs[0].names()}".rstrip())
    say(f"   {steady} of {len(seeds)} seeds gave one outcome each.")
    if found:
        say(f"   Seed {found} is the first that fails: a failure on demand, to repair at leisure.")
    return steady == len(seeds)


def act_waits() -> bool:
    say(bold(f"6  Waits: three tests that wait for an hour or more each, {WAITS_RUNS} times"))
    say("   $ cd examples/waits; pytest --hermetic-all")
    runs = [run_suite("--hermetic-all", suite=WAITS) for _ in range(WAITS_RUNS)]
    for name in runs[0].seconds:
        times = [run.seconds[name] for run in runs]
        failed = sum(name in run.failures for run in runs)
        told = f"{min(times) * 1000:.0f} to {max(times) * 1000:.0f} ms"
        say(f"   {verdict(not failed)}   {name:<30} {WAITS_RUNS - failed} of {WAITS_RUNS} passed, in {told}")
    return all(run.passed and max(run.seconds.values()) < HOUR_REAL_MAX_S for run in runs)


def main() -> int:
    shutil.rmtree(SCRATCH, ignore_errors=True)
    JOURNALS.mkdir(parents=True)
    begin = time.monotonic()
    say(bold("A suite that fails now and then, and what Hermetic makes of it"))
    say("The suite: examples/flaky, five tests of a corner shop: the clock, random numbers, identifiers,")
    say(f"a folder's order, a service on the loopback. {platform.python_implementation()} {platform.python_version()}.")
    say()
    act_bare()
    say()
    kept = act_recorded()
    if kept is None:
        return 1
    say()
    act_shown(kept[0])
    say()
    same = act_replayed(*kept)
    say()
    steady = act_seeded()
    say()
    quick = act_waits()
    say()
    say(bold(f"Done in {time.monotonic() - begin:.0f} s. Next, in a project of your own"))
    say("   pip install hermetic-sandbox")
    say("   pytest --hermetic-all                                # repeatable; the seed is in the header")
    say("   pytest --hermetic-all --hermetic-record=journals/    # in CI; keep journals/ of a failed job")
    say("   pytest --hermetic-replay=journals/<file>.journal     # at home; the test is found by itself")
    return 0 if same == REPLAYS and steady and quick else 1


if __name__ == "__main__":
    sys.exit(main())
