"""Fixtures wider than a test (class, module, package, session) run in sandboxes of their own.

Each is seeded from the node that the fixture belongs to and the fixture's name, so what it makes does not depend on
which test asked first. The test's sandbox waits meanwhile. Setting up and tearing down are two sandboxes; the second
goes on at the virtual time at which the first ended, so that what a fixture measures between the two is not negative.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

import hermetic
from hermetic._pytest import findings, surroundings

if TYPE_CHECKING:
    import datetime

    from _pytest.fixtures import FixtureDef, SubRequest

    from hermetic._pytest.attempt import Attempt
    from hermetic._pytest.plugin import Run

BASE_TEMPORARY = "tmp_path_factory"
"""pytest makes its directory for temporary paths when a test first asks for one, and judges other runs' directories by
their age: that belongs to the real world."""


class Scopes:
    def __init__(self, run: Run) -> None:
        self._run = run

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_fixture_setup(self, fixturedef: FixtureDef[Any], request: SubRequest) -> Generator[None, Any, Any]:
        if fixturedef.scope == "function":
            return (yield)
        is_temporary = fixturedef.argname == BASE_TEMPORARY
        bracket = Bracket(
            self._run, None if is_temporary else self._options(fixturedef, request), *_identity(fixturedef, request)
        )
        # Finalizers run last in, first out: these two enclose those that the fixture itself adds in between.
        fixturedef.addfinalizer(bracket.close)
        bracket.open(" setup")
        try:
            value = yield
            if is_temporary and self._run.attempt is not None:
                value.getbasetemp()
            return value
        finally:
            bracket.close()
            fixturedef.addfinalizer(lambda: bracket.open(" teardown"))

    def _options(self, fixturedef: FixtureDef[Any], request: SubRequest) -> dict[str, Any] | None:
        """What the fixture's sandbox is made with; None where it works in the real world.

        The markers on the fixture's own scope decide. Where they are silent and tests are not sandboxed in general, the
        test that asks first does.
        """
        run = self._run
        plan = run.plans.of(request.node)
        if plan.error is not None:
            raise hermetic.SandboxError(plan.error)
        if plan.is_off:
            return None
        options = dict(plan.options)
        if not (plan.is_marked or run.settings.sandbox_all):
            attempt = run.attempt
            if attempt is None or attempt.is_over:
                return None
            options = {name: value for name, value in attempt.plan.options.items() if name != "seed"}
        # A directory of its own would be gone before the first test sees what the fixture put there.
        options.pop("fs", None)
        if "now" not in options:
            if run.recorder is not None:
                # The journals of the tests do not hold it, and frozen in 2020 it would not fit the real time of the
                # tests.
                options["clock"] = "off"
            elif run.replay is not None:
                options["now"] = run.replay.recorded_at
        if run.neighbours.is_loop(fixturedef):
            options.setdefault("monotonic", "continue")
        return options


class Bracket:
    """The two sandboxes of one fixture; without options, the two spells in the real world."""

    def __init__(self, run: Run, options: dict[str, Any] | None, node: Any, name: str) -> None:
        self._run = run
        self._options = options
        self._node = node
        self._name = name
        self._open: ExitStack | None = None
        self._covered: Attempt | None = None
        self._handle: Any = None
        self._clocks: tuple[datetime.datetime, float] | None = None

    def open(self, phase: str) -> None:
        """Enters a sandbox for `phase`. Under a sandbox that the user holds open, that one stays."""
        run = self._run
        attempt = run.attempt
        with ExitStack() as stack:
            if attempt is not None and not attempt.is_over:
                stack.enter_context(attempt.outlived())
            if self._options is not None:
                base = self._options.get("seed")
                seed = run.identities.seed(self._node, suffix=f"::{self._name}{phase}", base=base)
                sandbox = hermetic.Sandbox(automatic=True, **{**self._options, "seed": seed})
                try:
                    self._handle = sandbox.__enter__()
                except hermetic.SandboxActiveError:
                    return
                stack.callback(self._leave, sandbox, dict(os.environ))
                self._go_on()
            self._open = stack.pop_all()

    def close(self) -> None:
        """Leaves the sandbox, if one is open; later, if the fixture holds a sandbox of its own open in it."""
        if self._open is None:
            return
        if self._handle is not None and hermetic.current() is not self._handle:
            if self._run.attempt is not None and self._covered is None:
                self._covered = self._run.attempt
                self._covered.is_covered = True
            return
        opened, self._open = self._open, None
        if self._covered is None:
            opened.close()
            self._catch_up()
            return
        # By now another test is being torn down, and pytest counts on its announcement.
        current = os.environ.get(surroundings.CURRENT_TEST)
        opened.close()
        self._covered.uncover()
        surroundings.apply({surroundings.CURRENT_TEST: current})

    def _leave(self, sandbox: hermetic.Sandbox, before: dict[str, str]) -> None:
        """Leaves, keeping what the fixture changed in the environment."""
        handle, self._handle = self._handle, None
        if self._has_virtual_clock():
            self._clocks = handle.clock.now(), time.monotonic()
        changes = surroundings.difference(before, os.environ)
        sandbox.__exit__(None, None, None)
        surroundings.apply(changes)
        if noticed := [findings.as_plain(finding) for finding in sandbox.findings]:
            attempt = self._run.attempt
            if attempt is not None and not attempt.is_over:
                attempt.add(noticed)
            else:
                findings.fail_for([finding for finding in noticed if finding["fatal"]])

    def _go_on(self) -> None:
        """Moves the clock of the second sandbox to where the first one ended."""
        if self._clocks is not None and not self._is_loop():
            wall, monotonic = self._clocks
            self._handle.clock.advance(max(0.0, monotonic - time.monotonic()))
            self._handle.clock.set(wall)

    def _catch_up(self) -> None:
        """Keeps the test's monotonic clock from falling behind what an event loop of this fixture has seen."""
        attempt = self._run.attempt
        if self._clocks is None or not self._is_loop() or attempt is None or not attempt.has_virtual_clock():
            return
        behind = self._clocks[1] - time.monotonic()
        if behind > 0:
            wall = attempt.handle.clock.now()
            attempt.handle.clock.advance(behind)
            attempt.handle.clock.set(wall)

    def _has_virtual_clock(self) -> bool:
        return self._options is not None and self._options.get("clock", "virtual") == "virtual"

    def _is_loop(self) -> bool:
        return self._options is not None and self._options.get("monotonic") == "continue"


def _identity(fixturedef: FixtureDef[Any], request: SubRequest) -> tuple[Any, str]:
    """The node whose lifetime the fixture shares, and the fixture's name with the number of its parameter."""
    name = fixturedef.argname
    if fixturedef.params is not None:
        name += f"[{request.param_index}]"
    return request.node, name
