"""Variables of the environment that a test leaves behind: named, and taken back before the next test begins."""

from __future__ import annotations

import os
from collections.abc import Mapping

IGNORED = frozenset((b"PYTEST_CURRENT_TEST", "PYTEST_CURRENT_TEST"))

Snapshot = dict[object, object]


def _now() -> Mapping[object, object]:
    """The variables as `os.environ` keeps them: comparing those costs no conversion."""
    return getattr(os.environ, "_data", None) or dict(os.environ)


class Variables:
    """The environment that tests find, and what they make of it."""

    def __init__(self) -> None:
        self._base: Snapshot = dict(_now())

    def rebase(self) -> None:
        """What changed between tests is the harness's doing and stays."""
        now = _now()
        if now != self._base:
            self._base = dict(now)

    def snapshot(self) -> Snapshot:
        return dict(_now())

    def keep_since(self, before: Snapshot) -> None:
        """What a wider fixture has changed stays for the tests that follow."""
        now = _now()
        for name in before.keys() | now.keys():
            if before.get(name) != now.get(name):
                if name in now:
                    self._base[name] = now[name]
                else:
                    self._base.pop(name, None)

    def take_back(self) -> dict[str, str]:
        """Restores the environment. Returns what was done to which variable: set, changed or removed."""
        now = _now()
        if now == self._base:
            return {}
        done: dict[str, str] = {}
        for name in now.keys() | self._base.keys():
            old, new = self._base.get(name), now.get(name)
            if old != new and name not in IGNORED:
                done[os.fsdecode(name)] = "set" if old is None else "removed" if new is None else "changed"  # type: ignore[arg-type]
        for name in done:
            old = self._base.get(os.fsencode(name), self._base.get(name))
            if old is None:
                del os.environ[name]
            else:
                os.environ[name] = os.fsdecode(old)  # type: ignore[arg-type]
        return done
