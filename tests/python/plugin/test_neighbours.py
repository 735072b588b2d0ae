"""Other plugins and tools beside Hermetic: each keeps working, and what is random in them follows the sandbox."""

from __future__ import annotations

import os
import re

import pytest


def test_hypothesis_examples_repeat_with_the_base_seed(suite):
    suite.write(
        {
            "test_a.py": """
            import random
            from hypothesis import given, settings, strategies as st
            seen, other = [], []
            @settings(max_examples=20, database=None)
            @given(st.integers(0, 10**9))
            def test_1(n): seen.append(n)
            @settings(max_examples=20, database=None)
            @given(st.integers(0, 10**9))
            def test_2(n): other.append(n)
            def test_3(): print("SEEN", hash(tuple(seen)), hash(tuple(other)), seen == other)
            """
        }
    )
    said = [
        suite.run("-s", "--hermetic-all", "--hermetic-seed=1", plugins=("hypothesis",)).said("SEEN") for _ in range(3)
    ]
    assert said[0] and said[0] == said[1] == said[2] and said[0][0].endswith("False")
    assert suite.run("-s", "--hermetic-all", "--hermetic-seed=2", plugins=("hypothesis",)).said("SEEN") != said[0]


PROPERTIES = """
import gc, random, time
from hypothesis import given, strategies as st
@given(st.lists(st.integers(0, 10**9), max_size=20))
def test_1(numbers):
    gc.collect(0)
    assert sum(numbers) + random.random() < 10**6, time.time_ns()
"""


@pytest.mark.parametrize("recorded_on", [{"CI": "true"}, {}])
@pytest.mark.parametrize("replayed_on", [{"CI": "true"}, {}])
def test_a_recorded_property_replays_whatever_profile_hypothesis_takes(suite, recorded_on, replayed_on):
    suite.write({"test_a.py": PROPERTIES})
    environment = {"HYPOTHESIS_STORAGE_DIRECTORY": str(suite.root / "saved"), **recorded_on}
    recorded = suite.run(
        "--hermetic-all", "--hermetic-record=journals", plugins=("hypothesis",), environment=environment
    )
    (journal,) = suite.journals()
    environment = {"HYPOTHESIS_STORAGE_DIRECTORY": str(suite.root / "saved"), **replayed_on}
    for _ in range(2):  # the first may save what the second would try before all others
        again = suite.run(f"--hermetic-replay={journal}", plugins=("hypothesis",), environment=environment)
        assert again.counts == {"failed": 1}, again.text
        assert errors(again) == errors(recorded)


def test_a_property_that_failed_before_replays_too(suite):
    suite.write({"test_a.py": PROPERTIES})
    environment = {"HYPOTHESIS_STORAGE_DIRECTORY": str(suite.root / "saved")}
    arguments = ("--hermetic-all", "--hermetic-record=journals")
    suite.run(*arguments, plugins=("hypothesis",), environment=environment)
    for journal in suite.journals():
        os.unlink(journal)
    recorded = suite.run(*arguments, plugins=("hypothesis",), environment=environment)
    (journal,) = suite.journals()
    again = suite.run(f"--hermetic-replay={journal}", plugins=("hypothesis",))
    assert errors(again) == errors(recorded)


@pytest.mark.parametrize(
    "source",
    [
        """
        import time
        from hypothesis import strategies as st
        from hypothesis.stateful import RuleBasedStateMachine, rule
        class Machine(RuleBasedStateMachine):
            total = 0
            @rule(step=st.integers(0, 100))
            def add(self, step):
                self.total += step
                assert self.total < 150, time.time_ns()
        TestMachine = Machine.TestCase
        """,
        """
        import time, pytest
        from hypothesis import given, strategies as st
        class TestIt:
            @pytest.mark.parametrize("factor", [2])
            @given(number=st.integers(0, 10**6))
            def test_it(self, factor, number):
                assert factor * number < 10**5, time.time_ns()
        """,
    ],
    ids=["state machine", "method"],
)
def test_each_kind_of_property_recorded_on_a_build_machine_replays_elsewhere(suite, source):
    suite.write({"test_a.py": source})
    recorded = suite.run(
        "--hermetic-all", "--hermetic-record=journals", plugins=("hypothesis",), environment={"CI": "true"}
    )
    (journal,) = suite.journals()
    again = suite.run(f"--hermetic-replay={journal}", plugins=("hypothesis",))
    assert errors(again) == errors(recorded) != []


def errors(outcome) -> list[str]:
    """The lines that tell of the failure, but for addresses and for the advice that only some profiles print."""
    lines = [re.sub("0x[0-9a-f]+", "0x…", line) for line in outcome.text.splitlines() if line.startswith("E ")]
    return [line for line in lines if line.strip("E ") and "reproduce" not in line]


