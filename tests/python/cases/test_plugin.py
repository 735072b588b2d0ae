"""Sandboxes under pytest: the peer's defects h01, h02, h28, h29, h31, h48, h52, h54 and h55, absent here."""

from __future__ import annotations

import json
import shlex

import pytest


@pytest.mark.case("h01")
def test_recording_changes_no_verdict(project):
    project.write(
        test_pinned="""
        import datetime, random, time, pytest

        @pytest.mark.hermetic(now="2021-06-01T12:00:00+00:00", seed=7)
        def test_year(): assert datetime.datetime.now(datetime.timezone.utc).year == 2021

        @pytest.mark.hermetic(seed=7)
        def test_draw(): assert random.random() == random.Random(7).random()

        @pytest.mark.hermetic(now="2021-06-01")
        def test_sleep():
            before = time.time(); time.sleep(3600); assert time.time() == before + 3600
        """
    )
    plain = project.pytest("-q")
    recorded = project.pytest("-q", "--hermetic-record=journals")
    assert plain.outcomes() == recorded.outcomes() == {"passed": 3}, recorded.text
    assert project.journals() == []


@pytest.mark.case("h02")
def test_monkeypatch_leaves_nothing_behind(project):
    project.write(
        test_first="""
        import time, socket
        def test_patches(monkeypatch):
            monkeypatch.setattr(time, "time", lambda: 5.0)
            monkeypatch.setattr(socket.socket, "connect", lambda *words: None)
            assert time.time() == 5.0
        """,
        test_second="""
        import time, socket, pytest
        @pytest.mark.hermetic(off=True)
        def test_opted_out():
            assert time.time() > 1.6e9
            assert time.time.__module__ == "time"
            assert socket.socket.connect.__objclass__.__module__ == "_socket"
        """,
    )
    ran = project.pytest("-q", "--hermetic-all")
    assert ran.outcomes() == {"passed": 2}, ran.text


@pytest.mark.case("h28")
def test_fixtures_run_inside(project):
    project.write(
        test_age="""
        import time, uuid, pytest
        @pytest.fixture
        def order():
            made = {"at": time.time(), "id": uuid.uuid4()}
            yield made
            print("LATER", time.time() - made["at"], uuid.uuid4())

        @pytest.fixture(scope="module")
        def shop(): return uuid.uuid4()

        @pytest.mark.hermetic
        def test_age(order, shop): print("AGE", time.time() - order["at"], order["id"], shop)
        """
    )

    def told() -> list[str]:
        ran = project.pytest("-qs", "--hermetic-seed=1")
        assert ran.outcomes() == {"passed": 1}, ran.text
        return [line[line.index(word) :] for word in ("AGE", "LATER") for line in ran.text.splitlines() if word in line]

    first = told()
    assert first == told()
    assert [line.split()[1] for line in first] == ["0.0", "0.0"]


@pytest.mark.case("h29")
def test_markers_merge(project):
    project.write(
        test_merge="""
        import socket, pytest, time
        pytestmark = pytest.mark.hermetic(network="off", now="2021-06-01")

        @pytest.mark.hermetic(seed=3)
        def test_outer_keys_stay(hermetic_sandbox):
            assert socket.getaddrinfo("203.0.113.9", 80)
            assert (hermetic_sandbox.seed, time.gmtime().tm_year) == (3, 2021)

        @pytest.mark.hermetic(now="2022-06-01")
        class TestNearer:
            @pytest.mark.hermetic(now="2023-06-01")
            def test_nearest_wins(self): assert time.gmtime().tm_year == 2023

            def test_class_wins(self): assert time.gmtime().tm_year == 2022
        """
    )
    ran = project.pytest("-q")
    assert ran.outcomes() == {"passed": 3}, ran.text


