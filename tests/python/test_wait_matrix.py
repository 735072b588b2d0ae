"""The wait matrix: every kind of wait of an hour takes no real time, whoever makes it, in every world.

One program (`native/matrix.py`) makes all waits, those of C, C++ and Rust through shared objects that are compiled
here; its answers are checked one by one. It runs *attached*, where it enters sandboxes itself, and *preloaded*, as the
child of a sandbox that knows nothing of it. `native/runner.c` makes the native waits in a program without interpreter.
*Recorded* waits are shorter, because they are real; their replays take no time. How real input, deadlocks and order
behave beside virtual time is in `test_waits.py`, the recorded order in `test_recorded_order.py`.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from conftest import run
from machine import lacking

NATIVE = Path(__file__).with_name("native")
SECONDS = 3600
REAL_S_MAX = 0.1
# SQLite waits in naps of a tenth of a second: these are 36,000 waits, 80 ms on a machine that does nothing else. Beside
# a parent that sleeps in the kernel each of them asks the kernel whether it still does, which makes them a second.
REAL_S_MAX_OF = {
    ("sqlite busy timeout", "attached"): 0.5,
    ("sqlite busy timeout", "preloaded"): 5,
    # Children of recorded and replayed tests are real.
    ("subprocess.run", "recorded"): 60,
}

COMPILERS = {
    "c": ("cc", "-shared", "-fPIC", "-O1", "-pthread", "-lrt"),
    "cpp": ("c++", "-shared", "-fPIC", "-O1", "-pthread"),
    "rs": ("rustc", "--crate-type=cdylib", "-O", "--edition=2021"),
}

# The worlds in which the program makes its waits. The same table holds in all of them.
WORLDS = ("attached", "preloaded", "recorded")
NATIVE_WORLDS = (*WORLDS, "program")
# Recorded waits are real ones.
SECONDS_OF = {"recorded": 0.1}
# Starts a program as the child of a sandbox, which knows nothing of what it does.
PARENT = """
import subprocess, sys, hermetic
with hermetic.sandbox(seed=1):
    sys.exit(subprocess.run(sys.argv[1:]).returncode)
