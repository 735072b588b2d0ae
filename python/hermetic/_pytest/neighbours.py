"""Other plugins that keep randomness or time of their own, and how a test's sandbox reaches it.

Each neighbour is looked for among the modules already imported: none is imported for the purpose.
"""

from __future__ import annotations

import random
import re
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hermetic._pytest.attempt import Attempt

WIDER_LOOP = re.compile(r"_(session|package|module|class)_scoped_runner")
"""Fixtures of pytest-asyncio that keep an event loop over several tests."""

SEEDER_GROUP = "pytest_randomly.random_seeder"
SEEDER_LIMIT = 2**32
"""Seeders are used to what NumPy accepts."""


class Neighbours:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._option = config.option
        self._seeders: list[Any] | None = None
        self._randomly: Any = None

    def find(self) -> None:
        """Looks up, once, who is to be seeded. Outside any sandbox: what is installed is not the test's question."""
        if self._seeders is not None:
            return
        self._seeders = [point.load() for point in metadata.entry_points(group=SEEDER_GROUP)]
        if isinstance(getattr(self._option, "randomly_seed", None), int):
            # By the name of its entry point, or by that of the module, as with `-p`.
            plugin = self._config.pluginmanager.get_plugin
            self._randomly = plugin("randomly") or plugin("pytest_randomly")
            # It calls the same seeders, and looks them up at its first use.
            if getattr(self._randomly, "entrypoint_reseeds", ()) is None:
                self._randomly.entrypoint_reseeds = list(self._seeders)

    def seed_all(self, seed: int) -> None:
        """Seeds what pytest-randomly would: everybody who registered, and with it the libraries that it knows."""
        reseed = getattr(self._randomly, "_reseed", None)
        if reseed is not None:
            # It adds the offset to a number of its own.
            reseed(self._config, seed - self._option.randomly_seed)
            return
        for seeder in self._seeders or ():
            seeder(seed % SEEDER_LIMIT)

    def silence_reseeding(self, attempt: Attempt) -> bool | None:
        """Keeps pytest-randomly from seeding over the sandbox in this phase. Returns what `resume_reseeding` needs."""
        if self._randomly is None or attempt.seed is None:
            return None
        was: bool = self._option.randomly_reset_seed
        self._option.randomly_reset_seed = False
        return was

    def resume_reseeding(self, was: bool | None) -> None:
        if was is not None:
            self._option.randomly_reset_seed = was

    @staticmethod
    def keeps_loop(item: pytest.Item) -> bool:
        """Whether the test runs on an event loop that lives longer than the test."""
        return any(WIDER_LOOP.fullmatch(name) for name in getattr(item, "fixturenames", ()))


class HypothesisRandom:
    """Hypothesis draws the seed of each test from a generator of its own: a fresh one for the test, the old one
    afterwards."""

    def __init__(self, core: Any, seed: int) -> None:
        # Kept per thread in newer releases, and as a global of the module before.
        self._holder: Any = getattr(core, "threadlocal", core)
        self._before = getattr(self._holder, "_hypothesis_global_random", None)
        self._set(random.Random(seed))

    def restore(self) -> None:
        self._set(self._before)

    def _set(self, value: random.Random | None) -> None:
        if hasattr(self._holder, "_hypothesis_global_random"):
            self._holder._hypothesis_global_random = value