def test_hypothesis_failure_replays(suite):
    suite.write(
        {
            "test_a.py": """
            from hypothesis import given, settings, strategies as st
            seen = []
            @settings(max_examples=5, database=None)
            @given(st.integers(0, 10**9))
            def test_a(n):
                seen.append(n)
                print("DRAWN", n)
                if len(seen) > 3: raise SystemExit(str(seen))
            """
        }
    )
    outcome = suite.run("-s", "--hermetic-all", "--hermetic-record=journals", plugins=("hypothesis",))
    (journal,) = suite.journals()
    again = suite.run("-s", f"--hermetic-replay={journal}", plugins=("hypothesis",))
    assert outcome.said("DRAWN") == again.said("DRAWN") and len(again.said("DRAWN")) > 3


def test_timeouts_are_real_with_both_methods(suite):
    suite.write({"test_a.py": "import time\ndef test_a():\n    while True: pass\n"})
    outcome = suite.run("--hermetic-all", "--timeout=1", "--timeout-method=signal", plugins=("timeout",))
    assert outcome.counts == {"failed": 1} and "Timeout" in outcome.text
    assert len(outcome.commands) == 1
    outcome = suite.run("--hermetic-all", "--timeout=1", "--timeout-method=thread", plugins=("timeout",))
    assert outcome.code == 1 and "Timeout" in outcome.text


@pytest.mark.parametrize("method", ["signal", "thread"])
@pytest.mark.parametrize("func_only", ["true", "false"])
def test_timeouts_do_not_fire_in_virtual_time(suite, method, func_only):
    suite.write(
        {
            "pytest.ini": f"[pytest]\ntimeout = 30\ntimeout_method = {method}\ntimeout_func_only = {func_only}\n",
            "test_a.py": "import time\ndef test_a(): time.sleep(3600)\ndef test_b(): time.sleep(86400)\n",
        }
    )
    assert suite.run("--hermetic-all", plugins=("timeout",)).counts == {"passed": 2}


def test_asyncio_tests_with_a_loop_of_their_own(suite):
    suite.write(
        {
            "pytest.ini": "[pytest]\nasyncio_default_fixture_loop_scope = function\n",
            "test_a.py": """
            import asyncio, time, uuid, pytest, pytest_asyncio
            @pytest_asyncio.fixture
            async def made(): return time.time(), uuid.uuid4()
            @pytest.mark.asyncio
            async def test_a(made):
                await asyncio.sleep(0)
                assert made[0] == time.time() and time.gmtime().tm_year == 2020
                print("MADE", made[1])
            """,
        }
    )
    first, second = (suite.run("-s", "--hermetic-all", "--hermetic-seed=1", plugins=("asyncio",)) for _ in range(2))
    assert first.counts == {"passed": 1} and first.said("MADE") == second.said("MADE")


def test_asyncio_loop_over_several_tests_has_a_monotonic_clock_that_goes_on(suite):
    suite.write(
        {
            "pytest.ini": """
            [pytest]
            asyncio_default_fixture_loop_scope = session
            asyncio_default_test_loop_scope = session
            """,
            "test_a.py": """
            import asyncio, time, pytest, pytest_asyncio
            times = []
            @pytest_asyncio.fixture(scope="session")
            async def wide():
                times.append(asyncio.get_running_loop().time())
                yield
            @pytest.mark.asyncio
            @pytest.mark.parametrize("number", range(3))
            async def test_a(wide, number):
                await asyncio.sleep(0)
                times.append(asyncio.get_running_loop().time())
                assert times == sorted(times)
                assert time.gmtime().tm_year == 2020
            """,
        }
    )
    assert suite.run("--hermetic-all", plugins=("asyncio",)).counts == {"passed": 3}


def test_anyio_tests(suite):
    suite.write(
        {
            "test_a.py": """
            import time, anyio, pytest
            @pytest.fixture
            def anyio_backend(): return "asyncio"
            @pytest.mark.anyio
            async def test_a():
                await anyio.sleep(0)
                assert time.gmtime().tm_year == 2020
            """
        }
    )
    assert suite.run("--hermetic-all", plugins=("anyio",)).counts == {"passed": 1}


def test_coverage_counts_the_same_lines(suite):
    suite.write({"measured.py": "def used():\n    return 1\n\n\ndef unused():\n    return 2\n"})
    suite.write({"test_a.py": "import measured\ndef test_a(): assert measured.used() == 1\n"})
    plain = suite.run("--cov=measured", plugins=("cov",))
    sandboxed = suite.run("--cov=measured", "--hermetic-all", plugins=("cov",))
    line = [text for text in plain.text.splitlines() if text.startswith("measured.py")]
    assert line and line == [text for text in sandboxed.text.splitlines() if text.startswith("measured.py")]


