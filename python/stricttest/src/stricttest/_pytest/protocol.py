"""Around each test: its directory, the watch on files, and the verdict on what it did.

The wrappers are the outermost ones: what fixtures and other plugins do for a test is the test's doing too.
"""

from __future__ import annotations

from collections.abc import Generator

# Taken now: a test may put something else in their place.
from threading import active_count, current_thread
from threading import enumerate as all_threads
from typing import Any

import pytest
from hermetic import real

from stricttest._errors import Refusal
from stricttest._pytest import findings
from stricttest._pytest.directories import put_tmp_path_first
from stricttest._pytest.findings import Entry
from stricttest._pytest.session import Session

Wrapper = Generator[None, Any, Any]
THREADS_SECONDS_MAX = 0.02
ATTRIBUTE = "stricttest"
SWALLOWED = "stricttest: this test did what it may not; every such attempt fails it, also where the error was caught:"
LEFT = "stricttest: this test left something behind (stricttest_leaks = fail):"


class Protocol:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._entries: list[Entry] = []
        # Files and variables that the running test has left, over all of its phases.
        self._left: list[Entry] = []
        self._threads = 0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Wrapper:
        with self._session.directories.outside_of_tests():
            return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        put_tmp_path_first(items)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Wrapper:
        if fixturedef.scope == "function":
            result = yield
            if fixturedef.argname == "tmp_path":
                self._session.directories.tmp_path_is_there(result)
            return result
        return (yield from self._wider_fixture(fixturedef))

    def _wider_fixture(self, fixturedef: pytest.FixtureDef[Any]) -> Wrapper:
        """Its setup and its teardown work in the session's directory, and what they do to the environment stays."""
        directories, variables = self._session.directories, self._session.variables
        opened: list[Any] = []

        def begin_teardown() -> None:
            place = directories.outside_of_tests()
            place.__enter__()
            opened.append((place, variables.snapshot()))

        def end_teardown() -> None:
            while opened:
                place, before = opened.pop()
                variables.keep_since(before)
                place.__exit__(None, None, None)

        # Finalizers run last to first: the fixture's own comes between these two.
        fixturedef.addfinalizer(end_teardown)
        before = variables.snapshot()
        try:
            with directories.outside_of_tests():
                return (yield)
        finally:
            variables.keep_since(before)
            fixturedef.addfinalizer(begin_teardown)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Wrapper:
        session = self._session
        session.take_unowned()
        session.variables.rebase()
        self._entries, self._left = [], []
        session.directories.enter(item)
        session.watch(True)
        self._threads = active_count()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Wrapper:
        try:
            result = yield
        except pytest.skip.Exception:
            self._judge(item, "call")
            raise
        except BaseException as error:
            self._settle(item, "call", error)
            raise
        self._wait_for_threads()
        self._judge(item, "call")
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Wrapper:
        try:
            result = yield
        except BaseException as error:
            self._end(item)
            self._settle(item, "teardown", error)
            raise
        self._end(item)
        self._judge(item, "teardown")
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Wrapper:
        if call.excinfo is not None and call.when == "setup":
            self._settle(item, "setup", call.excinfo.value)
        report = yield
        if self._entries:
            setattr(report, ATTRIBUTE, self._entries)
            self._entries = []
        return report

    def _wait_for_threads(self) -> None:
        """A thread that the test has started and not waited for gets a moment, so that what it does is told of this
        test."""
        if active_count() <= self._threads:
            return
        rest = THREADS_SECONDS_MAX
        for thread in all_threads()[self._threads :]:
            if thread is not current_thread() and rest > 0:
                begin = real.monotonic()
                with real.world():
                    thread.join(rest)
                rest -= real.monotonic() - begin

    def _end(self, item: pytest.Item) -> None:
        """The test is over: its variables are taken back, its directory is left."""
        session = self._session
        self._wait_for_threads()
        session.watch(False)
        session.directories.leave()
        for name, done in session.variables.take_back().items():
            entry = {"kind": findings.VARIABLE, "subject": name, "port": None, "count": 1, "site": ""}
            entry["message"] = f"the variable {name} was {done}"
            self._own(item, [entry])

    def _own(self, item: pytest.Item, entries: list[Entry]) -> None:
        for entry in entries:
            entry["test"] = item.nodeid
        self._entries += entries
        self._left += [entry for entry in entries if entry["kind"] in (findings.VARIABLE, findings.WRITE)]

    def _settle(self, item: pytest.Item, when: str, error: BaseException) -> None:
        """The test fails already: what was noticed is told beside its own error."""
        entries = self._session.take()
        self._own(item, entries)
        news = [entry for entry in entries if findings.is_decisive(entry) and not _says(error, entry)]
        if news:
            item.add_report_section(when, "stricttest", findings.text("noticed beside this error:", news))

    def _judge(self, item: pytest.Item, when: str) -> None:
        """The test has not failed by itself: it does if something decisive was noticed."""
        __tracebackhide__ = True
        session = self._session
        self._own(item, session.take())
        decisive = [entry for entry in self._entries if findings.is_decisive(entry) and not entry.get("told")]
        for entry in decisive:
            entry["told"] = True
        if decisive:
            pytest.fail(findings.text(SWALLOWED, decisive), pytrace=False)
        if when == "teardown" and self._left and session.settings.leaks == "fail":
            pytest.fail(findings.text(LEFT, self._left), pytrace=False)


def _says(error: BaseException, entry: Entry) -> bool:
    return isinstance(error, Refusal) and str(error) == entry["message"]
