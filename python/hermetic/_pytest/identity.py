"""Which seed a test has: from its node id, in a form that does not depend on where pytest was started.

With an ini file a node id is relative to the directory of that file. Without one pytest takes the directory it was
started from, so the same test has another id in a subdirectory; then the path is counted from the project's top, as far
as one shows.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from hermetic import _native
from hermetic._pytest.options import SEED_LIMIT

PROJECT_MARKS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg", "tox.ini")
"""A directory that holds one of these is taken for the top of a project."""


class Identities:
    """Derives seeds, remembering what it found out about each file."""

    def __init__(self, config: pytest.Config, base_seed: int) -> None:
        self._base_seed = base_seed
        self._root = str(config.rootpath)
        self._is_rooted = config.inipath is not None
        self._tops: dict[str, str] = {}
        self._roots: dict[str, str] = {}
        self._stable_paths: dict[str, str] = {}

    def seed(self, node: pytest.Item | pytest.Collector, *, suffix: str = "", base: int | None = None) -> int:
        """The seed of a test, or with `suffix` of something that belongs to a node; `base` replaces the session's."""
        return _native.seed_for_test(self.of(node) + suffix, self._base_seed if base is None else base % SEED_LIMIT)

    def adopt(self, item: pytest.Item, config: dict[str, Any]) -> None:
        """Takes over the base seed of the run that a journal with this configuration is from, for what is not in the
        journal."""
        seed = config.get("seed")
        if seed is not None and "seed" not in (config.get("pinned") or ()):
            # XOR with the hash of the node id leads to the test's seed, and back.
            self._base_seed = _native.seed_for_test(self.of(item), int(seed) % SEED_LIMIT)

    def of(self, node: pytest.Item | pytest.Collector) -> str:
        """The node id, with a path that is the same from every directory."""
        node_id: str = node.nodeid
        if self._is_rooted or not node_id:
            return node_id
        path, separator, rest = node_id.partition("::")
        stable = self._stable_paths.get(path)
        if stable is None:
            file = str(getattr(node, "path", ""))
            stable = os.path.relpath(file, self.root_of(node)).replace(os.sep, "/") if file else path
            self._stable_paths[path] = stable
        return stable + separator + rest

    def root_of(self, node: pytest.Item | pytest.Collector) -> str:
        """The directory that paths of this node are counted from: the root directory, or without an ini file the top of
        the project that the file is in."""
        if self._is_rooted:
            return self._root
        path = node.nodeid.partition("::")[0]
        root = self._roots.get(path)
        if root is None:
            root = self._roots[path] = self._find_root(node)
        return root

    def _find_root(self, node: pytest.Item | pytest.Collector) -> str:
        file = str(getattr(node, "path", ""))
        if not file:
            return self._root
        directory = os.path.dirname(file)
        top = self._tops.get(directory)
        if top is None:
            top = self._tops[directory] = _top(directory)
        return top


def _top(start: str) -> str:
    """The nearest directory from `start` upwards that looks like a project's top; else the one holding its package."""
    directory = start
    while not any(os.path.exists(os.path.join(directory, mark)) for mark in PROJECT_MARKS):
        parent = os.path.dirname(directory)
        if parent == directory:
            break
        directory = parent
    else:
        return directory
    while os.path.exists(os.path.join(start, "__init__.py")):
        start = os.path.dirname(start)
    return start
