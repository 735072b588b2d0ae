"""The program of the wait matrix: makes each wait inside a sandbox and prints one line of JSON for it.

Started in a process of its own, so that a wait that hangs costs the rest of the table and not the test run, and so that
the same table runs in every world: `python matrix.py WORLD SECONDS [LIBRARY …]`. Native waits come from the shared
objects. In the world "attached" each wait has a sandbox of its own; in "preloaded" a sandbox has started this program,
which takes part in it and never imports hermetic; in "recorded" each wait is recorded, and then replayed.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import ctypes
import json
import queue
import re
import sched
import select
import selectors
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

Wait = Callable[[float], object]
Measure = Callable[[Wait, float], dict[str, object]]
TRIES_MAX = 10
GOOD_S = 0.05


def event(seconds: float) -> bool:
    return not threading.Event().wait(seconds)


def lock(seconds: float) -> bool:
    taken = threading.Lock()
    taken.acquire()
    return not taken.acquire(timeout=seconds)


def rlock(seconds: float) -> bool:
    taken, results = threading.RLock(), []
    taken.acquire()
    other = threading.Thread(target=lambda: results.append(taken.acquire(timeout=seconds)))
    other.start()
    other.join()
    return results == [False]


def condition(seconds: float) -> bool:
    never = threading.Condition()
    with never:
        return not never.wait(seconds)


def barrier(seconds: float) -> bool:
    try:
        threading.Barrier(2).wait(seconds)
    except threading.BrokenBarrierError:
        return True
    return False


def join(seconds: float) -> bool:
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    thread.join(seconds)
    was_alive = thread.is_alive()
    release.set()
    thread.join()
    return was_alive


def timer(seconds: float) -> bool:
    rang = threading.Event()
    thread = threading.Timer(seconds, rang.set)
    thread.start()
    thread.join()
    return rang.is_set()


def get(seconds: float) -> bool:
    try:
        queue.Queue().get(timeout=seconds)
    except queue.Empty:
        return True
    return False


def simple_get(seconds: float) -> bool:
    try:
        queue.SimpleQueue().get(timeout=seconds)
    except queue.Empty:
        return True
    return False


def future(seconds: float) -> bool:
    try:
        concurrent.futures.Future().result(timeout=seconds)
    except concurrent.futures.TimeoutError:
        return True
    return False


def executor(seconds: float) -> bool:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(time.sleep, seconds) for _ in range(2)]
        return len(concurrent.futures.wait(jobs).done) == 2


def schedule(seconds: float) -> bool:
    rang = []
    plan = sched.scheduler()
    plan.enter(seconds, 1, rang.append, (True,))
    plan.run()
    return rang == [True]


def asyncio_sleep(seconds: float) -> bool:
    asyncio.run(asyncio.sleep(seconds))
    return True


async def ended_by_wait_for(seconds: float) -> bool:
    try:
        await asyncio.wait_for(asyncio.Event().wait(), seconds)
    except asyncio.TimeoutError:
        return True
    return False


async def ended_by_timeout(seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()
    except TimeoutError:
        return True
    return False


def poll(seconds: float) -> bool:
    here, there = socket.socketpair()
    with here, there:
        waiter = select.poll()
        waiter.register(here, select.POLLIN)
        return waiter.poll(seconds * 1000) == []


def select_read(seconds: float) -> bool:
    here, there = socket.socketpair()
    with here, there:
        return select.select([here], [], [], seconds) == ([], [], [])


def epoll(seconds: float) -> bool:
    here, there = socket.socketpair()
    with here, there, select.epoll() as waiter:
        waiter.register(here, select.EPOLLIN)
        return waiter.poll(seconds) == []


def selector(seconds: float) -> bool:
    here, there = socket.socketpair()
    with here, there, selectors.DefaultSelector() as waiter:
        waiter.register(here, selectors.EVENT_READ)
        return waiter.select(seconds) == []


def receive(seconds: float) -> bool:
    here, there = socket.socketpair()
    with here, there:
        here.settimeout(seconds)
        try:
            here.recv(1)
        except TimeoutError:
            return True
    return False


def accept(seconds: float) -> bool:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(seconds)
        try:
            server.accept()
        except TimeoutError:
            return True
    return False


def take_signal(seconds: float) -> bool:
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    try:
        return signal.sigtimedwait({signal.SIGUSR2}, seconds) is None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def sqlite_busy(seconds: float) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "busy.db")
        holder, waiter = sqlite3.connect(path), sqlite3.connect(path, timeout=seconds)
        try:
            holder.execute("BEGIN EXCLUSIVE")
            waiter.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            return "locked" in str(error)
        finally:
            waiter.close()
            holder.close()
    return False


def child(seconds: float) -> bool:
    return subprocess.run(["sleep", str(seconds)], check=True).returncode == 0


def waits() -> dict[str, Wait]:
    """Python's own waits by name; those that need a newer interpreter or a part that is not built are absent."""
    table: dict[str, Wait] = {
        "time.sleep": lambda seconds: time.sleep(seconds) is None,
        "Event.wait": event,
        "Lock.acquire": lock,
        "RLock.acquire": rlock,
        "Semaphore.acquire": lambda seconds: not threading.Semaphore(0).acquire(timeout=seconds),
        "Condition.wait": condition,
        "Barrier.wait": barrier,
        "Thread.join": join,
        "threading.Timer": timer,
        "Queue.get": get,
        "SimpleQueue.get": simple_get,
        "Future.result": future,
        "ThreadPoolExecutor": executor,
        "sched.scheduler": schedule,
        "asyncio.sleep": asyncio_sleep,
        "asyncio.wait_for": lambda seconds: asyncio.run(ended_by_wait_for(seconds)),
        "select.select": select_read,
        "select.poll": poll,
        "select.epoll": epoll,
        "selectors": selector,
        "socket.recv": receive,
        "socket.accept": accept,
        "signal.sigtimedwait": take_signal,
        "sqlite busy timeout": sqlite_busy,
        "subprocess.run": child,
    }
    if hasattr(asyncio, "timeout"):
        table["asyncio.timeout"] = lambda seconds: asyncio.run(ended_by_timeout(seconds))
    return table


