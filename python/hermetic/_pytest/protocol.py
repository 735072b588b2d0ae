"""Enters, pauses, resumes and leaves a test's sandbox around its three phases.

The wrappers are the innermost ones, so that a sandbox holds the test, its fixtures and its hooks, and nothing of the
plugins that wrap them: captured output, log handlers, time limits and coverage stay in the real world. They run for
every test of a run in which any test is sandboxed, and are written out rather than shared, because each call shows in
the cost.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

import hermetic
from hermetic._pytest import findings
from hermetic._pytest.attempt import Attempt
from hermetic._pytest.ledger import ATTRIBUTE

if TYPE_CHECKING:
    from hermetic._pytest.markers import Plan
    from hermetic._pytest.plugin import Run

Wrapper = Generator[None, Any, Any]


class Protocol:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._has_reported = False

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Wrapper:
        run = self._run
        run.attempt = None
        plan = run.plan_for(item)
        if plan is None:
            try:
                return (yield)
            finally:
                self._pause_late(item)
        attempt = begin(run, item, plan)
        if attempt is None:
            return (yield)
        try:
            return (yield)
        except BaseException:
            # What happened in a set-up that failed has had its say.
            attempt.verdicts()
            raise
        finally:
            attempt.pause()

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Wrapper:
        attempt = self._run.attempt
        if attempt is None:
            try:
                result = yield
            finally:
                self._pause_late(item)
            self._judge_late(item)
            return result
        attempt.resume()
        try:
            result = yield
        except BaseException as error:
            verdicts = attempt.verdicts()
            if isinstance(error, pytest.skip.Exception):
                findings.fail_for(verdicts)
            raise
        finally:
            attempt.pause()
        if verdicts := attempt.verdicts():
            findings.fail_for(verdicts)
        return result

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Wrapper:
        attempt = self._run.attempt
        if attempt is None:
            return (yield)
        attempt.resume()
        try:
            result = yield
        except BaseException:
            self._end(attempt, is_failed=True)
            raise
        self._end(attempt)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tells the report what the sandbox noticed; reports travel from xdist workers to the ledger."""
        attempt = self._run.attempt
        if attempt is None or attempt.node_id != report.nodeid:
            return
        note: dict[str, Any] = {}
        if news := attempt.news():
            told = str(report.longrepr) if report.failed else ""
            if untold := [finding for finding in news if finding["message"] not in told]:
                report.sections.append((findings.SECTION, findings.section(untold)))
            note["refusals"] = [finding for finding in news if finding["kind"] == findings.REFUSAL]
        if attempt.journal is not None:
            # The tear-down's report as a rule; a rerun plugin may publish others first, and that one not at all.
            note["journal"], attempt.journal = attempt.journal, None
        if note or report.outcome != "passed" or not self._has_reported:
            self._has_reported = True
            setattr(report, ATTRIBUTE, note)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Ends what an interrupt left open; such a test has no teardown phase."""
        attempt = self._run.attempt
        if attempt is not None and not attempt.is_over:
            attempt.resume()
            self._end(attempt, is_failed=True)

    def _end(self, attempt: Attempt, *, is_failed: bool = False) -> None:
        __tracebackhide__ = True
        try:
            attempt.leave()
        except BaseException:
            attempt.is_failed = True
            raise
        finally:
            late = attempt.verdicts()
            attempt.is_failed |= is_failed or bool(late)
            if self._run.recorder is not None:
                self._run.recorder.settle(attempt)
        if late and not is_failed:
            findings.fail_for(late)

    def _pause_late(self, item: pytest.Item) -> None:
        """A test that asks for the fixture only while it runs has an attempt at the end of the phase, not before."""
        if (attempt := self._run.attempt_of(item)) is not None:
            attempt.pause()

    def _judge_late(self, item: pytest.Item) -> None:
        __tracebackhide__ = True
        if (attempt := self._run.attempt_of(item)) is not None:
            findings.fail_for(attempt.verdicts())


def begin(run: Run, item: pytest.Item, plan: Plan) -> Attempt | None:
    """Enters the sandbox of a test. None where somebody holds a sandbox open around the tests: theirs stays."""
    if plan.error is not None:
        raise hermetic.SandboxError(plan.error)
    try:
        attempt = run.attempt = Attempt(item, plan, run.sandbox_for(item, plan))
    except hermetic.SandboxActiveError:
        return None
    if attempt.seed is not None and run.neighbours.has_seeders:
        run.neighbours.seed_all(attempt.seed)
    return attempt
