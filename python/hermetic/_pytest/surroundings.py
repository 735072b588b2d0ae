"""Environment variables that have to outlive a sandbox: what a fixture wider than a test sets stays until it takes it
back.

Every sandbox gives the environment back at its end, so such changes are noted before and made again after.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

Changes = dict[str, "str | None"]
"""New values by name; None removes the variable."""

CURRENT_TEST = "PYTEST_CURRENT_TEST"
"""Set by pytest at the start of each phase, for whoever looks, and removed at the end of the last."""

REARRANGING = frozenset({"env", "scrub_env", "fs", "tz"})
"""Sandbox options that change environment, zone or directory for the test."""


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> Changes:
    """What turns `before` into `after`."""
    changes: Changes = {name: value for name, value in after.items() if before.get(name) != value}
    changes.update((name, None) for name in before if name not in after)
    return changes


def apply(changes: Changes) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