def native_waits(path: str) -> dict[str, Wait]:
    """The functions `wait_…` of a shared object, after the source beside this file that it was made of."""
    library, source = ctypes.CDLL(path), Path(__file__).with_name(Path(path).name.rpartition(".")[0])
    names = re.findall(r"^(?:pub |extern \"C\" )*(?:int|fn) (wait_\w+)", source.read_text(), re.MULTILINE)
    names = names or re.findall(r"fn (wait_\w+)", source.read_text())

    def wait(name: str) -> Wait:
        function = getattr(library, name)
        function.argtypes = (ctypes.c_long,)
        return lambda seconds: function(round(seconds * 1000)) == 0

    return {f"{source.suffix[1:]} {name.removeprefix('wait_')}": wait(name) for name in names}


@contextmanager
def attached() -> Iterator[Callable[[], float]]:
    """A sandbox, and the real clock in it."""
    import hermetic

    with hermetic.sandbox(seed=1) as sandbox:
        yield sandbox.real.monotonic


@contextmanager
def preloaded() -> Iterator[Callable[[], float]]:
    """The sandbox that has started this program, and a real clock that no library answers for."""
    assert "hermetic" not in sys.modules, "a preloaded program has no front end"
    yield lambda: float(Path("/proc/uptime").read_text().split()[0])


def timed(wait: Wait, seconds: float, real: Callable[[], float]) -> tuple[bool, float, float]:
    """Whether the wait ended as it should, and its seconds by the program's clock and by the real one."""
    begin, real_begin = time.monotonic(), real()
    is_right = bool(wait(seconds))
    return is_right, time.monotonic() - begin, real() - real_begin


def best(measure: Callable[[], tuple[bool, float, float]]) -> tuple[bool, float, float]:
    """The best of some tries: on a busy machine one may be late."""
    tries = []
    for _ in range(TRIES_MAX):
        tries.append(measure())
        if tries[-1][0] and tries[-1][2] < GOOD_S:
            break
    return min(tries, key=lambda one: (not one[0], one[2]))


def in_world(world: Callable[[], AbstractContextManager[Callable[[], float]]]) -> Measure:
    def measure(wait: Wait, seconds: float) -> dict[str, object]:
        def once() -> tuple[bool, float, float]:
            with world() as real:
                return timed(wait, seconds, real)

        is_right, virtual_s, real_s = best(once)
        return {"right": is_right, "virtual_s": virtual_s, "real_s": real_s}

    return measure


def recorded(wait: Wait, seconds: float) -> dict[str, object]:
    """The wait made really and written down, then replayed; a replay that does not read the same clocks is an error."""
    import hermetic

    # SQLite asks for random bytes once in a process; the recorded wait shall not be the one that does.
    sqlite3.connect(":memory:").execute("SELECT random()")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wait.journal"
        with hermetic.sandbox(record=path) as sandbox:
            was_right, recorded_s, took_s = timed(wait, seconds, sandbox.real.monotonic)

        def replay() -> tuple[bool, float, float]:
            with hermetic.sandbox(replay=path) as sandbox:
                return timed(wait, seconds, sandbox.real.monotonic)

        is_right, virtual_s, real_s = best(replay)
    is_same = (is_right, virtual_s) == (was_right, recorded_s)
    return {"right": was_right and is_same, "virtual_s": virtual_s, "real_s": real_s, "recorded_s": took_s}


WORLDS: dict[str, Measure] = {
    "attached": in_world(attached),
    "preloaded": in_world(preloaded),
    "recorded": recorded,
}


def main() -> None:
    measure, seconds, table = WORLDS[sys.argv[1]], float(sys.argv[2]), waits()
    for path in sys.argv[3:]:
        table |= native_waits(path)
    for name, wait in table.items():
        try:
            row = measure(wait, seconds)
        except Exception as error:
            row = {"right": False, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"wait": name, **row}), flush=True)


if __name__ == "__main__":
    main()
