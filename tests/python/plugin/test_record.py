"""Recording: a journal for each failing attempt, nothing for the others, and the same verdicts as without."""

from __future__ import annotations

import json

import pytest
from hermetic import _native

RECORD = ("--hermetic-all", "--hermetic-record=journals")


def test_only_failing_attempts_leave_journals(suite):
    suite.write(
        {
            "test_a.py": """
            import time, pytest
            def test_good(): time.time()
            def test_bad(): assert time.time() < 0
            @pytest.mark.skip
            def test_skipped(): pass
            @pytest.mark.xfail
            def test_xfail(): assert time.time() < 0
            """
        }
    )
    assert suite.run(*RECORD).code == 1
    (journal,) = suite.journals()
    assert journal.name.startswith("test_a.py-test_bad__") and journal.name.endswith("-a1.journal")
    assert [entry["test"] for entry in suite.index()] == ["test_a.py::test_bad"]
    assert suite.index()[0]["file"] == journal.name and suite.index()[0]["outcome"] == "failed"
    assert {path.name for path in (suite.root / "journals").iterdir()} == {journal.name, "index.json"}
    head = json.loads(_native.read_journal(str(journal))[0])
    assert head["test"] == "test_a.py::test_bad"


def test_passing_run_leaves_nothing(suite):
    suite.write({"test_a.py": "def test_good(): pass\n"})
    assert suite.run(*RECORD).code == 0
    folder = suite.root / "journals"
    assert not folder.exists() or not list(folder.iterdir())


def test_recording_changes_no_verdict(suite):
    suite.write(
        {
            "test_a.py": """
            import datetime, random, time, pytest
            @pytest.mark.hermetic(now="2021-06-01T12:00:00+00:00", seed=7)
            def test_pinned():
                assert datetime.datetime.now(datetime.timezone.utc).year == 2021
                assert random.random() == random.Random(7).random()
            @pytest.mark.hermetic(seed=7)
            def test_seed(): assert random.random() == random.Random(7).random()
            def test_real(): assert time.gmtime().tm_year > 2020
            """
        }
    )
    assert suite.run("-k", "pinned or seed").counts == {"passed": 2, "deselected": 1}
    assert suite.run(*RECORD).counts == {"passed": 3}


def test_failures_in_set_up_and_tear_down_are_recorded(suite):
    suite.write(
        {
            "test_a.py": """
            import random, pytest
            @pytest.fixture
            def flaky(): assert random.random() < 0
            @pytest.fixture
            def late():
                yield
                assert random.random() < 0
            def test_x(flaky): pass
            def test_y(late): pass
            """
        }
    )
    outcome = suite.run(*RECORD)
    assert outcome.counts == {"passed": 1, "error": 2}
    assert len(suite.journals()) == len(outcome.commands) == 2
    assert all("--hermetic-replay=" in line for line in outcome.commands)


def test_runs_do_not_overwrite_each_other(suite):
    suite.write({"test_a.py": "def test_bad(): assert 0\n"})
    for number in (1, 2, 3):
        suite.run(*RECORD)
        assert len(suite.journals()) == len(suite.index()) == number
    assert len({entry["run"] for entry in suite.index()}) == 3
    suite.journals()[0].unlink()
    suite.run(*RECORD)
    assert {entry["file"] for entry in suite.index()} == {path.name for path in suite.journals()}


def test_foreign_or_broken_index_is_no_obstacle(suite):
    suite.write({"test_a.py": "def test_bad(): assert 0\n", "journals/index.json": "{]", "journals/notes.txt": "mine"})
    suite.run(*RECORD)
    assert len(suite.index()) == 1
    assert (suite.root / "journals" / "notes.txt").read_text() == "mine"


FLAKY = """
import pathlib, time
P = pathlib.Path(__file__).with_name("n")
def test_flaky():
    time.time(); n = int(P.read_text()) if P.exists() else 0; P.write_text(str(n + 1)); assert n == 1
def test_ok(): pass
"""


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_attempt_that_a_retry_forgave_is_kept_and_mentioned(suite, workers):
    suite.write({"test_a.py": FLAKY})
    outcome = suite.run("-q", *RECORD, "--reruns=1", *workers, plugins=("rerunfailures", "xdist"))
    assert outcome.code == 0 and len(suite.journals()) == 1
    assert suite.journals()[0].name in outcome.text and "test_a.py::test_flaky attempt 1" in outcome.text
    assert not outcome.commands
    assert [(entry["test"], entry["attempt"]) for entry in suite.index()] == [("test_a.py::test_flaky", 1)]


def test_last_attempt_is_the_one_to_replay(suite):
    suite.write({"test_a.py": "def test_bad(): assert 0\n"})
    outcome = suite.run(*RECORD, "--reruns=2", plugins=("rerunfailures",))
    assert len(suite.journals()) == 3 and len(outcome.commands) == 1
    assert "-a3.journal" in outcome.commands[0]


def test_workers_record_into_one_directory(suite):
    suite.write({f"test_{name}.py": "def test_bad(): assert 0\ndef test_good(): pass\n" for name in "abcd"})
    outcome = suite.run(*RECORD, "-n3", plugins=("xdist",))
    assert outcome.counts == {"passed": 4, "failed": 4}
    assert len(suite.journals()) == len(suite.index()) == len(outcome.commands) == 4
    assert not list((suite.root / "journals").glob("unfinished-*"))


