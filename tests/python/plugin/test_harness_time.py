"""pytest's own measurements are real, also while a test's clock is virtual."""

from __future__ import annotations

import re
from xml.etree import ElementTree

SLEEPS = """
import time, pytest
from hermetic import real
def test_virtual(): time.sleep(3600)
def test_real(): real.sleep(0.3)
@pytest.fixture
def slow(): real.sleep(0.3)
def test_setup(slow): time.sleep(3600)
"""


def test_durations(suite):
    suite.write({"test_a.py": SLEEPS})
    outcome = suite.run("--hermetic-all", "--durations=0", "-vv")
    seconds = {
        (when, name): float(s) for s, when, name in re.findall(r"([\d.]+)s (\w+) +test_a.py::(\w+)", outcome.text)
    }
    assert seconds["call", "test_virtual"] < 60
    assert 0.25 < seconds["call", "test_real"] < 60
    assert 0.25 < seconds["setup", "test_setup"] < 60 and seconds["call", "test_setup"] < 60
    assert all(value >= 0 for value in seconds.values())


def test_junit_times_and_timestamp(suite):
    suite.write({"test_a.py": SLEEPS})
    suite.run("--hermetic-all", "--junitxml=junit.xml")
    root = ElementTree.parse(suite.root / "junit.xml").getroot()
    times = {case.get("name"): float(case.get("time")) for case in root.iter("testcase")}
    assert 0.25 < times["test_real"] < 60 and times["test_virtual"] < 60
    assert not next(root.iter("testsuite")).get("timestamp").startswith("2020")


def test_timing_is_given_back_at_the_end(suite):
    suite.write(
        {
            "test_a.py": "def test_a(): pass\n",
            "run.py": """
            import time, pytest
            from _pytest import timing
            before = timing.time, timing.perf_counter, timing.sleep
            for _ in range(2):
                assert pytest.main(["-p", "hermetic.pytest_plugin", "--hermetic-all", "-q"]) == 0
                assert (timing.time, timing.perf_counter, timing.sleep) == before
            assert time.gmtime().tm_year > 2020
            """,
        }
    )
    import sys

    outcome = suite.execute([sys.executable, "run.py"], ".", {})
    assert outcome.code == 0


def test_subtests_have_real_durations(suite):
    suite.write(
        {
            "conftest.py": """
            def pytest_runtest_logreport(report): assert 0 <= report.duration < 60, report
            """,
            "test_a.py": """
            import time, pytest
            def test_a(subtests):
                for number in range(2):
                    with subtests.test(number=number): time.sleep(3600)
            """,
        }
    )
    outcome = suite.run("--hermetic-all")
    if "fixture 'subtests' not found" not in outcome.text:
        assert outcome.code == 0 and "INTERNALERROR" not in outcome.text
