"""What decides which examples Hypothesis runs a test with: a generator, settings, and the examples it has saved.

A sandbox seeds the generator. A recording writes settings and saved examples down, and its replay uses those: the
profile of a build machine differs from that of a laptop, and a failure that was saved would be tried before all others.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from hermetic import _native, real

if TYPE_CHECKING:
    import pytest

    from hermetic import Sandbox

STATE = "hypothesis"
"""Name of the record in a journal."""

SETTINGS = "_hypothesis_internal_use_settings"
PLAIN = ("max_examples", "derandomize", "stateful_step_count", "report_multiple_bugs")
"""Settings that are plain values. Those not named here only decide what is printed."""


class Examples:
    """Takes over for one attempt of a test; `restore` gives back."""

    def __init__(self, core: Any, seed: int) -> None:
        # Kept per thread in newer releases, and as a global of the module before.
        self._holder: Any = getattr(core, "threadlocal", core)
        self._before = getattr(self._holder, "_hypothesis_global_random", None)
        self._set_random(random.Random(seed))
        self._replaced: list[tuple[Any, str, Any]] = []
        self._written: dict[str, Any] | None = None

    def record(self, item: pytest.Item) -> None:
        """Remembers what decides about the examples of this test; `write` puts it into the journal."""
        for holder, name in _holders(item):
            settings = getattr(holder, name)
            saved: dict[str, list[list[str]]] = {}
            self._written = {"settings": _told(settings), "saved": saved}
            if settings.database is not None:
                self._use(holder, name, database=_noted_database(settings.database, saved))

    def write(self, sandbox: Sandbox) -> None:
        if self._written is not None:
            sandbox._need().record_state(STATE, json.dumps(self._written, separators=(",", ":")).encode())

    def replay(self, item: pytest.Item, journal: str) -> None:
        """Has the test run with what its recording ran with."""
        holders = list(_holders(item))
        state = _native.journal_state(journal, STATE) if holders else None
        if state is None:
            return
        told = json.loads(state)
        for holder, name in holders:
            changes = _settings(told["settings"])
            if not changes.get("derandomize"):
                changes["database"] = _replayed_database(told["saved"])
            self._use(holder, name, **changes)

    def restore(self) -> None:
        self._set_random(self._before)
        while self._replaced:
            setattr(*self._replaced.pop())

    def _use(self, holder: Any, name: str, **changes: Any) -> None:
        settings = getattr(holder, name)
        self._replaced.append((holder, name, settings))
        setattr(holder, name, type(settings)(parent=settings, **changes))

    def _set_random(self, value: random.Random | None) -> None:
        if hasattr(self._holder, "_hypothesis_global_random"):
            self._holder._hypothesis_global_random = value


def begin_early() -> None:
    """Has Hypothesis begin to measure garbage collections outside the sandbox, whose own callback is then around the
    one that this takes."""
    junkdrawer = sys.modules.get("hypothesis.internal.conjecture.junkdrawer")
    measure = getattr(junkdrawer, "gc_cumulative_time", None)
    if measure is not None and not getattr(junkdrawer, "_gc_initialized", True):
        measure()


def _holders(item: pytest.Item) -> Iterator[tuple[Any, str]]:
    """Who holds the settings that a test runs with, and under which name: the test function and what its decorators
    wrap, or the class that a state machine makes for `unittest`."""
    test = getattr(item, "obj", None)
    function = getattr(test, "__func__", test)
    while function is not None:
        if getattr(function, SETTINGS, None) is not None:
            yield function, SETTINGS
        function = getattr(function, "__wrapped__", None)
    owner = getattr(item, "cls", None)
    if type(getattr(owner, "settings", None)).__module__ == "hypothesis._settings":
        yield owner, "settings"


def _told(settings: Any) -> dict[str, Any]:
    """Settings as JSON can hold them."""
    told = {name: getattr(settings, name) for name in PLAIN}
    told["deadline"] = None if settings.deadline is None else settings.deadline.total_seconds()
    told["phases"] = [phase.name for phase in settings.phases]
    told["suppress_health_check"] = [check.name for check in settings.suppress_health_check]
    return told


def _settings(told: dict[str, Any]) -> dict[str, Any]:
    """Arguments for `hypothesis.settings`. Names that this release does not know are left out."""
    import hypothesis

    def known(family: Any, names: Iterable[str]) -> list[Any]:
        return [family[name] for name in names if name in family.__members__]

    changes = {name: told[name] for name in PLAIN}
    # Milliseconds.
    changes["deadline"] = None if told["deadline"] is None else told["deadline"] * 1e3
    changes["phases"] = known(hypothesis.Phase, told["phases"])
    changes["suppress_health_check"] = known(hypothesis.HealthCheck, told["suppress_health_check"])
    return changes


def _noted_database(inner: Any, saved: dict[str, list[list[str]]]) -> Any:
    """The user's database, whose files are no part of the test; what is fetched is noted in `saved`, by key."""
    from hypothesis.database import ExampleDatabase

    class Noted(ExampleDatabase):  # type: ignore[misc]
        def fetch(self, key: bytes) -> Iterable[bytes]:
            with real.world():
                values = list(inner.fetch(key))
            saved.setdefault(key.hex(), []).append([value.hex() for value in values])
            return values

        def save(self, key: bytes, value: bytes) -> None:
            with real.world():
                inner.save(key, value)

        def delete(self, key: bytes, value: bytes) -> None:
            with real.world():
                inner.delete(key, value)

        def move(self, source: bytes, target: bytes, value: bytes) -> None:
            with real.world():
                inner.move(source, target, value)

    return Noted()


def _replayed_database(saved: dict[str, list[list[str]]]) -> Any:
    """Answers as the recorded one did, and forgets what it is given."""
    from hypothesis.database import ExampleDatabase

    answers = {key: iter(fetched) for key, fetched in saved.items()}

    class Replayed(ExampleDatabase):  # type: ignore[misc]
        def fetch(self, key: bytes) -> Iterable[bytes]:
            return [bytes.fromhex(value) for value in next(answers.get(key.hex(), iter(())), [])]

        def save(self, key: bytes, value: bytes) -> None:
            pass

        def delete(self, key: bytes, value: bytes) -> None:
            pass

    return Replayed()
