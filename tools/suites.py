"""Runs the test suites: Rust's, Go's and Node's once, Python's once on each CPython of the machine.

The oldest and the newest CPython run all of Python's suites. Those between run what an interpreter can make a
difference to, and leave out the plugin's runs and the flaky programs, which take most of the time. Naming one, as in
`python:3.12`, runs all of it there.

Closes with one line for each. `lockstep` compares which shared cases the languages ran.

The closing lines are the runners' own. Output goes straight through and is kept under `build/logs/`. A suite that fails
does not stop the ones after it; the exit code is 1 if any failed. Environments are left to `environments.py`.

    $ python3 tools/suites.py rust
    $ python3 tools/suites.py python --wheel build/wheels/hermetic_sandbox-1.0.0-….whl -- -k clock
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from environments import ROOT, EnvironmentFailed, add, ensure
from interpreters import Interpreter, discover

LOGS = ROOT / "build" / "logs"
GO_FOLDERS = ["go", "examples/polyglot/go"]
NODE_INSTALLS = {"typescript": ["npm", "ci"], "examples/polyglot/node": ["npm", "install", "--no-audit", "--no-fund"]}
CORE = ["--ignore=plugin", "--ignore=cases/test_zoo.py", "--ignore=cases/test_plugin.py", "."]
"""What the interpreters between the oldest and the newest run."""
STRICTTEST = ROOT / "python" / "stricttest"
REQUIREMENTS = ROOT / "tests" / "python" / "requirements.txt"
PYTEST_CLOSING = re.compile(r"\d+ (passed|failed|skipped|errors?)\b.* in [\d.]+s")
GO_VERDICT = re.compile(r"^--- (PASS|FAIL|SKIP): ")
NODE_COUNT = re.compile(r"^(?:#|ℹ) (pass|fail|skipped) (\d+)$")
CARGO_CLOSING = re.compile(r"^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;")


Counting = Callable[[str], tuple[str, int] | None]


@dataclass(frozen=True)
class Verdict:
    """How one suite ended: its name, its runner's closing words and whether it passed."""

    name: str
    closing: str
    passed: bool
    seconds: float


