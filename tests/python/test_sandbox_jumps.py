"""`sb.clock.jumps`: when and why time moved, and the children for whose sake it did not jump."""

from __future__ import annotations

import itertools
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import hermetic
import pytest
from machine import lacking

HOUR = 3600.0
NAPPER = """
#include <stdlib.h>
#include <time.h>
int main(int count, char **words) {
    long milliseconds = count > 1 ? atol(words[1]) : 0;
    struct timespec span = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    return nanosleep(&span, 0);
}
"""


@pytest.fixture(scope="module")
def napper(tmp_path_factory) -> Path:
    """A program that no preloaded library reaches: `napper MILLISECONDS`."""
    folder = tmp_path_factory.mktemp("napper")
    (folder / "napper.c").write_text(NAPPER)
    compiler = shutil.which("cc")
    words = [compiler or "cc", "-static", "-o", str(folder / "napper"), str(folder / "napper.c")]
    if compiler is None or subprocess.run(words, stderr=subprocess.DEVNULL).returncode != 0:
        lacking("compilers", "no C compiler that links statically")
    return folder / "napper"


def test_each_move_has_a_reason():
    with hermetic.sandbox(seed=1, now="2020-01-01") as sb:
        time.sleep(5)
        sb.clock.advance(HOUR)
        sb.clock.set("2020-01-02")
        time.sleep(1)
        jumps = sb.clock.jumps
    assert jumps == [
        (0.0, 5.0, "deadline of thread 0"),
        (5.0, 3605.0, "advance"),
        (3605.0, 86400.0, "set"),
        (86400.0, 86401.0, "deadline of thread 0"),
    ]
    assert (jumps[0].at, jumps[0].to, jumps[0].why) == jumps[0]
    assert sb.clock.jumps == jumps, "it can be asked for after the exit"