"""

PYTHON_WAITS = (
    "time.sleep",
    "Event.wait",
    "Lock.acquire",
    "RLock.acquire",
    "Semaphore.acquire",
    "Condition.wait",
    "Barrier.wait",
    "Thread.join",
    "threading.Timer",
    "Queue.get",
    "SimpleQueue.get",
    "Future.result",
    "ThreadPoolExecutor",
    "sched.scheduler",
    "asyncio.sleep",
    "asyncio.wait_for",
    "asyncio.timeout",
    "select.select",
    "select.poll",
    "select.epoll",
    "selectors",
    "socket.recv",
    "socket.accept",
    "signal.sigtimedwait",
    "sqlite busy timeout",
    "subprocess.run",
)
NATIVE_WAITS = {
    "c": (
        "cond_timedwait",
        "cond_clockwait",
        "mutex_timedlock",
        "mutex_clocklock",
        "rwlock_timedwrlock",
        "rwlock_clockrdlock",
        "timedjoin",
        "join",
        "sem_timedwait",
        "sem_clockwait",
        "cnd_timedwait",
        "mtx_timedlock",
        "thrd_join",
        "semtimedop",
        "mq_timed",
        "sigtimedwait",
        "recv_timeout",
        "recvmmsg",
        "poll",
        "ppoll",
        "select",
        "pselect",
        "epoll",
        "sleep",
        "usleep",
        "nanosleep",
        "clock_nanosleep",
    ),
    "cpp": ("condition_variable", "condition_until", "future", "timed_mutex", "shared_mutex", "sleep_for"),
    "rs": ("park_timeout", "recv_timeout", "condvar", "sleeping_thread"),
}
ABSENT = {
    "asyncio.timeout": "asyncio.timeout is new in Python 3.11" if sys.version_info < (3, 11) else "",
}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory) -> dict[str, Path]:
    """The native waits, for each compiler that this machine has."""
    folder, built = tmp_path_factory.mktemp("native"), {}
    for kind, words in COMPILERS.items():
        if shutil.which(words[0]):
            built[kind] = folder / f"waits.{kind}.so"
            made = run(
                [*words[:1], "-o", str(built[kind]), str(NATIVE / f"waits.{kind}"), *words[1:]], folder, None, 120
            )
            assert made.code == 0, made.text
    return built


@pytest.fixture(scope="module")
def runners(libraries, tmp_path_factory) -> dict[str, Path]:
    """Native programs, each linked with the waits of one language."""
    folder, built = tmp_path_factory.mktemp("runners"), {}
    for kind, library in libraries.items() if "c" in libraries else ():
        built[kind] = folder / f"runner-{kind}"
        # Linked although no name of it is used: the waits are looked up by their names.
        link = ("-Wl,--no-as-needed", str(library), "-ldl")
        made = run(["cc", "-O1", "-o", str(built[kind]), str(NATIVE / "runner.c"), *link], folder, None, 120)
        assert made.code == 0, made.text
    return built


@pytest.fixture(scope="module")
def answers(libraries, runners, tmp_path_factory):
    """What the programs said, by world; they run once in each."""
    told: dict[str, dict[str, dict]] = {}

    def commands(world: str) -> list[list[str]]:
        parent = [sys.executable, "-c", PARENT] if world in ("preloaded", "program") else []
        seconds = SECONDS_OF.get(world, SECONDS)
        if world == "program":
            words = [[str(path), kind, str(seconds * 1000), *NATIVE_WAITS[kind]] for kind, path in runners.items()]
        else:
            program = [sys.executable, "-W", "ignore", str(NATIVE / "matrix.py"), world, str(seconds)]
            words = [[*program, *map(str, libraries.values())]]
        return [parent + program for program in words]

    def of(world: str) -> dict[str, dict]:
        if world not in told:
            folder = tmp_path_factory.mktemp(world)
            text = "".join(run(words, folder, None, 120).text for words in commands(world))
            rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
            told[world] = {row["wait"]: row for row in rows} | {"": {"text": text}}
        return told[world]

    return of


def check(rows: dict[str, dict], wait: str, world: str) -> None:
    assert wait in rows, f"no answer; the program ended with\n{rows['']['text'][-2000:]}"
    row, seconds = rows[wait], SECONDS_OF.get(world, SECONDS)
    assert row["right"], row
    assert row["virtual_s"] >= seconds - 0.001, row
    if world == "recorded":
        assert row["recorded_s"] >= seconds - 0.001, row
    else:
        # Some make two waits, or one after another's.
        assert row["virtual_s"] <= 2 * seconds + 1, row
    assert row["real_s"] < REAL_S_MAX_OF.get((wait, world), REAL_S_MAX), row


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("wait", PYTHON_WAITS)
def test_python_waits_take_no_real_time(answers, world, wait):
    if ABSENT.get(wait):
        pytest.skip(ABSENT[wait])
    check(answers(world), wait, world)


@pytest.mark.parametrize("world", NATIVE_WORLDS)
@pytest.mark.parametrize(("kind", "wait"), [(kind, wait) for kind, waits in NATIVE_WAITS.items() for wait in waits])
def test_native_waits_take_no_real_time(answers, libraries, world, kind, wait):
    if kind not in libraries:
        lacking("compilers", f"{COMPILERS[kind][0]} is not installed")
    check(answers(world), f"{kind} {wait}", world)


def test_the_table_names_every_native_wait(libraries, answers):
    """A function added to a source is a row here."""
    told = {name for name in answers("attached") if name.partition(" ")[0] in COMPILERS}
    assert told == {f"{kind} {wait}" for kind in libraries for wait in NATIVE_WAITS[kind]}
