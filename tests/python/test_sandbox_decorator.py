"""Decorated functions of every kind: each call has a fresh sandbox."""

from __future__ import annotations

import asyncio
import inspect
import os
import time
import warnings

import hermetic
import pytest


def test_plain_function():
    @hermetic.sandbox(seed=1)
    def draw(size, *, extra=0):
        """Doc."""
        time.sleep(10)
        return os.urandom(size + extra), time.time()

    assert draw(4, extra=1) == draw(5)
    assert draw(1)[1] == 1577836810.0
    assert (draw.__name__, draw.__doc__) == ("draw", "Doc.")
    assert list(inspect.signature(draw).parameters) == ["size", "extra"]
    assert time.time() > 1.7e9


def test_fresh_seed_per_call():
    @hermetic.sandbox()
    def seed():
        return hermetic.current().seed

    assert seed() != seed()


def test_methods():
    class Thing:
        @hermetic.sandbox(seed=1)
        def method(self):
            return os.urandom(4)

        @staticmethod
        @hermetic.sandbox(seed=1)
        def inner():
            return os.urandom(4)

        @hermetic.sandbox(seed=1)
        @staticmethod
        def outer():
            return os.urandom(4)

        @hermetic.sandbox(seed=1)
        @classmethod
        def of_class(cls):
            return os.urandom(4)

    assert Thing().method() == Thing.inner() == Thing.outer() == Thing.of_class()


def test_coroutine_function():
    @hermetic.sandbox(seed=1)
    async def draw():
        await asyncio.sleep(0)
        return os.urandom(4), time.time()

    assert inspect.iscoroutinefunction(draw)
    assert asyncio.run(draw()) == asyncio.run(draw())
    assert asyncio.run(draw())[1] == 1577836800.0


def test_overlapping_calls_cannot_share_the_world():
    @hermetic.sandbox(seed=1)
    async def wait(event):
        await event.wait()

    async def main():
        event = asyncio.Event()
        first = asyncio.ensure_future(wait(event))
        await asyncio.sleep(0)
        with pytest.raises(hermetic.SandboxActiveError):
            await wait(event)
        event.set()
        await first

    asyncio.run(main())
    assert hermetic.current() is None


def test_generator_function_runs_its_body_inside():
    @hermetic.sandbox(seed=1)
    def values():
        got = yield time.time()
        try:
            yield got, hermetic.current() is not None
        except KeyError:
            yield "thrown"
        return os.urandom(4)

    assert inspect.isgeneratorfunction(values)
    running = values()
    assert time.time() > 1.7e9
    assert next(running) == 1577836800.0
    assert running.send("sent") == ("sent", True)
    assert running.throw(KeyError()) == "thrown"
    with pytest.raises(StopIteration) as end:
        next(running)
    assert len(end.value.value) == 4
    assert hermetic.current() is None


def test_a_generator_that_is_closed_leaves():
    @hermetic.sandbox(seed=1)
    def values():
        yield 1
        yield 2

    running = values()
    next(running)
    assert hermetic.current() is not None
    running.close()
    assert hermetic.current() is None


def test_async_generator_function():
    closed = []

    @hermetic.sandbox(seed=1)
    async def values():
        try:
            got = yield time.time()
            try:
                yield got
            except KeyError:
                yield "thrown"
        finally:
            closed.append(time.time())

    async def main():
        running = values()
        first = await running.__anext__()
        second = await running.asend("sent")
        third = await running.athrow(KeyError())
        with pytest.raises(StopAsyncIteration):
            await running.__anext__()
        early = values()
        await early.__anext__()
        await early.aclose()
        return first, second, third

    assert inspect.isasyncgenfunction(values)
    assert asyncio.run(main()) == (1577836800.0, "sent", "thrown")
    assert closed == [1577836800.0] * 2
    assert hermetic.current() is None


@pytest.mark.parametrize("what", [type("Thing", (), {}), 3, None])
def test_refused(what):
    with pytest.raises(TypeError, match="accepted are functions"):
        hermetic.sandbox()(what)


def test_recording_call_by_call(tmp_path):
    path = tmp_path / "x.journal"

    def draw():
        return os.urandom(4)

    recorded = hermetic.sandbox(record=path)(draw)
    recorded()
    last = recorded()
    assert os.listdir(tmp_path) == ["x.journal"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert hermetic.sandbox(replay=path)(draw)() == last
