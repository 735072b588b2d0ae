"""The table of cases and the tests agree: what a row promises is there, and every marked test has its row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ROW = re.compile(r"^\| ((?:h|py)\d\d) \| .* \| (.+) \|$", re.MULTILINE)
MARK = re.compile(r"""pytest\.mark\.case\("(\w+)"\)""")
WAITING = ("runner",)

ROWS = dict(ROW.findall((FOLDER / "README.md").read_text()))
TEXTS = {path.name: path.read_text() for path in FOLDER.glob("test_*.py")}


def test_no_case_stands_twice():
    assert len(ROWS) == len(ROW.findall((FOLDER / "README.md").read_text())) > 60


@pytest.mark.parametrize("case", ROWS)
def test_a_row_is_covered_where_it_says_or_waits_for_a_reason(case):
    place = ROWS[case].strip("`")
    if place in WAITING:
        return
    named = MARK.findall(TEXTS[place]) if case.startswith("h") else re.findall(r'"(py\d\d)_', TEXTS[place])
    assert case in named


def test_every_mark_has_its_row():
    marked = {case for text in TEXTS.values() for case in MARK.findall(text)}
    assert marked <= set(ROWS)


def test_every_program_of_the_zoo_is_let_out():
    programs = {path.stem[:4] for path in (FOLDER / "zoo").glob("py*.py")}
    assert programs == {case for case, place in ROWS.items() if place == "`test_zoo.py`"}
