"""Projects under the floor: each test runs a real pytest in a process of its own."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from machine import forget_build_machine, lacking

try:
    importlib.metadata.version("stricttest")
except importlib.metadata.PackageNotFoundError:
    # The floor holds for every pytest of an environment, so these tests have one of their own (tools/suites.py).
    collect_ignore_glob = ["*.py"]

SAFE = {
    "stricttest_sockets": "deny",
    "stricttest_socket_allowlist": "",
    "stricttest_unix_socket_allowlist": "",
    "stricttest_loopback": "deny",
    "stricttest_sandbox_required": "false",
}
forget_build_machine()
QUIET = ("-p", "no:cacheprovider", "-p", "no:randomly")
DROPPED = ("PYTEST_", "PYTHON", "HERMETIC_", "STRICTTEST_", "COV_CORE_", "GIT_")


class Ran:
    def __init__(self, code: int, text: str) -> None:
        self.code = code
        self.text = text

    def line(self, start: str) -> str:
        """The rest of the one printed line that begins with `start`; pytest's progress may stand before it."""
        found = [line.split(start, 1)[1] for line in self.text.splitlines() if start in line]
        assert found, f"nothing begins with {start!r} in:\n{self.text}"
        return found[0].strip()


class Floored:
    """A project with the five keys, and ways to run it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.settings(SAFE)

    def settings(self, keys: dict[str, str | list[str]] | None = None, **changes: str | list[str]) -> Floored:
        lines = ["[pytest]"]
        for key, value in {**(keys if keys is not None else SAFE), "addopts": "-p no:asyncio", **changes}.items():
            text = value if isinstance(value, str) else "".join(f"\n    {entry}" for entry in value)
            lines.append(f"{key} = {text}".rstrip())
        (self.root / "pytest.ini").write_text("\n".join(lines) + "\n")
        return self

    def file(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def pytest(self, *options: str, env: dict[str, str | None] | None = None, cwd: Path | None = None) -> Ran:
        words = [sys.executable, "-m", "pytest", *QUIET, *options]
        return self.run(words, env=env, cwd=cwd)

    def run(self, words: list[str], env: dict[str, str | None] | None = None, cwd: Path | None = None) -> Ran:
        variables: dict[str, str | None] = {
            name: value for name, value in os.environ.items() if not name.startswith(DROPPED)
        }
        variables.update({"TMPDIR": None, "TEMP": None, "TMP": None, **(env or {})})
        done = subprocess.run(
            words,
            cwd=cwd or self.root,
            env={name: value for name, value in variables.items() if value is not None},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
            text=True,
            errors="replace",
        )
        return Ran(done.returncode, done.stdout)


@pytest.fixture
def floored(tmp_path: Path) -> Floored:
    root = tmp_path / "project"
    root.mkdir()
    return Floored(root)


@pytest.fixture
def git():
    """Runs git with an identity and no configuration: `git(folder, "init", "-q")`."""

    def run(folder: Path, *words: str) -> str:
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        identity = ["-c", "user.name=dev", "-c", "user.email=dev@example.invalid", "-c", "init.defaultBranch=main"]
        done = subprocess.run(["git", *identity, *words], cwd=folder, env=env, capture_output=True, text=True)
        return done.stdout + done.stderr

    return run


@pytest.fixture(scope="session")
def postgres():
    """Does what needs PostgreSQL: `postgres(cluster.start)`. Where there is none the test is skipped, or fails if the
    run has promised it."""
    from stricttest import pgcluster

    def attempt(work):
        try:
            return work()
        except pgcluster.PostgresUnavailable as error:
            lacking("postgres", str(error))

    return attempt
