"""Refusals: told where they were swallowed, and failing the test where that is wanted."""

from __future__ import annotations

import pytest

SWALLOWS = """
import socket, pytest
def call(host="203.0.113.9", port=80):
    with socket.socket() as s:
        try: s.connect((host, port))
        except OSError: pass
def test_swallows():
    for _ in range(3): call()
def test_expects():
    with socket.socket() as s, pytest.raises(ConnectionRefusedError):
        s.connect(("203.0.113.9", 81))
def test_good(): pass
"""


def test_swallowed_refusals_are_listed_at_the_end(suite):
    suite.write({"test_a.py": SWALLOWS})
    outcome = suite.run("--hermetic-all")
    assert outcome.counts == {"passed": 3}
    refused = [line for line in outcome.section("hermetic: refused") if "test_swallows" in line]
    assert (
        refused and "203.0.113.9:80" in refused[0] and "test_a.py:5 in call" in refused[0] and "3 times" in refused[0]
    )


@pytest.mark.parametrize("how", ["option", "ini", "marker"])
def test_strict_network_fails_the_test(suite, how):
    suite.write({"test_a.py": SWALLOWS})
    arguments = ["--hermetic-all", "-k", "swallows or good"]
    if how == "option":
        arguments.append("--hermetic-strict-network")
    elif how == "ini":
        suite.write({"pytest.ini": "[pytest]\nhermetic_strict_network = true\n"})
    else:
        suite.write(
            {
                "test_a.py": SWALLOWS.replace(
                    "def test_swallows", "@pytest.mark.hermetic(network_strict=True)\ndef test_swallows"
                )
            }
        )
    outcome = suite.run(*arguments)
    assert outcome.counts == {"failed": 1, "passed": 1, "deselected": 1}
    assert "203.0.113.9:80" in outcome.text and "test_a.py:5 in call" in outcome.text


def test_strict_network_in_fixtures_and_in_tear_down(suite):
    suite.write(
        {
            "test_a.py": SWALLOWS
            + """
@pytest.fixture
def early(): call()
@pytest.fixture
def late():
    yield
    call()
@pytest.fixture(scope="module")
def wide(): call()
def test_early(early): pass
def test_late(late): pass
def test_wide(wide): pass
def test_skips():
    call()
    pytest.skip("after all")
"""
        }
    )
    outcome = suite.run("--hermetic-all", "--hermetic-strict-network", "-k", "early or late or wide or skips")
    assert outcome.counts == {"deselected": 3, "failed": 3, "passed": 1, "error": 1}


def test_failing_test_shows_its_refusals(suite):
    suite.write({"test_a.py": SWALLOWS + "def test_bad():\n    call()\n    assert 0\n"})
    outcome = suite.run("--hermetic-all", "-k", "bad")
    section = outcome.section("Hermetic")
    assert "203.0.113.9:80" in section[0] and not outcome.section("hermetic: refused")


def test_refusals_come_through_from_workers(suite):
    suite.write({"test_a.py": SWALLOWS})
    outcome = suite.run("--hermetic-all", "-n2", plugins=("xdist",))
    assert any("203.0.113.9:80" in line for line in outcome.section("hermetic: refused"))
    assert suite.run("--hermetic-all", "-n2", "--hermetic-strict-network", plugins=("xdist",)).counts["failed"] == 2


def test_name_look_up_is_refused_by_name(suite):
    suite.write(
        {
            "test_a.py": """
            import socket
            def test_a():
                try: socket.create_connection(("db.example.com", 5432), timeout=1)
                except OSError: pass
            """
        }
    )
    outcome = suite.run("--hermetic-all")
    assert any("db.example.com" in line for line in outcome.section("hermetic: refused"))


def test_spinning_loop_fails_even_when_swallowed(suite):
    suite.write(
        {
            "test_a.py": """
            import time, pytest
            @pytest.mark.hermetic(spin_limit=1000)
            def test_spins():
                end = time.time() + 1
                try:
                    while time.time() < end: pass
                except Exception: pass
            def test_good(): pass
            """
        }
    )
    assert suite.run("--hermetic-all").counts == {"failed": 1, "passed": 1}
