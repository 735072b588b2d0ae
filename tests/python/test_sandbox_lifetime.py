"""Entry, exit, and who is inside when."""

from __future__ import annotations

import gc
import os
import random
import threading
import time

import hermetic
import pytest


def test_current_is_the_handle_inside_and_none_outside():
    assert hermetic.current() is None
    with hermetic.sandbox() as sb:
        assert hermetic.current() is sb
    assert hermetic.current() is None


def test_a_second_sandbox_is_refused_and_the_first_goes_on():
    with hermetic.sandbox(seed=1) as sb:
        with pytest.raises(hermetic.SandboxActiveError), hermetic.sandbox(seed=2):
            pass
        assert hermetic.current() is sb
        assert time.time() == 1577836800.0


def test_a_second_sandbox_is_refused_from_another_thread_too():
    errors = []

    def enter():
        try:
            with hermetic.sandbox(seed=2):
                pass
        except hermetic.SandboxActiveError as error:
            errors.append(error)

    with hermetic.sandbox(seed=1):
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    assert len(errors) == 1


def test_an_instance_is_entered_one_time_after_another():
    sandbox = hermetic.sandbox(seed=1)
    values = []
    for _ in range(3):
        with sandbox:
            values.append((os.urandom(4), random.random(), time.monotonic()))
            with pytest.raises(hermetic.SandboxActiveError), sandbox:
                pass
    assert values[0] == values[1] == values[2]


def test_exit_without_entry():
    with pytest.raises(hermetic.SandboxError, match="not entered"):
        hermetic.sandbox().__exit__(None, None, None)


def test_the_body_s_error_comes_out():
    with pytest.raises(KeyError), hermetic.sandbox():
        raise KeyError("x")
    assert hermetic.current() is None
    assert time.time() > 1.7e9


def test_the_clock_of_a_sandbox_that_is_over_says_so():
    with hermetic.sandbox() as sb:
        pass
    with pytest.raises(hermetic.SandboxError, match="over"):
        sb.clock.now()


def test_entry_that_fails_leaves_nothing_behind(tmp_path):
    environment, state, folder = dict(os.environ), random.getstate(), os.getcwd()
    with (
        pytest.raises(hermetic.ReplayMismatch),
        hermetic.sandbox(replay=tmp_path / "absent.journal", env={"LEFT": "1"}, fs="isolate", tz="UTC"),
    ):
        pass
    assert dict(os.environ) == environment
    assert random.getstate() == state
    assert os.getcwd() == folder
    assert hermetic.current() is None
    assert time.time() > 1.7e9


def test_entry_that_fails_late_is_undone_in_reverse(tmp_path):
    """The journal's directory cannot be made, after environment and directories were arranged."""
    (tmp_path / "file").write_text("")
    environment, folder = dict(os.environ), os.getcwd()
    with (
        pytest.raises((hermetic.SandboxError, OSError)),
        hermetic.sandbox(record=tmp_path / "file" / "x.journal", env={"LEFT": "1"}, fs="isolate", tz="Asia/Tokyo"),
    ):
        pass
    assert dict(os.environ) == environment
    assert os.getcwd() == folder
    assert hermetic.current() is None
    with hermetic.sandbox():
        assert time.time() == 1577836800.0


