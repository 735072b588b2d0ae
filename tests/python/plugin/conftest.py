"""Runs pytest in a process of its own on a small suite written for the purpose, and reads what it printed.

Only the plugins that a test names take part, so that what is installed beside Hermetic does not change the outcome.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

PLUGINS = {
    "xdist": "xdist.plugin",
    "rerunfailures": "pytest_rerunfailures",
    "timeout": "pytest_timeout",
    "asyncio": "pytest_asyncio.plugin",
    "anyio": "anyio.pytest_plugin",
    "hypothesis": "_hypothesis_pytestplugin",
    "cov": "pytest_cov.plugin",
    "randomly": "pytest_randomly",
    "pyfakefs": "pyfakefs.pytest_plugin",
}
COUNTS = re.compile(r"(\d+) (passed|failed|error|errors|skipped|deselected|rerun|xfailed|xpassed)\b")
SECONDS_MAX = 120
"""A run that hangs is ended after this long; none is expected to come near it."""


@dataclass(frozen=True)
class Outcome:
    """How a run of pytest ended."""

    code: int
    text: str

    @property
    def counts(self) -> dict[str, int]:
        """The closing line in numbers, without warnings; "error" also for several."""
        lines = [line for line in self.text.splitlines() if COUNTS.search(line) and " in " in line]
        found = COUNTS.findall(lines[-1]) if lines else []
        return {kind.replace("errors", "error"): int(number) for number, kind in found}

    def said(self, word: str) -> list[str]:
        """What tests printed behind `word`, in order."""
        return [
            line.split(word, 1)[1].strip() for line in self.text.splitlines() if word in line and "print(" not in line
        ]

    def section(self, title: str) -> list[str]:
        """The lines below a heading, up to the next one."""
        lines = iter(self.text.splitlines())
        for line in lines:
            if re.fullmatch(rf"[=-]+ {re.escape(title)} [=-]+", line):
                break
        body = []
        for line in lines:
            if re.fullmatch(r"[=-]+ .* [=-]+", line):
                break
            body.append(line)
        return body

    @property
    def commands(self) -> list[str]:
        return self.section("hermetic repro commands")


class Suite:
    """A directory with test files."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, files: dict[str, str]) -> Suite:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return self

    def run(
        self,
        *arguments: str,
        plugins: tuple[str, ...] = (),
        directory: str = ".",
        environment: dict[str, str | None] | None = None,
    ) -> Outcome:
        """Runs pytest with these arguments and these plugins, from `directory` below the suite."""
        loaded = ["-p", "no:cacheprovider", "-p", "hermetic.pytest_plugin"]
        for name in plugins:
            pytest.importorskip(PLUGINS[name].partition(".")[0], reason=f"needs the pytest plugin {name}")
            loaded += ["-p", PLUGINS[name]]
        return self.execute([sys.executable, "-m", "pytest", *loaded, *arguments], directory, environment or {})

    def execute(self, command: list[str], directory: str, environment: dict[str, str | None]) -> Outcome:
        variables: dict[str, str | None] = {
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": None,
            "PYTHONHASHSEED": None,
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "240",
            **environment,
        }
        done = subprocess.run(
            command,
            cwd=self.root / directory,
            env={
                name: value
                for name, value in variables.items()
                if value is not None and not name.startswith("COV_CORE")
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        # Shown by the outer pytest where a test fails.
        print(f"$ {' '.join(command)}\n{done.stdout}")
        return Outcome(done.returncode, done.stdout)

    def journals(self, directory: str = "journals") -> list[Path]:
        """The finished journals, by name."""
        return sorted(
            path for path in (self.root / directory).glob("*.journal") if not path.name.startswith("unfinished-")
        )

    def index(self, directory: str = "journals") -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads((self.root / directory / "index.json").read_text())["journals"]
        return found


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """An empty suite with an ini file."""
    return Suite(tmp_path).write({"pytest.ini": "[pytest]\n"})


@pytest.fixture
def bare_suite(tmp_path: Path) -> Suite:
    """An empty suite without an ini file."""
    return Suite(tmp_path)
