"""Other plugins that keep randomness or time of their own, and how a test's sandbox reaches it.

Each neighbour is looked for among the modules already imported: none is imported for the purpose.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Generator
from contextlib import suppress
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.fixtures import FixtureDef

    from hermetic._pytest.plugin import Run

WIDER_LOOP = re.compile(r"_(session|package|module|class)_scoped_runner")
"""Fixtures of pytest-asyncio that keep an event loop over several tests."""

SEEDER_GROUP = "pytest_randomly.random_seeder"
SEEDER_LIMIT = 2**32
"""Seeders are used to what NumPy accepts."""


class Neighbours:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._option = config.option
        self._seeders: list[Any] = []
        self._randomly: Any = None
        self._loop_scope = "function"
        self.has_seeders = False
        self.has_loops = False
        """Somebody may keep an event loop over several tests."""

    def find(self) -> None:
        """Looks up who is to be seeded. Outside any sandbox: what is installed is not the test's question."""
        modules = sys.modules
        self.has_loops = "pytest_asyncio" in modules or "anyio.pytest_plugin" in modules
        if "pytest_asyncio" in modules:
            with suppress(ValueError):  # releases before 0.26 do not know the key
                self._loop_scope = self._config.getini("asyncio_default_test_loop_scope") or "function"
        self._seeders = [point.load() for point in metadata.entry_points(group=SEEDER_GROUP)]
        if isinstance(getattr(self._option, "randomly_seed", None), int):
            # By the name of its entry point, or by that of the module, as with `-p`.
            plugin = self._config.pluginmanager.get_plugin
            self._randomly = plugin("randomly") or plugin("pytest_randomly")
            # It calls the same seeders, and looks them up at its first use.
            if getattr(self._randomly, "entrypoint_reseeds", ()) is None:
                self._randomly.entrypoint_reseeds = list(self._seeders)
        self.has_seeders = bool(self._seeders) or self._randomly is not None

    def seed_all(self, seed: int) -> None:
        """Seeds what pytest-randomly would: everybody who registered, and with it the libraries that it knows."""
        reseed = getattr(self._randomly, "_reseed", None)
        if reseed is not None:
            # It adds the offset to a number of its own.
            reseed(self._config, seed - self._option.randomly_seed)
            return
        for seeder in self._seeders:
            seeder(seed % SEEDER_LIMIT)

    def silence(self, run: Run) -> None:
        """Keeps pytest-randomly, where it is at work, from seeding over the sandboxes of this run."""
        if self._randomly is not None:
            self._config.pluginmanager.register(Silence(run, self._option), "hermetic-silence")

    def keeps_loop(self, item: pytest.Item) -> bool:
        """Whether the test runs on an event loop that lives longer than the test."""
        if not _is_async(getattr(item, "obj", None)):
            return False
        marker = item.get_closest_marker("asyncio")
        if marker is not None:
            scope = marker.kwargs.get("loop_scope") or marker.kwargs.get("scope") or self._loop_scope
            if scope != "function":
                return True
        wide = (found[-1] for found in item._fixtureinfo.name2fixturedefs.values())  # type: ignore[attr-defined]
        return any(fixture.scope != "function" and _is_async(fixture.func) for fixture in wide)

    def is_loop(self, fixture: FixtureDef[Any]) -> bool:
        """Whether a wider fixture is an event loop, or runs on one."""
        if not self.has_loops:
            return False
        scope = getattr(fixture.func, "_loop_scope", None)
        return bool(WIDER_LOOP.fullmatch(fixture.argname)) or _is_async(fixture.func) or scope not in (None, "function")


class Silence:
    """Around each phase of a test, inside the wrappers of `protocol`: registered after them."""

    def __init__(self, run: Run, option: Any) -> None:
        self._run = run
        self._option = option

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self) -> Generator[None, Any, Any]:
        return (yield from self._phase())

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        return (yield from self._phase())

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self) -> Generator[None, Any, Any]:
        return (yield from self._phase())

    def _phase(self) -> Generator[None, Any, Any]:
        attempt = self._run.attempt
        if attempt is None or attempt.seed is None:
            return (yield)
        was = self._option.randomly_reset_seed
        self._option.randomly_reset_seed = False
        try:
            return (yield)
        finally:
            self._option.randomly_reset_seed = was


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
