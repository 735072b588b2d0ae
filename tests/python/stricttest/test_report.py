"""The closing report, leaks, and what CI asserts."""

from __future__ import annotations

import json
import sys

LEAKY = """
import os, pathlib, socket, subprocess

def test_variable(): os.environ["THEME"] = "dark"
def test_victim(): assert "THEME" not in os.environ
def test_file(): (pathlib.Path(__file__).parent / "written.txt").write_text("x")
def test_host():
    try: socket.getaddrinfo("203.0.113.9", 80)
    except BaseException: pass
"""


def test_variables_are_taken_back_and_everything_is_reported(floored):
    floored.file("test_leaky.py", LEAKY)
    ran = floored.pytest("-q", "--stricttest-report=json:told.json", env={"GH_TOKEN": "s3cret"})
    assert "1 failed, 3 passed" in ran.text, ran.text
    text = (floored.root / "told.json").read_text()
    told = json.loads(text)
    assert [entry["subject"] for entry in told["variables_left"]] == ["THEME"]
    assert told["variables_left"][0]["test"] == "test_leaky.py::test_variable"
    assert [entry["subject"] for entry in told["files_written"]] == [str(floored.root / "written.txt")]
    assert [(entry["subject"], entry["port"]) for entry in told["hosts_tried"]] == [("203.0.113.9", 80)]
    assert "GH_TOKEN" in told["credentials_removed"] and "s3cret" not in text


def test_the_report_is_the_same_from_workers(floored):
    floored.file("test_leaky.py", LEAKY)
    ran = floored.pytest("-q", "-n", "2", "--stricttest-report=json")
    told = json.loads(next(line for line in ran.text.splitlines() if line.startswith("{")))
    assert [entry["subject"] for entry in told["variables_left"]] == ["THEME"]
    assert len(told["files_written"]) == 1 and len(told["hosts_tried"]) == 1


def test_the_text_names_polluter_file_and_host(floored):
    floored.file("test_leaky.py", LEAKY)
    ran = floored.pytest()
    assert "test_leaky.py::test_variable: THEME was set" in ran.text
    assert f"test_leaky.py::test_file: {floored.root / 'written.txt'}" in ran.text
    assert "test_leaky.py::test_host: 203.0.113.9:80 at test_leaky.py:8 in test_host" in ran.text


def test_leaks_fail_their_test_where_that_is_asked_for(floored):
    floored.file("test_leaky.py", LEAKY)
    floored.settings(stricttest_leaks="fail")
    ran = floored.pytest("-q")
    assert "ERROR test_leaky.py::test_variable" in ran.text and "ERROR test_leaky.py::test_file" in ran.text, ran.text
    assert "1 failed, 3 passed, 2 errors" in ran.text


def test_what_wider_fixtures_set_stays_and_is_no_leak(floored):
    floored.file(
        "test_a.py",
        """
        import os, pytest
        @pytest.fixture(scope="module")
        def theme():
            os.environ["THEME"] = "dark"
            yield
            del os.environ["THEME"]
        def test_1(theme): pass
        def test_2(): assert os.environ["THEME"] == "dark"
        def test_3(monkeypatch): monkeypatch.setenv("OTHER", "1")
        """,
    )
    floored.settings(stricttest_leaks="fail")
    ran = floored.pytest("-q")
    assert ran.code == 0 and "THEME" not in ran.text, ran.text


def verify(floored, *options):
    return floored.run([sys.executable, "-m", "stricttest._console", "verify", *options])


def test_verify_asserts_that_the_last_run_was_isolated(floored):
    floored.file("test_two.py", "def test_good(): pass\ndef test_bad(): assert 0\n")
    ran = verify(floored)
    assert ran.code == 1 and "no record" in ran.text
    assert floored.pytest("-q", "-k", "test_good").code == 0
    assert verify(floored, "--passed").code == 0
    assert floored.pytest("-q").code == 1
    assert verify(floored).code == 0 and verify(floored, "--passed").code == 1
    assert verify(floored, "--max-age", "0").code == 1


def test_verify_finds_a_run_that_crashed_and_a_later_one_without_the_floor(floored):
    import os

    floored.file("test_a.py", "import os\ndef test_a(): os._exit(3)\n")
    floored.pytest("-q")
    ran = verify(floored)
    assert ran.code == 1 and "did not end" in ran.text
    floored.file("test_a.py", "def test_a(): pass\n")
    assert floored.pytest("-q").code == 0 and verify(floored).code == 0
    later = floored.root / ".pytest_cache" / "v" / "cache" / "nodeids"
    later.parent.mkdir(parents=True)
    later.write_text("[]")
    os.utime(later, (later.stat().st_mtime + 60,) * 2)
    ran = verify(floored)
    assert ran.code == 1 and "nodeids" in ran.text


def test_a_quiet_clean_run_says_nothing(floored):
    floored.file("test_a.py", "def test_a(): pass\n")
    assert "stricttest" not in floored.pytest("-q", "-q").text
