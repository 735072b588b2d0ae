"""The notes program from Python. The floor holds a whole session, so each test takes an empty place of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent.parent / "notes.py"


def notes(*words: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, str(PROGRAM), *words], capture_output=True, text=True)
    return done.returncode, f"{done.stdout}{done.stderr}".strip()


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "notes"


def test_the_first_note_is_number_one() -> None:
    assert notes("add", "buy plums") == (0, "1")
    assert notes("list") == (0, "buy plums")


def test_notes_are_by_nobody_we_know(data: Path) -> None:
    notes("add", "buy plums")
    author = subprocess.run(
        ["git", "-C", str(data), "log", "--format=%an <%ae>"], capture_output=True, text=True
    ).stdout
    assert author.strip() == "stricttest <stricttest@example.invalid>"


def test_nothing_is_published() -> None:
    """A developer's token is not there, and git would not push with it."""
    notes("add", "buy plums")
    code, said = notes("publish")
    assert code != 0
    assert "not allowed" in said
    assert "a real one" not in said
