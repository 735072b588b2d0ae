"""Suites that do what they please with the process: under the floor, and with every test in a sandbox."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SUITES = {path.stem: path for path in sorted((Path(__file__).parent / "hostile").glob("*.py"))}


@pytest.mark.parametrize("manner", ["floor", "floor-and-sandbox"])
@pytest.mark.parametrize("name", SUITES)
def test_a_hostile_suite_passes_as_it_would_alone(floored, name, manner):
    if manner == "floor" and name not in ("directories", "modules", "inner", "replaced", "variables"):
        pytest.skip("what it does costs real time without a sandbox, and is the other run's business")
    text = SUITES[name].read_text()
    if manner == "floor":
        text = re.sub(r"\b1000\b", "0.01", text)
    floored.file(f"test_{name}.py", text)
    options = ["--hermetic-all"] if manner == "floor-and-sandbox" else []
    ran = floored.pytest("-q", "-W", "ignore", *options, f"test_{name}.py")
    assert ran.code == 0 and "passed" in ran.text, ran.text
