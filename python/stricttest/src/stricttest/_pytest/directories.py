"""Working directories: one of its own for every test, one for what runs between tests, the project for the harness.

A test that asks for `tmp_path` works there. Any other gets an empty directory that is used again as long as it stays
empty, so that a test without files costs no directory. What is imported at collection, and fixtures wider than a
test, work in a directory of the session. Everything that pytest and its plugins do for themselves stays where the run
was started.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MARKER = "repo_cwd"
MARKER_LINE = (
    "repo_cwd: run the test where pytest was started, in the project, instead of in a directory of its own; an "
    "unanchored git command of such a test works on the project's repository"
)


class Directories:
    def __init__(self, config: pytest.Config, root: str, import_cwd: str) -> None:
        self._start = str(config.invocation_params.dir)
        self._base = root
        self._is_isolated = import_cwd == "isolated"
        self._count = 0
        self._empty: str | None = None
        self._session: str | None = None
        self._item: pytest.Item | None = None

    @property
    def session(self) -> str:
        """Where imports and wider fixtures work; made when it is first needed."""
        if self._session is None:
            self._session = os.path.join(self._base, "session")
            os.makedirs(self._session, exist_ok=True)
        return self._session

    def use_base(self, base: Path) -> None:
        """From now on directories are made below pytest's own temporary directory, which keeps the last runs for a
        look."""
        self._base = os.path.join(str(base), "cwd")

    @contextlib.contextmanager
    def outside_of_tests(self) -> Iterator[None]:
        """Imports and wider fixtures."""
        if not self._is_isolated:
            yield
            return
        before = _current()
        os.chdir(self.session)
        try:
            yield
        finally:
            os.chdir(before if os.path.isdir(before) else self._start)

    def enter(self, item: pytest.Item) -> None:
        """A test begins."""
        self._item = item
        if item.get_closest_marker(MARKER) is not None:
            os.chdir(self._start)
            return
        if self._empty is None:
            self._empty = os.path.join(self._base, str(self._count))
            self._count += 1
            os.makedirs(self._empty)
        os.chdir(self._empty)

    def leave(self) -> None:
        """It has ended: the harness is back where the run was started."""
        self._item = None
        os.chdir(self._start)
        # A directory with something in it belongs to that test.
        if self._empty is not None and _has_content(self._empty):
            self._empty = None

    def tmp_path_is_there(self, path: Path) -> None:
        """A test's `tmp_path` was made: from now on it is the working directory."""
        if self._item is not None and self._empty is not None and _current() == self._empty:
            os.chdir(path)


def _current() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _has_content(path: str) -> bool:
    try:
        return bool(os.listdir(path))
    except OSError:
        return True


def put_tmp_path_first(items: list[pytest.Item]) -> None:
    """Moves `tmp_path` before the other fixtures of a test, so that they too work in it."""
    seen: set[int] = set()
    for item in items:
        names: list[str] | None = getattr(item, "fixturenames", None)
        if names is None or id(names) in seen or "tmp_path" not in names:
            continue
        seen.add(id(names))
        info: Any = getattr(item, "_fixtureinfo", None)
        defs = getattr(info, "name2fixturedefs", {})
        first = next((at for at, name in enumerate(names) if _is_of_test(name, defs)), None)
        if first is not None and names[first] != "tmp_path":
            names.remove("tmp_path")
            names.insert(first, "tmp_path")


def _is_of_test(name: str, defs: dict[str, Any]) -> bool:
    found: Any = defs.get(name)
    return bool(found) and found[-1].scope == "function" and name != "request"
