"""Enters, pauses, resumes and leaves a test's sandbox around its three phases.

The wrappers are the innermost ones, so that a sandbox holds the test, its fixtures and its hooks, and nothing of the
plugins that wrap them: captured output, log handlers, time limits and coverage stay in the real world.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

import hermetic
from hermetic._pytest import findings, surroundings
from hermetic._pytest.attempt import Attempt
from hermetic._pytest.ledger import ATTRIBUTE

if TYPE_CHECKING:
    from hermetic._pytest.plugin import Run

Wrapper = Generator[None, Any, Any]


class Protocol:
    def __init__(self, run: Run) -> None:
        self._run = run

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Wrapper:
        run = self._run
        run.attempt = None
        if run.is_wanted(item):
            surroundings.announce(item.nodeid, "setup")
            run.attempt = begin(run, item)
        try:
            return (yield from self._phase(item, "setup"))
        except BaseException:
            if run.attempt is not None:
                # What happened in a set-up that failed has had its say.
                run.attempt.verdicts()
            raise

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Wrapper:
        run = self._run
        try:
            result = yield from self._phase(item, "call")
        except BaseException as error:
            if isinstance(error, pytest.skip.Exception):
                self._judge(item)
            elif run.attempt is not None:
                run.attempt.verdicts()
            raise
        self._judge(item)
        return result

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Wrapper:
        try:
            result = yield from self._phase(item, "teardown")
        except BaseException:
            self._end(item, is_failed=True)
            raise
        self._end(item)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Wrapper:
        report = yield
        attempt = self._run.attempt
        if attempt is not None and attempt.item is item:
            if report.failed:
                attempt.is_failed = True
            self._annotate(report, attempt)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Ends what an interrupt left open; such a test has no teardown phase."""
        if self._run.attempt is not None:
            self._end(self._run.attempt.item, is_failed=True)

    def _phase(self, item: pytest.Item, name: str) -> Wrapper:
        run = self._run
        attempt = run.attempt_of(item)
        was = None
        if attempt is not None:
            if attempt.seed is not None:
                was = run.neighbours.silence_reseeding()
            if name != "setup":
                surroundings.announce(item.nodeid, name)
                attempt.resume()
        try:
            return (yield)
        finally:
            # A test that asks for the fixture only while it runs has an attempt by now.
            attempt = attempt or run.attempt_of(item)
            if attempt is not None:
                attempt.pause()
                run.neighbours.resume_reseeding(was)

    def _judge(self, item: pytest.Item) -> None:
        """Fails a test that came to its end although something decisive happened to it."""
        __tracebackhide__ = True
        attempt = self._run.attempt_of(item)
        if attempt is not None:
            findings.fail_for(attempt.verdicts())

    def _end(self, item: pytest.Item, *, is_failed: bool = False) -> None:
        __tracebackhide__ = True
        attempt = self._run.attempt_of(item)
        if attempt is None:
            return
        attempt.leave()
        surroundings.withdraw()
        late = attempt.verdicts()
        attempt.is_failed |= is_failed or bool(late)
        if self._run.recorder is not None:
            self._run.recorder.settle(attempt)
        if not is_failed:
            findings.fail_for(late)

    def _annotate(self, report: pytest.TestReport, attempt: Attempt) -> None:
        """Tells the report what the sandbox noticed; reports travel from xdist workers to the ledger."""
        note: dict[str, Any] = {}
        if news := attempt.news():
            told = str(report.longrepr) if report.failed else ""
            if untold := [finding for finding in news if finding["message"] not in told]:
                report.sections.append((findings.SECTION, findings.section(untold)))
            note["refusals"] = [finding for finding in news if finding["kind"] == findings.REFUSAL]
        if report.when == "teardown" and attempt.journal is not None:
            note["journal"] = attempt.journal
        if note or report.failed or not self._run.has_reported:
            self._run.has_reported = True
            setattr(report, ATTRIBUTE, note)


def begin(run: Run, item: pytest.Item) -> Attempt | None:
    """Enters the sandbox of a test. None where somebody holds a sandbox open around the tests: theirs stays."""
    plan = run.plans.of(item)
    if plan.error is not None:
        raise hermetic.SandboxError(plan.error)
    run.clock.bind()
    run.neighbours.find()
    try:
        attempt = Attempt(item, plan, run.sandbox_for(item, plan))
    except hermetic.SandboxActiveError:
        return None
    if attempt.seed is not None:
        run.neighbours.seed_all(attempt.seed)
    return attempt
