"""What the reports of this run said about sandboxes, gathered in the process that the user started.

Reports are the one way that also comes through from an xdist worker, and everything a worker has reported is safe when
it dies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

ATTRIBUTE = "hermetic"
"""Attribute of a report that carries `note`, in plain values."""


@dataclass
class Record:
    """One test: its last verdict, and what its attempts left."""

    node_id: str
    is_failed: bool = False
    journals: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[dict[str, Any]] = field(default_factory=list)


CRASHED = "???"
"""The phase in which xdist's controller reports a test whose worker died."""


class Ledger:
    def __init__(self, sandbox_all: bool) -> None:
        self._sandbox_all = sandbox_all
        self.records: dict[str, Record] = {}
        self.is_used = False
        """At least one test ran in a sandbox."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        note = getattr(report, ATTRIBUTE, None)
        if note is None:
            if report.when != CRASHED or not self._sandbox_all:
                return
            note = {}
        self.is_used = True
        record = self.record(report.nodeid)
        record.is_failed |= report.outcome == "failed"
        if (journal := note.get("journal")) is not None:
            record.journals.append(journal)
        record.refusals.extend(note.get("refusals", ()))

    def record(self, node_id: str) -> Record:
        """The record of a test, made when first asked for."""
        return self.records.setdefault(node_id, Record(node_id))

    def failed(self) -> list[Record]:
        return [record for record in self.records.values() if record.is_failed]

    def journals(self) -> list[dict[str, Any]]:
        return [journal for record in self.records.values() for journal in record.journals]