def test_threads_are_counted_in_the_order_of_their_start():
    def run() -> list[hermetic.Jump]:
        with hermetic.sandbox(seed=3) as sb:
            threads = [threading.Thread(target=time.sleep, args=(seconds,)) for seconds in (30, 10, 20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return sb.clock.jumps

    jumps = run()
    assert [(jump.to, jump.why[-1]) for jump in jumps] == [(10.0, "2"), (20.0, "3"), (30.0, "1")]
    assert run() == jumps, "each sandbox has a list of its own, and counts anew"


def test_what_does_not_move_time_is_no_move():
    with hermetic.sandbox(seed=1) as sb:
        time.sleep(0)
        time.monotonic()
        gate = threading.Event()
        threading.Timer(0, gate.set).start()
        assert gate.wait(HOUR)
        assert sb.clock.jumps == []


def test_only_the_last_moves_are_kept():
    with hermetic.sandbox(seed=1) as sb:
        for _ in range(1100):
            time.sleep(1)
        jumps = sb.clock.jumps
    assert len(jumps) == 1024
    assert jumps[-1].to == 1100.0
    assert all(before.to == after.at for before, after in itertools.pairwise(jumps))


def test_a_real_clock_has_no_jumps():
    with hermetic.sandbox(seed=1, clock="off") as sb, pytest.raises(hermetic.SandboxError):
        _ = sb.clock.jumps


def test_a_child_that_takes_part_is_named_by_its_program():
    with hermetic.sandbox(seed=1) as sb:
        subprocess.run(["sleep", "3600"], check=True)
    [jump] = sb.clock.jumps
    assert (jump.at, jump.to, jump.why) == (0.0, HOUR, "deadline of thread 0 of child sleep")
    assert sb.findings == []


def wait_beside(words: list[str], seconds: float) -> None:
    """Lets virtual seconds pass while a child runs that takes longer."""
    with subprocess.Popen(words, stdin=subprocess.PIPE) as child:
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(seconds)
        finally:
            child.kill()


def test_time_follows_the_real_one_for_a_static_child_and_says_so(napper):
    with hermetic.sandbox(seed=1) as sb:
        begin = sb.real.monotonic()
        wait_beside([str(napper), "60000"], 0.5)
        assert sb.real.monotonic() - begin >= 0.5
    assert {jump.why for jump in sb.clock.jumps} == {"followed real time: child napper runs and takes no part"}
    assert sb.clock.jumps[-1].to == pytest.approx(0.5, abs=0.01)
    [finding] = sb.findings
    assert (finding.kind, finding.subject, finding.fatal) == ("external-child", "napper", False)
    assert "static program" in finding.message


def test_a_child_that_was_kept_out_is_told_with_the_option():
    with hermetic.sandbox(seed=1, inherit="off") as sb:
        wait_beside(["cat"], 0.5)
        assert [finding.subject for finding in sb.findings] == ["cat"], "also while the sandbox is active"
    [finding] = sb.findings
    assert 'inherit="off"' in finding.message


def test_a_child_that_is_only_starting_is_no_finding():
    with hermetic.sandbox(seed=1) as sb:
        for _ in range(5):
            with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child, pytest.raises(subprocess.TimeoutExpired):
                child.wait(60)
    assert sb.findings == []


SERVER = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    peer, _ = server.accept()
    peer.recv(100)
    if sys.argv[1] == "answers":
        peer.sendall(b"answer")
    sys.stdin.read()
"""


@pytest.mark.parametrize("manner", ["answers", "is silent"])
def test_a_server_outside_is_given_real_time_and_no_more(manner):
    words = [sys.executable, "-c", SERVER, manner]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        port = int(server.stdout.readline())
        with hermetic.sandbox(seed=1) as sb, socket.create_connection(("127.0.0.1", port), timeout=0.7) as client:
            begin = sb.real.monotonic()
            client.sendall(b"question")
            if manner == "answers":
                assert client.recv(100) == b"answer"
                assert sb.clock.jumps == [], "an answer takes no time"
            else:
                with pytest.raises(TimeoutError):
                    client.recv(100)
                assert 0.7 <= sb.real.monotonic() - begin < 5
                assert sb.clock.jumps == [(0.0, 0.7, "followed real time: somebody outside owes an answer")]
        assert sb.findings == []
        server.stdin.close()


def test_a_deadlock_is_listed_as_a_reason_not_to_jump():
    with pytest.raises(hermetic.DeadlockError), hermetic.sandbox(seed=1) as sb:
        time.sleep(2)
        threading.Event().wait()
    assert sb.clock.jumps[-1] == (2.0, 2.0, "not jumped: every thread waits, and none of them for a time")


@pytest.mark.filterwarnings("ignore:hermetic replay")
def test_a_journal_beside_a_pinned_clock_holds_the_moves(tmp_path):
    path = tmp_path / "run.json"
    with hermetic.sandbox(now="2020-01-01", record=path) as sb:
        time.sleep(5)
        sb.clock.advance(1)
        threading.Event().wait(4)
        assert len(sb.clock.jumps) == 3
    events = [event for event in json.loads(path.read_text())["events"] if event["event"] == "jump"]
    assert [event["reason"] for event in events] == ["deadline", "advance", "deadline"]
    with hermetic.sandbox(replay=path):
        time.sleep(5)
        threading.Event().wait(4)


def test_pytest_names_the_child_in_the_report(project, napper):
    project.write(
        test_child=f"""
        import subprocess

        def test_wait():
            with subprocess.Popen([{str(napper)!r}, "60000"]) as child:
                try:
                    child.wait(0.3)
                finally:
                    child.kill()
        """
    )
    ran = project.pytest("--hermetic-all")
    assert ran.outcomes() == {"failed": 1}
    [told] = ran.lines("time followed the real one")
    assert "the child napper ran" in told
    assert "Hermetic" in ran.text


def test_a_deadlock_beside_a_wider_fixture_is_told_to_the_test_and_the_run_goes_on(project):
    """The test's sandbox lay below another one meanwhile: whoever entered it has its first place all the same."""
    project.write(
        test_lock="""
        import threading, time
        import pytest

        @pytest.fixture(scope="session")
        def wide():
            time.sleep(1)
            yield

        def test_stuck(wide):
            first, second = threading.Lock(), threading.Lock()

            def worker():
                with second:
                    time.sleep(0.5)
                    with first:
                        pass

            thread = threading.Thread(target=worker, name="other hand")
            with first:
                thread.start()
                time.sleep(1)
                with second:
                    pass

        def test_after():
            time.sleep(3600)
        """
    )
    ran = project.pytest("--hermetic-all", "-p", "no:rerunfailures")
    assert ran.outcomes() == {"failed": 1, "passed": 1}
    assert "DeadlockError" in ran.text
    assert "thread other hand:" in ran.text
    assert "thread MainThread:" in ran.text
