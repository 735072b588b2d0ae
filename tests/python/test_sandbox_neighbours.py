"""Other tools that move clocks, inside: the inner one wins in its block, and everything comes back."""

from __future__ import annotations

import time

import hermetic
import pytest


def test_time_machine_inside():
    time_machine = pytest.importorskip("time_machine")
    with hermetic.sandbox():
        with time_machine.travel(1_000_000_000, tick=False):
            assert time.time() == 1_000_000_000
        assert time.time() == 1577836800.0
    assert time.time() > 1.7e9


def test_freezegun_inside():
    freezegun = pytest.importorskip("freezegun")
    with hermetic.sandbox():
        with freezegun.freeze_time("2001-09-09T01:46:40"):
            assert time.time() == 1_000_000_000
        assert time.time() == 1577836800.0
    assert time.time() > 1.7e9


def test_a_sandbox_inside_time_machine():
    time_machine = pytest.importorskip("time_machine")
    with time_machine.travel(1_000_000_000, tick=False):
        with pytest.raises(hermetic.SandboxError, match="time-machine holds the clock"), hermetic.sandbox():
            pass
        with hermetic.sandbox(clock="off"):
            assert time.time() == 1_000_000_000
    with hermetic.sandbox():
        assert time.time() == 1577836800.0


def test_a_sandbox_inside_freezegun():
    freezegun = pytest.importorskip("freezegun")
    with freezegun.freeze_time("2001-09-09T01:46:40"):
        with pytest.raises(hermetic.SandboxError, match="freezegun holds the clock"), hermetic.sandbox():
            pass
    with hermetic.sandbox():
        assert time.time() == 1577836800.0