class TestAutomatic:
    """What harnesses use."""

    def test_a_user_s_sandbox_suspends_it(self):
        outer = hermetic.Sandbox(seed=1, automatic=True)
        with outer as first:
            before = os.urandom(4)
            with hermetic.sandbox(seed=2, now="2030-01-01") as second:
                assert hermetic.current() is second
                assert time.gmtime().tm_year == 2030
            assert hermetic.current() is first
            assert time.gmtime().tm_year == 2020
            after = os.urandom(4)
        with hermetic.sandbox(seed=1):
            assert os.urandom(8) == before + after

    def test_suspended_it_leaves_no_trace(self):
        state, environment = random.getstate(), dict(os.environ)
        sandbox = hermetic.Sandbox(seed=1, automatic=True)
        with sandbox:
            random.random()
            os.environ["INSIDE"] = "1"
            inner = random.getstate()
            sandbox.suspend()
            assert hermetic.current() is None
            assert random.getstate() == state
            assert dict(os.environ) == environment
            assert time.time() > 1.7e9
            os.environ["MEANWHILE"] = "1"
            sandbox.resume()
            assert random.getstate() == inner
            assert os.environ["INSIDE"] == "1"
            assert time.time() == 1577836800.0
        assert os.environ.pop("MEANWHILE") == "1"
        assert "INSIDE" not in os.environ
        assert random.getstate() == state

    def test_left_while_suspended(self):
        state = random.getstate()
        sandbox = hermetic.Sandbox(seed=1, automatic=True)
        with sandbox:
            sandbox.suspend()
        assert random.getstate() == state
        assert hermetic.current() is None

    def test_it_leaves_the_verdict_to_its_owner(self):
        sandbox = hermetic.Sandbox(seed=1, automatic=True, spin_limit=100)
        with sandbox:
            for _ in range(500):
                try:
                    time.time()
                except hermetic.SandboxError:
                    pass
        assert [finding.kind for finding in sandbox.findings] == ["spin"]
        assert sandbox.findings[0].fatal


class TestSpin:
    def test_a_loop_on_a_frozen_clock_is_interrupted(self):
        with pytest.raises(hermetic.SpinError, match="spin_limit"), hermetic.sandbox(spin_limit=1000):
            while time.time() < 2e9:
                pass

    def test_swallowing_it_does_not_help(self):
        with pytest.raises(hermetic.SpinError), hermetic.sandbox(spin_limit=1000):
            for _ in range(5000):
                try:
                    time.time()
                except Exception:
                    pass

    def test_zero_switches_it_off(self):
        with hermetic.sandbox(spin_limit=0):
            for _ in range(5000):
                time.time()

    def test_a_clock_that_moves_is_no_spin(self):
        with hermetic.sandbox(spin_limit=1000) as sb:
            for _ in range(5000):
                time.time()
                sb.clock.advance(1)

    def test_the_body_s_own_error_stays_the_error(self):
        with pytest.raises(KeyError), hermetic.sandbox(spin_limit=1000):
            for _ in range(5000):
                try:
                    time.time()
                except hermetic.SpinError:
                    raise KeyError("mine") from None


def test_forked_children_with_sandboxes_of_their_own_have_their_own_clocks():
    """Their parent had one before; what it was made of is no common ground."""
    with hermetic.sandbox(now="2020-01-01"):
        pass
    gates = [os.pipe() for _ in range(4)]

    def child(index: int) -> None:
        with hermetic.sandbox(now=f"20{30 + index}-01-01") as sb:
            sb.clock.advance(index)
            os.write(gates[index][1], b"!")
            os.read(gates[2 + index][0], 1)
            assert time.gmtime().tm_year == 2030 + index and time.gmtime().tm_sec == index

    children = []
    for index in range(2):
        pid = os.fork()
        if pid == 0:
            try:
                child(index)
            except BaseException:
                os._exit(1)
            os._exit(0)
        children.append(pid)
        os.read(gates[index][0], 1)
    for index in range(2):
        os.write(gates[2 + index][1], b"!")
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0, 0]


@pytest.mark.parametrize("options", [{}, {"rng": "off", "network": "allow"}, {"fs": "isolate"}, {"env": {"A": "1"}}])
def test_sandboxes_leave_nothing_in_memory(options):
    def enter() -> None:
        with hermetic.sandbox(**options) as sb:
            sb.clock.advance(1)

    def objects() -> int:
        gc.collect()
        return len(gc.get_objects())

    enter()
    before = objects()
    for _ in range(50):
        enter()
    assert objects() - before < 50


def test_a_plain_sandbox_is_gone_without_a_collection():
    def sandboxes() -> int:
        return sum(isinstance(one, (hermetic.Sandbox, hermetic.SandboxHandle)) for one in gc.get_objects())

    with hermetic.sandbox(seed=1):
        pass
    gc.disable()
    try:
        before = sandboxes()
        with hermetic.sandbox(seed=1) as sb:
            assert sandboxes() == before + 2
        del sb
        assert sandboxes() == before
    finally:
        gc.enable()
