"""What all Python tests share: programs and projects in a process of their own, and a listener on the loopback."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from machine import forget_build_machine

pytest_plugins = ["pytester"]

# A run of pytest inside a test must not inherit the outer run's settings, nor a shuffled order.
DROPPED = ("PYTEST_", "PYTHON", "HERMETIC_", "COV_CORE_")
"""Starts of variables that a suite under test does not get from the machine that tests it."""
forget_build_machine()
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
QUIET = ("-p", "no:cacheprovider", "-p", "no:randomly")


@dataclass(frozen=True)
class Ran:
    """How a process ended and what it printed, both streams in one text."""

    code: int
    text: str

    def lines(self, start: str) -> list[str]:
        """The printed lines that begin with `start`."""
        return [line for line in self.text.splitlines() if line.startswith(start)]

    def told(self) -> Any:
        """The JSON that the program printed as its last line, having ended well."""
        assert self.code == 0, self.text
        return json.loads(self.text.splitlines()[-1])

    def errors(self) -> list[str]:
        """The lines in which pytest says what went wrong, without the addresses of functions that it names."""
        return [ADDRESS.sub(" at 0x…", line[1:].strip()) for line in self.lines("E  ") if not line.endswith("%]")]

    def outcomes(self) -> dict[str, int]:
        """The closing line's counts: {"passed": 2, "failed": 1}."""
        for line in reversed(self.text.splitlines()):
            if re.search(r"\d+ \w+.* in [\d.]+s", line):
                return {word.rstrip("s"): int(count) for count, word in re.findall(r"(\d+) (\w+)", line)}
        return {}


def environment(changes: dict[str, str | None] | None = None) -> dict[str, str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith(DROPPED)}
    env.update(changes or {})
    return {key: value for key, value in env.items() if value is not None}


def run(words: list[str], cwd: Path, env: dict[str, str | None] | None, timeout: float) -> Ran:
    done = subprocess.run(
        words,
        cwd=cwd,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout,
        text=True,
        errors="replace",
    )
    return Ran(done.returncode, done.stdout)


class Project:
    """A folder with a test suite in it, and ways to run that suite."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, **files: str) -> Project:
        """Writes `name="text"` as `name.py`; a key may hold slashes as double underscores."""
        for name, text in files.items():
            self.file(name.replace("__", "/") + ".py", text)
        return self

    def file(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def pytest(
        self,
        *options: str,
        cwd: Path | None = None,
        env: dict[str, str | None] | None = None,
        timeout: float = 90,
    ) -> Ran:
        return run([sys.executable, "-m", "pytest", *QUIET, *options], cwd or self.root, env, timeout)

    def python(self, *words: str | Path, timeout: float = 60) -> Ran:
        """Runs the interpreter under test."""
        return run([sys.executable, *map(str, words)], self.root, None, timeout)

    def journals(self, folder: str = "journals") -> list[Path]:
        """The finished journals that runs with `--hermetic-record=<folder>` have left."""
        kept = (self.root / folder).glob("*") if (self.root / folder).exists() else ()
        return sorted(path for path in kept if path.name != "index.json" and not path.name.startswith("unfinished"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def program(tmp_path: Path):
    """Runs a piece of Python in a process of its own: `program("print(1)", env={"TZ": "UTC"}).text`."""

    def start(code: str, *words: str, env: dict[str, str | None] | None = None, timeout: float = 60) -> Ran:
        return run([sys.executable, "-c", textwrap.dedent(code), *words], tmp_path, env, timeout)

    return start


@pytest.fixture
def listener():
    """A TCP socket that listens on the loopback, and its port."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(8)
        server.settimeout(5)
        yield server, server.getsockname()[1]
