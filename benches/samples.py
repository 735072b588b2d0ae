"""The kinds of sample a row is made of: a probe's number, or what a whole process cost.

Each sample knows the environment it runs in and takes itself afresh every time, so the runner can alternate samples
in any order. Nothing is averaged here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / "build" / "bench"
PROBE = ROOT / "benches" / "probe.py"
HEAVY = ("numpy", "pandas", "sqlalchemy", "pydantic", "requests", "jinja2", "cryptography", "lxml.etree")
TESTS_PER_FILE = 100


class SampleFailed(Exception):
    """A sample could not be taken; the text is what the process printed."""


def python_of(environment: str) -> str:
    return str(ROOT / ".venvs" / environment / "bin" / "python")


def bare_environment() -> dict[str, str]:
    drop = ("PYTEST_", "PYTHON", "HERMETIC_", "VIRTUAL_ENV")
    return {key: value for key, value in os.environ.items() if not key.startswith(drop)}


@dataclass(frozen=True)
class Probe:
    """A number that `probe.py` measures by itself, in the unit of the row."""

    environment: str
    words: tuple[str, ...]

    def take(self) -> float:
        command = [python_of(self.environment), "-W", "ignore", str(PROBE), *self.words]
        done = subprocess.run(command, capture_output=True, text=True, env=bare_environment(), cwd=ROOT / "benches")
        if done.returncode != 0:
            raise SampleFailed(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return float(json.loads(done.stdout))


@dataclass(frozen=True)
class Process:
    """Milliseconds of processor time, user and system, of a whole Python process.

    Processor time and not elapsed time: it is what the tool costs, and it does not move with what else the machine
    does.
    """

    environment: str
    words: tuple[str, ...]

    def take(self) -> float:
        command = [python_of(self.environment), *self.words]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=bare_environment())
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise SampleFailed(f"{' '.join(command)} ended with exit code {child.returncode}")
        return (usage.ru_utime + usage.ru_stime) * 1000


@dataclass(frozen=True)
class Example:
    """A number that an example program of the Rust crate measures by itself, built as tests are."""

    name: str

    def take(self) -> float:
        command = ["cargo", "run", "--quiet", "--package", "hermetic", "--example", self.name]
        done = subprocess.run(command, capture_output=True, text=True, env=bare_environment(), cwd=ROOT)
        if done.returncode != 0:
            raise SampleFailed(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return float(done.stdout)


@dataclass(frozen=True)
class Suite:
    """Microseconds that the median test takes in a run of many trivial ones; see `suite_clock.py`."""

    environment: str
    tests: int
    heavy: bool
    options: tuple[str, ...] = ()

    def take(self) -> float:
        folder = suite_folder(self.tests, self.heavy)
        shutil.rmtree(folder / "journals", ignore_errors=True)
        options = [option.format(journals=folder / "journals") for option in self.options]
        words = (
            "-m",
            "pytest",
            "-q",
            "-p",
            "suite_clock",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(folder),
            str(folder),
        )
        command = [python_of(self.environment), *words, *options]
        variables = {**bare_environment(), "PYTHONPATH": str(ROOT / "benches")}
        return figure_of(command, "suite", variables, ROOT)


@dataclass(frozen=True)
class Audit:
    """Nanoseconds that a call with an audit event takes inside a test, with whatever hooks the environment's plugins
    have added, or with an empty one in C."""

    environment: str
    event: str
    is_empty: bool = False

    def take(self) -> float:
        folder = ROOT / "benches" / "audit"
        variables = {**bare_environment(), "BENCH_EVENT": self.event}
        if self.is_empty:
            variables["BENCH_EMPTY_HOOK"] = str(empty_hook())
        words = ("-W", "ignore", "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "--rootdir", str(folder))
        command = [python_of(self.environment), *words, str(folder / "test_audit.py")]
        return figure_of(command, "audit", variables, folder)


def figure_of(command: list[str], word: str, variables: dict[str, str], folder: Path) -> float:
    """The number that a pytest of ours prints after this word and a colon."""
    done = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=folder)
    figures = [line.removeprefix(f"{word}: ") for line in done.stdout.splitlines() if line.startswith(f"{word}: ")]
    if done.returncode != 0 or len(figures) != 1:
        raise SampleFailed(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return float(figures[0])


def empty_hook() -> Path:
    """The library with an empty audit hook, built once."""
    library = SCRATCH / "empty_hook.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        source = ROOT / "benches" / "audit" / "empty.c"
        done = subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], capture_output=True, text=True)
        if done.returncode != 0:
            raise SampleFailed(f"cannot build {source}: {done.stderr}")
    return library


@dataclass(frozen=True)
class JournalSize:
    """Bytes of the journal that one failing test without a single reading leaves."""

    environment: str

    def take(self) -> float:
        folder = SCRATCH / "empty"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "test_empty.py").write_text("def test_empty():\n    assert False\n")
        options = ("--hermetic-all", f"--hermetic-record={folder / 'journals'}")
        command = [python_of(self.environment), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder), *options]
        done = subprocess.run(command, capture_output=True, text=True, env=bare_environment(), cwd=folder)
        kept = [path for path in (folder / "journals").glob("*") if path.name != "index.json"]
        if done.returncode != 1 or len(kept) != 1:
            raise SampleFailed(f"{' '.join(command)} kept {len(kept)} journals\n{done.stdout}{done.stderr}")
        return float(kept[0].stat().st_size)


def suite_folder(tests: int, heavy: bool) -> Path:
    """A folder of trivial tests, made once; the heavy one imports eight libraries in its conftest."""
    folder = SCRATCH / f"suite-{tests}-{'heavy' if heavy else 'light'}"
    if not folder.exists():
        folder.mkdir(parents=True)
        (folder / "conftest.py").write_text("".join(f"import {name}\n" for name in HEAVY) if heavy else "")
        for part in range(tests // TESTS_PER_FILE):
            body = "".join(f"def test_{number:03}():\n    pass\n\n\n" for number in range(TESTS_PER_FILE))
            (folder / f"test_part_{part:02}.py").write_text(body)
    return folder