@pytest.mark.case("h31")
def test_what_a_session_fixture_sets_stays(project):
    project.write(
        test_server="""
        import os, pytest
        @pytest.fixture(scope="session")
        def server():
            os.environ["SERVER_URL"] = "http://127.0.0.1:1"; yield; del os.environ["SERVER_URL"]

        def test_first(request):
            request.getfixturevalue("server"); assert os.environ["SERVER_URL"]

        def test_second(server):
            assert os.environ["SERVER_URL"]; os.environ["LEFT"] = "1"

        def test_third(): assert os.environ["SERVER_URL"] and "LEFT" not in os.environ
        """
    )
    ran = project.pytest("-q", "--hermetic-all")
    assert ran.outcomes() == {"passed": 3}, ran.text


@pytest.mark.case("h48")
@pytest.mark.parametrize("phase", ["setup", "teardown"])
def test_a_failing_fixture_gets_its_command_and_its_journal(project, phase):
    body = "assert random.random() < 0" if phase == "setup" else "yield; assert random.random() < 0"
    project.write(
        test_fixture=f"""
        import pytest, random
        @pytest.fixture
        def flaky(): {body}
        def test_uses(flaky): pass
        """
    )
    recorded = project.pytest("-q", "--hermetic-all", "--hermetic-record=journals")
    assert recorded.code == 1
    assert "hermetic repro commands" in recorded.text
    [journal] = project.journals()
    replayed = project.pytest("-q", f"--hermetic-replay={journal}")
    assert replayed.errors() == recorded.errors()


@pytest.mark.case("h52")
@pytest.mark.parametrize("options", [(), ("-n2",)], ids=["plain", "xdist"])
def test_a_retry_that_passes_keeps_and_tells_of_the_failed_attempt(project, options):
    pytest.importorskip("pytest_rerunfailures")
    project.write(
        test_retry="""
        import pathlib, time
        COUNT = pathlib.Path(__file__).with_name("count")
        def test_flaky():
            time.time()
            number = int(COUNT.read_text()) if COUNT.exists() else 0
            COUNT.write_text(str(number + 1))
            assert number == 1
        def test_fine(): pass
        """
    )
    ran = project.pytest("-q", "--hermetic-all", "--hermetic-record=journals", "--reruns=1", *options)
    assert ran.code == 0, ran.text
    [journal] = project.journals()
    assert journal.name in ran.text
    index = json.loads((project.root / "journals" / "index.json").read_text())
    assert [(entry["file"], entry["test"]) for entry in index["journals"]] == [
        (journal.name, "test_retry.py::test_flaky")
    ]
    again = project.pytest("-q", "--hermetic-all", "--reruns=2", "-k", "fine")
    assert "hermetic repro" not in again.text


@pytest.mark.case("h54")
def test_the_header_speaks_only_when_it_matters(project):
    project.write(test_fine="def test_fine(): pass", test_bad="def test_bad(): assert False")
    assert "hermetic" not in project.pytest("test_fine.py").text.lower().split("plugins:")[0]
    assert "base seed" not in project.pytest("test_fine.py").text
    assert "base seed" in project.pytest("--hermetic-all", "test_fine.py").text
    quiet = project.pytest("-q", "--hermetic-all", "--hermetic-seed=4711", "test_bad.py").text
    assert "4711" in quiet


@pytest.mark.case("h55")
@pytest.mark.parametrize("ini", [True, False], ids=["ini", "no ini"])
def test_the_printed_command_reproduces_from_where_it_was_printed(project, ini):
    project.write(tests__test_draw="import random\ndef test_draw():\n    assert 0, random.random()\n")
    if ini:
        project.file("pytest.ini", "[pytest]\n")
    values = set()
    for cwd in (project.root, project.root / "tests"):
        first = project.pytest("--hermetic-all", "--hermetic-seed=5", cwd=cwd)
        [command] = first.lines("pytest ")
        again = project.pytest(*shlex.split(command)[1:], cwd=cwd)
        assert again.code == 1, again.text
        assert again.errors() == first.errors()
        values.add(first.errors()[0])
    assert len(values) == 1
