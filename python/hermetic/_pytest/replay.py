"""Runs the one test that a journal was recorded from, fed with its values.

The journal says which test that is; all others are deselected. How its values are served is the engine's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermetic._pytest import journals

if TYPE_CHECKING:
    from hermetic._pytest.plugin import Run

WORKER_ERROR = "hermetic_error"


class Replay:
    def __init__(self, run: Run) -> None:
        assert run.settings.replay is not None
        self._run = run
        self.path = run.settings.replay
        self._head = journals.head_of(self.path)
        self._selected: pytest.Item | None = None
        self._error: str | None = None

    def is_selected(self, item: pytest.Item) -> bool:
        return item is self._selected

    @property
    def recorded_at(self) -> float:
        """When the recording began, in seconds since the epoch."""
        return int(self._head.get("created_at_ns") or 0) / 1e9

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if config.option.collectonly and not items:
            return
        try:
            self._selected = self._find(items)
        except pytest.UsageError as error:
            if self._run.settings.worker is None:
                raise
            # A worker cannot end the run; its controller can.
            config.workeroutput[WORKER_ERROR] = str(error)  # type: ignore[attr-defined]
        if self._selected is not None:
            self._run.identities.adopt(self._selected, self._head.get("config") or {})
        rest = [item for item in items if item is not self._selected]
        if rest:
            config.hook.pytest_deselected(items=rest)
        items[:] = [self._selected] if self._selected is not None else []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._error = self._error or getattr(node, "workeroutput", {}).get(WORKER_ERROR)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._error is not None:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._error is not None:
            terminalreporter.write_line(f"ERROR: {self._error}", red=True)

    def _find(self, items: list[pytest.Item]) -> pytest.Item:
        test = self._head.get("test")
        if test is None:
            if len(items) == 1:
                return items[0]
            raise pytest.UsageError(
                f"--hermetic-replay: {self.path!r} does not say which test it is of, and {len(items)} tests were "
                "collected; give the node id of the one to replay"
            )
        found = [item for item in items if item.nodeid == test] or [
            item for item in items if _is_same(item.nodeid, test)
        ]
        if len(found) == 1:
            return found[0]
        revision = (self._head.get("fingerprint") or {}).get("git_revision")
        hint = f"it was recorded at git revision {revision}" if revision else "its head does not say at which revision"
        problem = f"matches {len(found)} of" if found else "is not among"
        raise pytest.UsageError(
            f"--hermetic-replay: the test {test!r} {problem} the {len(items)} collected tests; {hint}, and paths or -k "
            "given here may leave it out"
        )


def _is_same(one: str, other: str) -> bool:
    """Whether two node ids can be of one test, seen from two directories."""
    return one.endswith("/" + other) or other.endswith("/" + one)
