"""Refuses a large run outside of the sandbox runner."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hermetic import _native

from stricttest._pytest.session import Session


class Threshold:
    def __init__(self, session: Session) -> None:
        self._session = session

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if not self._session.is_worker:
            self._judge(len(items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self._judge(len(ids))

    def _judge(self, count: int) -> None:
        settings = self._session.settings
        handshake = os.environ.get(settings.sandbox_env)
        if _native.floor_is_bare_run_refused(self._session.declared.values, count, handshake):
            raise pytest.UsageError(
                f"stricttest refuses to run {count} tests outside of the sandbox: at most {settings.threshold} may run "
                f"bare (stricttest_threshold). Run {settings.runner_command}, or select fewer tests."
            )