def stream(name: str, words: list[str], cwd: Path, env: dict[str, str]) -> tuple[int, list[str], float]:
    """Runs a command, shows and keeps what it prints, and returns its exit code, its lines and its time in seconds."""
    LOGS.mkdir(parents=True, exist_ok=True)
    begin, lines = time.monotonic(), []
    print(f"\n--- {name}: {' '.join(words)}", flush=True)
    with (
        (LOGS / f"{name.replace(' ', '-')}.txt").open("w") as log,
        subprocess.Popen(
            words, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as child,
    ):
        assert child.stdout is not None
        for line in child.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            log.write(line)
            lines.append(line.rstrip("\n"))
    return child.returncode, lines, time.monotonic() - begin


def run_rust(extra: list[str]) -> Verdict:
    code, lines, seconds = stream("rust", ["cargo", "test", *(extra or ["--workspace"])], ROOT, dict(os.environ))
    counts = [tuple(map(int, found.groups())) for line in lines if (found := CARGO_CLOSING.match(line))]
    passed, failed, ignored = (sum(column) for column in zip(*counts)) if counts else (0, 0, 0)
    closing = f"{passed} passed; {failed} failed; {ignored} ignored, in {len(counts)} test programs"
    return Verdict(
        "rust", closing if code == 0 or failed else f"{closing}; exit code {code}", code == 0 and passed > 0, seconds
    )


def run_python(interpreter: Interpreter, wheel: Path, extra: list[str], suite: str = "python") -> Verdict:
    name = f"{suite} {interpreter.label}"
    is_strict = suite == "stricttest"
    try:
        # stricttest isolates every pytest of its environment, so its suite has environments of its own.
        kind = "strict" if is_strict else "test"
        folder = ensure(f"{kind}-{interpreter.label}", interpreter.path, [REQUIREMENTS], wheel)
        if is_strict:
            add(folder, STRICTTEST)
    except EnvironmentFailed as error:
        print(error, flush=True)
        return Verdict(name, f"no environment: {str(error).splitlines()[0]}", False, 0.0)
    # The suites of all interpreters share a machine; two workers each keep its cores busy while programs start.
    # A test that fails is tried again and counted as such in the closing line: many of them race real programs.
    retries = [] if is_strict else ["-p", "rerunfailures", "--reruns", "2", "--timeout", "300"]
    words = [str(folder / "bin" / "python"), "-m", "pytest", "-q", "-n", "2", *retries, *(extra or ["."])]
    dropped = ("PYTEST_", "PYTHON", "HERMETIC_")
    env = {key: value for key, value in os.environ.items() if not key.startswith(dropped) or key == "HERMETIC_PROMISES"}
    home = ROOT / "tests" / "python" / "stricttest" if is_strict else ROOT / "tests" / "python"
    code, lines, seconds = stream(name, words, home, env)
    closing = next((line.strip("= ") for line in reversed(lines) if PYTEST_CLOSING.search(line)), f"exit code {code}")
    return Verdict(name, closing, code == 0, seconds)


def run_folders(name: str, words: list[str], folders: list[str], count: Counting) -> Verdict:
    """Runs one command in several folders; `count` says of a line what it counts, and how much."""
    counts, passed, seconds = {"passed": 0, "failed": 0, "skipped": 0}, True, 0.0
    program = shutil.which(words[0])
    if program is None:
        return Verdict(name, f"{words[0]} is not installed; docs/{name}.md says which release is needed", False, 0.0)
    for folder in folders:
        env = {key: value for key, value in os.environ.items() if not key.startswith(("NODE_TEST_", "STRICTTEST_"))}
        code, lines, took = stream(f"{name} {folder.replace('/', '-')}", words, ROOT / folder, env)
        for kind, number in filter(None, map(count, lines)):
            counts[kind] += number
        passed, seconds = passed and code == 0, seconds + took
    closing = "; ".join(f"{number} {kind}" for kind, number in counts.items())
    return Verdict(name, f"{closing}, in {len(folders)} folders", passed and counts["passed"] > 0, seconds)


def go_count(line: str) -> tuple[str, int] | None:
    found = GO_VERDICT.match(line)
    return ({"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}[found[1]], 1) if found else None


def node_count(line: str) -> tuple[str, int] | None:
    found = NODE_COUNT.match(line)
    return ({"pass": "passed", "fail": "failed", "skipped": "skipped"}[found[1]], int(found[2])) if found else None


def run_go(extra: list[str]) -> Verdict:
    return run_folders("go", ["go", "test", "-count=1", "-v", *(extra or ["./..."])], GO_FOLDERS, go_count)


def run_node(extra: list[str]) -> Verdict:
    for folder, words in NODE_INSTALLS.items():
        marker = ROOT / folder / "node_modules" / ".package-lock.json"
        manifests = [path for name in ("package.json", "package-lock.json") if (path := ROOT / folder / name).exists()]
        is_fresh = marker.exists() and marker.stat().st_mtime >= max(path.stat().st_mtime for path in manifests)
        if not is_fresh and shutil.which("npm"):
            code, _, seconds = stream(f"npm {folder.replace('/', '-')}", words, ROOT / folder, dict(os.environ))
            if code != 0:
                return Verdict("node", f"{' '.join(words)} failed in {folder}", False, seconds)
    return run_folders(
        "node", ["npm", "test", "--silent", *(["--", *extra] if extra else [])], list(NODE_INSTALLS), node_count
    )


def run_lockstep(_: list[str]) -> Verdict:
    words = [sys.executable, "tests/lockstep/lockstep.py"]
    code, lines, seconds = stream("lockstep", words, ROOT, dict(os.environ))
    return Verdict(
        "lockstep", lines[-1].removeprefix("lockstep: ") if lines else f"exit code {code}", code == 0, seconds
    )


ONCE = {"rust": run_rust, "go": run_go, "node": run_node, "lockstep": run_lockstep}
"""Suites that run once, whatever the machine has."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Run test suites and close with one line for each.")
    parser.add_argument(
        "suites",
        nargs="*",
        default=["rust", "python"],
        metavar="rust|go|node|lockstep|python[:LABEL]|stricttest[:LABEL]",
    )
    parser.add_argument("--wheel", type=Path, help="the wheel under test; needed for python")
    own, extra = sys.argv[1:], []
    if "--" in own:
        own, extra = own[: own.index("--")], own[own.index("--") + 1 :]
    given = parser.parse_args(own)
    verdicts = []
    for suite in given.suites:
        language, _, label = suite.partition(":")
        if language in ONCE:
            verdicts.append(ONCE[language](extra))
        elif language in ("python", "stricttest") and given.wheel:
            chosen = [one for one in discover() if one.label.startswith(label)]
            if not chosen:
                parser.error(
                    f"no CPython {label or '3.10 or newer'} on this machine; python3 tools/interpreters.py lists them"
                )
            ends = (chosen[0], chosen[-1])
            if language == "stricttest" and not label:
                chosen = list(dict.fromkeys(ends))
            for one in chosen:
                verdicts.append(run_python(one, given.wheel, extra or ([] if one in ends else CORE), language))
        else:
            parser.error(
                f"unknown suite {suite!r}; {', '.join(ONCE)}, python and stricttest exist; these two take :LABEL "
                f"and need --wheel"
            )
    width = max(len(verdict.name) for verdict in verdicts)
    print()
    for verdict in verdicts:
        mark = "ok    " if verdict.passed else "FAILED"
        print(f"{verdict.name:<{width}}  {mark}  {verdict.closing}  ({verdict.seconds:.0f} s)")
    return 0 if all(verdict.passed for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
