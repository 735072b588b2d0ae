"""Options and ini keys: wrong values end the run before a test has run, with exit code 4 and a sentence that helps."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("arguments", "clues"),
    [
        (["--hermetic-seed=abc"], ["--hermetic-seed", "'abc'", "integer"]),
        (["--hermetic-seed=-1"], ["--hermetic-seed", "-1", "0 to"]),
        (["--hermetic-seed=18446744073709551616"], ["18446744073709551616"]),
        (["--hermetic-record=j", "--hermetic-replay=a.journal"], ["exclude"]),
        (["--hermetic-record=test_a.py"], ["test_a.py", "directory"]),
        (["--hermetic-record="], ["--hermetic-record", "empty"]),
        (["--hermetic-replay="], ["--hermetic-replay", "empty"]),
        (["--hermetic-replay=missing.journal"], ["missing.journal"]),
        (["--hermetic-tz=Mars/Olympus"], ["--hermetic-tz", "Mars/Olympus"]),
        (["-o", "hermetic_seed=x"], ["hermetic_seed", "'x'"]),
        (["--hermetic-schedule=chaos"], ["--hermetic-schedule", "'chaos'", "'seeded'"]),
        (["-o", "hermetic_schedule=chaos"], ["hermetic_schedule", "'chaos'", "'cooperative'"]),
        (["-o", "hermetic_tz=Nowhere"], ["hermetic_tz", "Nowhere"]),
    ],
)
def test_wrong_values_are_usage_errors(suite, arguments, clues):
    suite.write({"test_a.py": "def test_a(): print('RAN')\n"})
    outcome = suite.run("-s", *arguments)
    assert outcome.code == 4 and "RAN" not in outcome.text and "Traceback" not in outcome.text
    for clue in clues:
        assert clue in outcome.text


def test_zone_by_option_and_by_ini_key(suite):
    suite.write(
        {
            "test_a.py": """
            import time, pytest
            def test_zone(): print("HOUR", time.localtime().tm_hour)
            @pytest.mark.hermetic(tz="UTC")
            def test_marker(): assert time.localtime().tm_hour == 0
            """
        }
    )
    environment = {"TZ": "America/New_York"}
    assert suite.run("-s", "--hermetic-all", environment=environment).said("HOUR") == ["19"]
    assert suite.run("-s", "--hermetic-all", "--hermetic-tz=Asia/Tokyo", environment=environment).said("HOUR") == ["9"]
    suite.write({"pytest.ini": "[pytest]\nhermetic_tz = Asia/Kolkata\nhermetic_all = yes\n"})
    outcome = suite.run("-s", environment=environment)
    assert outcome.said("HOUR") == ["5"] and outcome.counts == {"passed": 2}


def test_ini_key_for_all(suite):
    suite.write(
        {
            "pytest.ini": "[pytest]\nhermetic_all = true\n",
            "test_a.py": "import time\ndef test_a(): assert time.gmtime().tm_year == 2020\n",
        }
    )
    assert suite.run().counts == {"passed": 1}


def test_help_names_every_option(suite):
    text = suite.run("--help").text
    for name in ("all", "seed", "record", "replay", "strict-network", "tz", "schedule"):
        assert f"--hermetic-{name}" in text
    for name in ("all", "seed", "record", "strict_network", "tz", "schedule"):
        assert f"hermetic_{name} (" in text


def test_plain_run_imports_no_other_plugin(suite):
    suite.write(
        {
            "test_a.py": """
            import sys
            def test_a(): assert not {"xdist", "hypothesis", "numpy", "pytest_randomly", "asyncio"} & set(sys.modules)
            """
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 1}
