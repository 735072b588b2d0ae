"""Real time for pytest's own measurements, also while a test's sandbox is active.

Durations, JUnit times and progress are taken through `_pytest.timing`, and a few modules read the clock by themselves
inside the test protocol. Their names are bound to the real clock from the first sandbox of the session until the
session ends.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from hermetic import real

TIMING = "_pytest.timing"
READERS = ("_pytest.subtests", "pytest_subtests.plugin")
"""Modules that call `time.time()` and `time.perf_counter()` while a test runs, through their global name `time`."""


class HarnessClock:
    """Binds once; `restore` puts back what was there, so that sessions inside a session end in order."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = []
        self.is_bound = False

    def bind(self) -> None:
        if self.is_bound:
            return
        self.is_bound = True
        if (timing := sys.modules.get(TIMING)) is not None:
            for name in ("time", "perf_counter", "sleep"):
                self._replace(timing, name, getattr(real, name))
        clock = types.SimpleNamespace(time=real.time, perf_counter=real.perf_counter, sleep=real.sleep)
        for name in READERS:
            module = sys.modules.get(name)
            if isinstance(getattr(module, "time", None), types.ModuleType):
                self._replace(module, "time", clock)

    def restore(self) -> None:
        while self._replaced:
            module, name, value = self._replaced.pop()
            setattr(module, name, value)
        self.is_bound = False

    def _replace(self, module: Any, name: str, value: Any) -> None:
        self._replaced.append((module, name, getattr(module, name)))
        setattr(module, name, value)
