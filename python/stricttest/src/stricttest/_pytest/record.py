"""The record of the last run: what `stricttest verify` asserts in CI, since a plugin that was switched off can say
nothing."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import pytest

from stricttest._places import record_path
from stricttest._pytest.session import Session

FORMAT = 1


class Record:
    """Written twice: at the beginning as not isolated, so that a crash leaves no good record, and at the end as it
    was."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._path = record_path(session.config.rootpath)
        self._tests = 0
        self._write({"is_isolated": False, "reason": "the run did not end"})

    def pytest_runtest_logfinish(self) -> None:
        self._tests += 1

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        own = self._session
        told = {
            "is_isolated": True,
            "stance": own.policy.describe(),
            "tests": self._tests,
            "exit_status": int(session.exitstatus),
            "helpers_allowed": own.helpers,
            "sandbox": os.environ.get(own.settings.sandbox_env) == "1",
        }
        self._write(told)

    def _write(self, told: dict[str, Any]) -> None:
        told = {"format": FORMAT, "started": self._session.started, "written": time.time(), **told}
        try:
            is_new = not self._path.parent.parent.exists()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if is_new:
                (self._path.parent.parent / ".gitignore").write_text("# Made by stricttest.\n*\n", encoding="utf-8")
            fresh = self._path.with_name(f"{self._path.name}.{os.getpid()}")
            fresh.write_text(json.dumps(told, sort_keys=True) + "\n", encoding="utf-8")
            fresh.replace(self._path)
        except OSError:
            # A project that cannot be written to has no record, which is what verify will say.
            pass
