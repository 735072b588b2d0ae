"""Journal files as the plugin sees them: whose they are. Reading and finishing them is the business of
`hermetic._native`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermetic import SandboxError, _native


def head_of(path: str) -> dict[str, Any]:
    """The head of the journal that the user gave. Raises `pytest.UsageError` where it cannot be used."""
    try:
        text, _, _ = _native.read_journal(path)
    except (SandboxError, OSError) as error:
        raise pytest.UsageError(f"--hermetic-replay: {error}") from None
    head: dict[str, Any] = json.loads(text)
    return head


def test_of(path: str) -> str | None:
    """The test that a journal lying around was recorded from; None where it does not say, or is none."""
    try:
        text, _, _ = _native.read_journal(path)
        test = json.loads(text).get("test")
    except (SandboxError, OSError, ValueError):
        return None
    return test if isinstance(test, str) else None


def finish(source: str, target: str) -> None:
    """Brings the journal that a process left behind into its final form."""
    _native.finish_journal(source, target)
