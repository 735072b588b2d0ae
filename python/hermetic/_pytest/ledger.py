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


class Ledger:
    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.is_used = False
        """At least one test ran in a sandbox."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        note = getattr(report, ATTRIBUTE, None)
        if note is None:
            return
        self.is_used = True
        record = self.records.get(report.nodeid)
        if record is None:
            record = self.records[report.nodeid] = Record(report.nodeid)
        record.is_failed |= report.outcome == "failed"
        if (journal := note.get("journal")) is not None:
            record.journals.append(journal)
        record.refusals.extend(note.get("refusals", ()))

    def failed(self) -> list[Record]:
        return [record for record in self.records.values() if record.is_failed]

    def journals(self) -> list[dict[str, Any]]:
        return [journal for record in self.records.values() for journal in record.journals]
