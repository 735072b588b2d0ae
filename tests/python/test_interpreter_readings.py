"""CPython reads the monotonic clock for itself whenever it takes a lock: those readings are none of the program's.

A `print`, a logging call or a tracer between two readings changes neither of them, and neither a recording nor its
replay notices that one is there.
"""

from __future__ import annotations

import ctypes
import itertools
import logging
import queue
import sys
import threading
import time
import warnings
from functools import partial

import hermetic
import pytest

TICK_NS = 1_000


@pytest.fixture
def noise(tmp_path):
    """Functions that take locks of the interpreter in various ways, and tell nothing."""
    lock, rlock, event = threading.Lock(), threading.RLock(), threading.Event()
    logger = logging.getLogger("test_interpreter_readings")
    logger.propagate = False
    with open(tmp_path / "printed", "w") as file:
        handler = logging.StreamHandler(file)
        handler.setFormatter(logging.Formatter("%(message)s"))
        logger.addHandler(handler)

        def take_locks():
            with lock, rlock:
                assert not event.is_set()
                assert not lock.acquire(blocking=False)

        def use_a_queue():
            channel = queue.SimpleQueue()
            channel.put(1)
            channel.get()

        yield {
            "print": lambda: print("x", file=file, flush=True),
            "locks": take_locks,
            "queue": use_a_queue,
            "condition": lambda: threading.Condition().acquire(),
        }
        logger.removeHandler(handler)


def readings(between=lambda: None):
    seen = []
    for _ in range(3):
        seen.append(time.monotonic_ns())
        between()
        seen.append(time.perf_counter_ns())
    return seen


KINDS = ["print", "locks", "queue", "condition"]


@pytest.mark.parametrize("kind", KINDS)
def test_locks_do_not_tick(noise, kind):
    with hermetic.sandbox(seed=1):
        quiet = readings()
    with hermetic.sandbox(seed=1):
        loud = readings(noise[kind])
    assert loud == quiet
    assert [later - earlier for earlier, later in itertools.pairwise(quiet)] == [TICK_NS] * 5


def test_a_reading_before_a_join_ticks():
    # Joining a thread waits for a semaphore without a reading of its own on some versions.
    with hermetic.sandbox(seed=1):
        thread = threading.Thread(target=time.sleep, args=(1,))
        thread.start()
        before = time.monotonic_ns()
        thread.join()
        assert time.monotonic_ns() - before == 1_000_000_000 + TICK_NS


@pytest.mark.parametrize("lock", [threading.Lock, threading.RLock, threading.Semaphore])
def test_timeouts_of_locks_are_exact(lock):
    taken = lock()
    with hermetic.sandbox(seed=1):
        holder = threading.Thread(target=taken.acquire)
        holder.start()
        holder.join()
        before = time.time_ns()
        assert not taken.acquire(timeout=5)
        assert time.time_ns() - before == pytest.approx(5_000_000_000, abs=3 * TICK_NS)


def test_a_sleep_is_exact_after_a_lock():
    with hermetic.sandbox(seed=1):
        threading.Lock().acquire()
        before = time.time_ns()
        time.sleep(3)
        assert time.time_ns() - before == 3_000_000_000


def test_a_loop_that_prints_is_still_found_to_spin(tmp_path):
    with open(tmp_path / "printed", "w") as file, pytest.raises(hermetic.SandboxError, match="read the frozen"):
        with hermetic.sandbox(seed=1, spin_limit=200):
            while time.time() < 2e9:
                print("waiting", file=file)


def traced(act):
    """Runs it under a tracer that takes locks, as those of coverage tools do."""
    lock = threading.Lock()
    lines = []

    def trace(frame, kind, argument):
        with lock:
            lines.append(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return act()
    finally:
        sys.settrace(before)
        assert lines


def record(path, act):
    with hermetic.sandbox(record=path):
        return act()


def replay(path, act):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with hermetic.sandbox(replay=path):
            return act()


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_may_print_more_or_less(noise, kind, tmp_path):
    quiet, loud = (lambda: readings()), (lambda: readings(noise[kind]))
    for recorded, replayed in ((quiet, loud), (loud, quiet), (loud, loud)):
        told = record(tmp_path / "x.journal", recorded)
        assert replay(tmp_path / "x.journal", replayed) == told
        assert replay(tmp_path / "x.journal", partial(traced, replayed)) == told


def test_a_recording_under_a_tracer_replays_without(tmp_path):
    told = record(tmp_path / "x.journal", lambda: traced(readings))
    assert replay(tmp_path / "x.journal", readings) == told


def test_a_logged_message_reads_the_wall_clock_and_nothing_else(noise, tmp_path):
    logger = logging.getLogger("test_interpreter_readings")

    def act(log=logger.warning):
        before = time.monotonic_ns()
        log("a message")
        return before, time.monotonic_ns()

    told = record(tmp_path / "x.journal", act)
    assert replay(tmp_path / "x.journal", act) == told
    # The time of the record is a reading of the program's, and is missed.
    with pytest.raises(hermetic.ReplayMismatch, match="wall clock"):
        replay(tmp_path / "x.journal", lambda: act(lambda message: None))


def test_a_reading_too_many_is_told_at_the_next_question(tmp_path):
    record(tmp_path / "x.journal", readings)
    reached = []

    def more():
        readings()
        time.monotonic()
        time.time()
        for _ in range(3):
            reached.append(len(reached))

    with pytest.raises(hermetic.ReplayExhausted, match=r"monotonic clock .*in .*more"):
        replay(tmp_path / "x.journal", more)
    assert len(reached) < 3


def test_a_reading_too_many_cannot_be_swallowed(tmp_path):
    record(tmp_path / "x.journal", readings)

    def more():
        readings()
        try:
            time.monotonic()
            for _ in range(3):
                time.time()
        except hermetic.SandboxError:
            pass

    with pytest.raises(hermetic.ReplayExhausted, match=r"in .*more"):
        replay(tmp_path / "x.journal", more)


def test_an_interruption_that_came_too_late_leaves_nothing_behind():
    # The last reading trips the detector, and the exit takes the interruption back: CPython must not look for it any
    # more.
    with pytest.raises(hermetic.SandboxError, match="read the frozen"), hermetic.sandbox(seed=1, spin_limit=10):
        [time.time() for _ in range(10)] and time.time()
    assert traced(lambda: sum(range(10))) == 45


def test_a_reading_before_a_lock_of_the_interpreter_is_kept():
    """A pending call makes the interpreter take a lock of its own in the midst of the program's instruction."""
    call = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(("PyObject_CallNoArgs", ctypes.pythonapi))
    nothing = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: 0)
    pend = partial(ctypes.pythonapi.Py_AddPendingCall, nothing, None)

    def ticks_of(*acts):
        begin = time.monotonic_ns()
        list(map(call, acts))
        return (time.monotonic_ns() - begin) // TICK_NS

    with hermetic.sandbox(seed=1):
        assert [ticks_of(int, time.monotonic), ticks_of(pend, time.monotonic)] == [2, 2]