CRASHES = {
    "exit": "os._exit(3)",
    "kill": "os.kill(os.getpid(), signal.SIGKILL)",
    "segfault": "ctypes.string_at(0)",
}
CRASH = """
import ctypes, os, signal, time
def test_before(): time.time()
def test_crash():
    for number in range(100): time.time()
    {crash}
"""


@pytest.mark.parametrize("crash", CRASHES)
def test_journal_survives_the_death_of_the_process(suite, crash):
    suite.write({"test_a.py": CRASH.format(crash=CRASHES[crash]), "test_b.py": "def test_later(): pass\n"})
    assert suite.run(*RECORD, "test_a.py").code not in (0, 1)
    (left,) = (suite.root / "journals").glob("*")
    head, _, events = _native.read_journal(str(left))
    assert json.loads(head)["test"] == "test_a.py::test_crash" and events >= 100
    # The next run into this directory gives it a proper name.
    assert suite.run(*RECORD, "test_b.py").code == 0
    (journal,) = suite.journals()
    assert "test_crash" in journal.name
    (entry,) = suite.index()
    assert (entry["file"], entry["test"], entry["outcome"]) == (journal.name, "test_a.py::test_crash", "crashed")
    assert not list((suite.root / "journals").glob("unfinished-*"))


def test_crash_between_tests_leaves_no_journal(suite):
    suite.write(
        {
            "test_a.py": "import time\ndef test_good(): time.time()\n",
            "test_b.py": "def test_later(): pass\n",
            "conftest.py": """
            import os
            def pytest_runtest_logfinish(nodeid):
                if "test_good" in nodeid: os._exit(3)
            """,
        }
    )
    assert suite.run(*RECORD, "test_a.py").code == 3
    assert suite.run(*RECORD, "test_b.py").code == 0
    assert not suite.journals()


def test_controller_recovers_the_journal_of_a_dead_worker(suite):
    suite.write({"test_a.py": CRASH.format(crash="os._exit(3)"), "test_b.py": "def test_bad(): assert 0\n"})
    outcome = suite.run(*RECORD, "-n1", plugins=("xdist",))
    assert outcome.code == 1
    assert sorted(entry["test"] for entry in suite.index()) == ["test_a.py::test_crash", "test_b.py::test_bad"]
    replays = [line for line in outcome.commands if "--hermetic-replay=" in line]
    assert len(replays) == 2 and not list((suite.root / "journals").glob("unfinished-*"))


def test_timeout_that_ends_the_process_leaves_a_journal(suite):
    suite.write(
        {"test_a.py": "import time, threading\ndef test_hang():\n    time.time(); threading.Event().wait(60)\n"}
    )
    outcome = suite.run(*RECORD, "--timeout=1", "--timeout-method=thread", plugins=("timeout",))
    assert outcome.code == 1 and "Timeout" in outcome.text
    (left,) = (suite.root / "journals").glob("unfinished-*")
    assert json.loads(_native.read_journal(str(left))[0])["test"] == "test_a.py::test_hang"


def test_another_live_run_keeps_its_scratch_file(suite):
    suite.write(
        {
            "test_a.py": """
            import subprocess, sys, time
            def test_outer():
                time.time()
                done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p",
                    "hermetic.pytest_plugin", "--hermetic-all", "--hermetic-record=journals", "test_b.py"])
                assert done.returncode == 0
                assert 0
            """,
            "test_b.py": "def test_inner(): pass\n",
        }
    )
    suite.run(*RECORD, "test_a.py")
    (journal,) = suite.journals()
    assert "test_outer" in journal.name and len(suite.index()) == 1


def test_interrupted_test_keeps_its_journal(suite):
    suite.write({"test_a.py": "import time\ndef test_a():\n    time.time()\n    raise KeyboardInterrupt\n"})
    assert suite.run(*RECORD).code == 2
    assert len(suite.journals()) == 1


def test_ini_record_is_relative_to_the_root(suite):
    suite.write(
        {
            "pytest.ini": "[pytest]\nhermetic_all = 1\nhermetic_record = kept/here\n",
            "sub/test_a.py": "def test_a(): assert 0\n",
        }
    )
    outcome = suite.run(directory="sub")
    (journal,) = suite.journals("kept/here")
    # A journal can be replayed although the ini file says to record.
    assert suite.run(f"--hermetic-replay={journal}").counts == {"failed": 1}
    assert len(suite.journals("kept/here")) == 1 and len(outcome.commands) == 1


def test_each_journal_describes_the_machine_of_its_own_moment(suite):
    suite.write(
        {
            "conftest.py": """
            import os, time
            def pytest_runtest_logstart(nodeid):
                if nodeid.endswith("test_b"):
                    os.environ.update(LATER="1", TZ="Asia/Tokyo")
                    time.tzset()
            """,
            "test_a.py": "def test_a(): assert 0\ndef test_b(): assert 0\n",
        }
    )
    suite.run(*RECORD)
    first, second = (json.loads(_native.read_journal(str(path))[0]) for path in sorted(suite.journals()))
    assert "LATER" not in first["env"] and "LATER" in second["env"]
    assert first["fingerprint"]["tz_env"] != second["fingerprint"]["tz_env"] == "Asia/Tokyo"
    assert second["fingerprint"]["tzname"] == ["JST", "JST"]


def test_empty_failing_test_has_a_small_journal(suite):
    suite.write({"test_a.py": "def test_a(): assert 0\n"})
    suite.run(*RECORD)
    assert suite.journals()[0].stat().st_size <= 1500
