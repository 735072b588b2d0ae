"""Garbage collections happen when they happen: what callbacks and finalizers read meanwhile disturbs nobody."""

from __future__ import annotations

import gc
import random
import time
import weakref

import hermetic
import pytest


class Loop:
    """Garbage that only a collection finds, and that looks at the clock as it goes."""

    def __init__(self, gone: list[float]) -> None:
        self.own = self
        self.gone = gone

    def __del__(self) -> None:
        self.gone += time.time(), time.monotonic(), time.perf_counter()


@pytest.fixture
def watched():
    """A callback of `gc` that measures, as Hypothesis and profilers have one."""
    read = []

    def measure(phase, info):
        read.append(time.perf_counter_ns())

    gc.callbacks.append(measure)
    yield read
    gc.callbacks.remove(measure)


def readings(gone: list[float], collects: bool) -> list[int]:
    Loop(gone)
    seen = []
    for _ in range(3):
        seen.append(time.monotonic_ns())
        if collects:
            gc.collect()
    return seen


def test_nothing_ticks_in_a_collection(watched):
    gc.collect()
    seen, gone = [], []
    for collects in (False, True):
        with hermetic.sandbox(seed=1):
            seen.append(readings(gone, collects))
        gc.collect()
    assert seen[0] == seen[1] and len(watched) >= 8


def test_finalizers_see_the_virtual_clock():
    gone = []
    with hermetic.sandbox(seed=1, now="2021-06-01T12:00:00Z"):
        readings(gone, collects=True)
    assert gone[0] == 1622548800.0 and gone[1] < 1e6


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("replayed", [False, True])
def test_a_replay_does_not_care_whether_there_was_one(tmp_path, watched, recorded, replayed):
    path = str(tmp_path / "kept.journal")
    with hermetic.sandbox(record=path):
        told = readings([], recorded)
    with hermetic.sandbox(replay=path):
        assert readings([], replayed) == told


def test_callbacks_are_there_only_while_they_are_needed():
    before = list(gc.callbacks)
    with hermetic.sandbox():
        assert len(gc.callbacks) == len(before) + 2
    assert gc.callbacks == before
    with hermetic.sandbox():
        gc.callbacks.clear()
    assert gc.callbacks == []
    gc.callbacks[:] = before


def test_a_sandbox_that_is_left_in_a_finalizer_is_left():
    class Holder:
        def __init__(self) -> None:
            self.own = self
            self.sandbox = hermetic.sandbox(seed=1)
            self.sandbox.__enter__()

        def __del__(self) -> None:
            self.sandbox.__exit__(None, None, None)

    gone = weakref.ref(Holder())
    gc.collect()
    assert gone() is None and hermetic.current() is None
    assert time.time() > 1.7e9 and random.random() < 1