def test_randomly_shuffles_but_does_not_seed_over_the_sandbox(suite):
    suite.write(
        {
            "test_a.py": """
            import random, pytest
            @pytest.fixture
            def early(): return random.random()
            def test_a(early, hermetic_sandbox):
                drawn = random.Random(hermetic_sandbox.seed)
                assert [early, random.random()] == [drawn.random(), drawn.random()]
                print("DRAWN", early)
            @pytest.mark.hermetic(off=True)
            def test_off(): print("OFF", random.random())
            """
        }
    )
    drawn = [
        suite.run("-s", "--hermetic-all", "--hermetic-seed=1", f"--randomly-seed={number}", plugins=("randomly",))
        for number in (1, 2)
    ]
    assert drawn[0].counts == {"passed": 2}
    assert drawn[0].said("DRAWN") == drawn[1].said("DRAWN")
    assert drawn[0].said("OFF") != drawn[1].said("OFF")


def test_registered_seeders_are_called_with_the_tests_seed(suite):
    suite.write(
        {
            "seeded.py": "seen = []\ndef reseed(seed): seen.append(seed)\n",
            "seeded-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: seeded\nVersion: 1\n",
            "seeded-1.dist-info/entry_points.txt": "[pytest_randomly.random_seeder]\nseeded = seeded:reseed\n",
            "test_a.py": """
            import seeded
            def test_a(hermetic_sandbox): assert seeded.seen[-1] % 2**32 == hermetic_sandbox.seed % 2**32
            def test_b(hermetic_sandbox): assert seeded.seen[-1] % 2**32 == hermetic_sandbox.seed % 2**32
            """,
        }
    )
    path = {"PYTHONPATH": str(suite.root)}
    assert suite.run("--hermetic-all", environment=path).counts == {"passed": 2}
    assert suite.run("--hermetic-all", plugins=("randomly",), environment=path).counts == {"passed": 2}


def test_pyfakefs(suite):
    suite.write(
        {
            "test_a.py": """
            import os, time
            def test_a(fs):
                fs.create_file("/data/a.txt", contents="hello")
                with open("/data/a.txt") as file: assert file.read() == "hello"
                with open("/data/b.txt", "w") as file: file.write("x")
                assert sorted(os.listdir("/data")) == ["a.txt", "b.txt"]
                assert time.gmtime().tm_year == 2020
            def test_b(): assert not os.path.exists("/data/a.txt")
            """
        }
    )
    assert suite.run("--hermetic-all", plugins=("pyfakefs",)).counts == {"passed": 2}


def test_time_machine_and_freezegun_win_in_their_blocks(suite):
    pytest.importorskip("time_machine")
    pytest.importorskip("freezegun")
    suite.write(
        {
            "test_a.py": """
            import datetime, time, freezegun, time_machine
            def years(): return time.gmtime().tm_year, datetime.datetime.now().year
            def test_time_machine():
                with time_machine.travel("2030-01-02", tick=False): assert years() == (2030, 2030)
                assert years() == (2020, 2020)
            def test_freezegun():
                with freezegun.freeze_time("2031-01-02"): assert years() == (2031, 2031)
                assert years() == (2020, 2020)
            @freezegun.freeze_time("2032-01-02")
            def test_decorated(): assert years() == (2032, 2032)
            def test_after(): assert years() == (2020, 2020)
            """
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 4}


def test_unittest_subtests_and_expected_failures(suite):
    suite.write(
        {
            "test_a.py": """
            import time, unittest
            class Case(unittest.TestCase):
                def test_subtests(self):
                    for number in range(3):
                        with self.subTest(number=number): self.assertEqual(time.gmtime().tm_year, 2020)
                @unittest.expectedFailure
                def test_expected(self): self.assertEqual(time.gmtime().tm_year, 1999)
                @unittest.skip("no")
                def test_skipped(self): pass
            """
        }
    )
    counts = suite.run("--hermetic-all").counts
    assert counts["passed"] == 1 and counts["xfailed"] == 1 and counts["skipped"] == 1


def test_failing_xdist_run_with_retries(suite):
    suite.write({"test_a.py": "def test_bad(): assert 0\n" + "".join(f"def test_{n}(): pass\n" for n in range(20))})
    outcome = suite.run("--hermetic-all", "-n2", "--reruns=1", plugins=("xdist", "rerunfailures"))
    assert outcome.counts == {"passed": 20, "failed": 1, "rerun": 1} and len(outcome.commands) == 1


def test_output_capture_and_logs(suite):
    suite.write(
        {
            "test_a.py": """
            import logging, sys, time
            def test_a(capsys, caplog):
                print("out"); logging.getLogger().warning("now")
                assert capsys.readouterr().out == "out\\n"
                assert time.gmtime(caplog.records[0].created).tm_year == 2020
                assert caplog.records[0].relativeCreated >= 0
            """
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 1}
