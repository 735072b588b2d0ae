"""The printed command: pasted where the user stands, it runs the failing test again with the same values."""

from __future__ import annotations

import os
import shlex
import sys

import pytest

FAILS = "import random\ndef test_x(): assert 0, random.random()\ndef test_y(): pass\n"


def error(outcome):
    return [line for line in outcome.text.splitlines() if line.startswith("E  ")]


def paste(suite, line, directory="."):
    """Runs the printed line as a shell would."""
    words = shlex.split(line)
    environment = {}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    assert words.pop(0) == "pytest"
    return suite.execute([sys.executable, "-m", "pytest", *words], directory, environment)


@pytest.mark.parametrize("directory", [".", "tests", "other"])
def test_pasting_reproduces_from_every_directory(suite, directory):
    suite.write({"tests/test_a.py": FAILS, "other/empty.txt": ""})
    outcome = suite.run("--hermetic-all", *(["../tests"] if directory == "other" else []), directory=directory)
    assert len(outcome.commands) == 1
    again = paste(suite, outcome.commands[0], directory)
    assert again.counts == {"failed": 1} and error(again) == error(outcome)


def test_pasting_reproduces_without_an_ini_file(bare_suite):
    bare_suite.write({"tests/test_a.py": FAILS})
    outcome = bare_suite.run("--hermetic-all", directory="tests")
    again = paste(bare_suite, outcome.commands[0], "tests")
    assert again.code == 1 and error(again) == error(outcome)


def test_what_matters_is_kept_and_the_rest_is_dropped(suite):
    suite.write(
        {
            "tests/test_a.py": "def test_x(request): assert not request.config.getoption('--fast')\n",
            "conftest.py": "def pytest_addoption(parser): parser.addoption('--fast', default='')\n",
            "other.ini": "[pytest]\nhermetic_seed = 4\n",
        }
    )
    outcome = suite.run(
        "-c",
        "other.ini",
        "--rootdir",
        ".",
        "--fast",
        "yes",
        "-x",
        "-vv",
        "--tb=short",
        "--hermetic-all",
        "-rA",
        "tests",
    )
    (line,) = outcome.commands
    assert line.startswith("pytest tests/test_a.py::test_x --hermetic-all --hermetic-seed=4 ")
    words = shlex.split(line)
    assert words[words.index("-c") + 1] == "other.ini" and words[words.index("--rootdir") + 1] == "."
    assert words[words.index("--fast") + 1] == "yes"
    assert not {"-x", "-vv", "--tb=short", "-rA", "tests"} & set(words)
    assert paste(suite, line).counts == {"failed": 1}


def test_options_of_ours_that_the_test_needs(suite):
    suite.write({"test_a.py": "import time\ndef test_x(): assert time.localtime().tm_hour == 99\n"})
    outcome = suite.run("--hermetic-all", "--hermetic-tz=Asia/Tokyo", "--hermetic-strict-network")
    again = paste(suite, outcome.commands[0])
    assert error(again) == error(outcome) and "assert 9 == 99" in outcome.text


def test_marked_tests_need_no_option_for_all(suite):
    suite.write({"test_a.py": "import pytest\n@pytest.mark.hermetic\ndef test_x(): assert 0\n"})
    (line,) = suite.run("--hermetic-seed=8").commands
    assert line.startswith("pytest test_a.py::test_x --hermetic-seed=8")


def test_hash_seed_is_carried_when_set(suite):
    suite.write({"test_a.py": "def test_x(): assert 0, hash('x')\n"})
    outcome = suite.run("--hermetic-all", environment={"PYTHONHASHSEED": "7"})
    assert outcome.commands[0].startswith("PYTHONHASHSEED=7 pytest ")
    assert error(paste(suite, outcome.commands[0])) == error(outcome)


def test_awkward_names_are_quoted(suite):
    suite.write(
        {
            "a dir/test_a.py": """
            import pytest
            @pytest.mark.parametrize("text", ["a b", "it's", "x::y", "$HOME", "a/../b"])
            def test_x(text): assert 0
            """
        }
    )
    outcome = suite.run("--hermetic-all")
    assert len(outcome.commands) == 5
    for line in outcome.commands:
        assert paste(suite, line).counts == {"failed": 1}


def test_failures_of_every_phase_have_one_line_each(suite):
    suite.write(
        {
            "test_a.py": """
            import random, pytest
            @pytest.fixture
            def flaky(): assert random.random() < 0
            @pytest.fixture
            def late():
                yield
                assert 0
            def test_setup(flaky): pass
            def test_teardown(late): pass
            def test_both(late): assert 0
            @pytest.mark.hermetic(off=True)
            def test_outside(): assert 0
            """
        }
    )
    outcome = suite.run("--hermetic-all")
    assert sorted(line.split()[1] for line in outcome.commands) == [
        "test_a.py::test_both",
        "test_a.py::test_setup",
        "test_a.py::test_teardown",
    ]


def test_workers_failures_are_told_by_the_controller(suite):
    suite.write({"test_a.py": FAILS, "test_b.py": FAILS})
    outcome = suite.run("--hermetic-all", "-n", "2", plugins=("xdist",))
    assert len(outcome.commands) == 2 and not any(" -n" in line for line in outcome.commands)
    assert paste(suite, outcome.commands[0]).counts == {"failed": 1}


def test_command_function_is_pure():
    from hermetic._pytest import reproduce

    given = [
        "-p",
        "no:randomly",
        "-n4",
        "--dist",
        "load",
        "-k",
        "x and y",
        "tests",
        "-qq",
        "-sv",
        "--cov=pkg",
        "--reruns",
        "3",
    ]
    line = reproduce.command(
        "tests/test_a.py::test_x[a b]",
        root="/project",
        directory=os.path.join("/project", "tests"),
        arguments=given,
        positional=["tests"],
        own=["--hermetic-seed=1"],
        environment={},
    )
    assert line == "pytest 'test_a.py::test_x[a b]' --hermetic-seed=1 -p no:randomly -k 'x and y' -s"
