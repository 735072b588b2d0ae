"""Where things of a project are kept, for parts that must not import pytest."""

from __future__ import annotations

from pathlib import Path

CACHE = ".pytest_cache"
RECORD = "last-run.json"


def record_path(root: Path) -> Path:
    """The record of the project's last run."""
    return root / CACHE / "stricttest" / RECORD
