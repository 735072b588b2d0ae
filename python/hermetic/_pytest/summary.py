"""What the user reads at the end of a run, and the one line with the base seed at its start.

Nothing is written in a run in which no collected test uses a sandbox.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from hermetic._pytest import reproduce

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from hermetic._pytest.plugin import Run

REFUSALS_SHOWN_MAX = 20


class Summary:
    """Registered in the process that the user started, not in xdist workers."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._has_told_seed = False

    @pytest.hookimpl(trylast=True)
    def pytest_report_collectionfinish(self, config: pytest.Config, items: list[pytest.Item]) -> list[str]:
        if self._is_silent(config) or not any(map(self._run.is_wanted, items)):
            return []
        return [self._headline()]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Under xdist nothing is collected here; that every test is in a sandbox is known all the same."""
        if self._has_told_seed or not ids or self._is_silent(node.config) or not self._run.settings.sandbox_all:
            return
        reporter = node.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(self._headline())

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        self._write_refusals(terminalreporter)
        self._write_forgiven(terminalreporter)
        self._write_commands(terminalreporter)
        if self._run.ledger.is_used and not self._has_told_seed and not self._is_silent(terminalreporter.config):
            terminalreporter.write_line(self._headline())

    def _is_silent(self, config: pytest.Config) -> bool:
        return bool(config.option.verbose < -1)

    def _headline(self) -> str:
        self._has_told_seed = True
        settings = self._run.settings
        parts = [f"hermetic: base seed {settings.base_seed}"]
        if settings.sandbox_all:
            parts.append("sandboxing all tests")
        if settings.record is not None:
            parts.append(f"recording journals to {self._shown(settings.record)}")
        if settings.replay is not None:
            parts.append(f"replaying {self._shown(settings.replay)}")
        return ", ".join(parts)

    def _shown(self, path: str) -> str:
        """A path as the user would type it, if that is shorter."""
        return min(path, os.path.relpath(path, self._run.config.invocation_params.dir), key=len)

    def _write_refusals(self, reporter: TerminalReporter) -> None:
        """Refusals that no failing test shows: its code swallowed them, or expected them."""
        lines = [
            f"{record.node_id}: {refusal['where']}{_tail(refusal)}"
            for record in self._run.ledger.records.values()
            if not record.is_failed
            for refusal in record.refusals
        ]
        if not lines:
            return
        reporter.section("hermetic: refused", sep="-")
        for text in lines[:REFUSALS_SHOWN_MAX]:
            reporter.write_line(text)
        if len(lines) > REFUSALS_SHOWN_MAX:
            reporter.write_line(f"... and {len(lines) - REFUSALS_SHOWN_MAX} more")
        reporter.write_line("These tests passed all the same; --hermetic-strict-network fails them.")

    def _write_forgiven(self, reporter: TerminalReporter) -> None:
        """Attempts that failed before a retry passed: the run is green, and their journals are still worth a look."""
        forgiven = [
            (record.node_id, journal)
            for record in self._run.ledger.records.values()
            if not record.is_failed
            for journal in record.journals
        ]
        if not forgiven:
            return
        reporter.section("hermetic: failed attempts that a retry forgave, with repro commands", sep="-")
        for node_id, journal in forgiven:
            reporter.write_line(f"{node_id} attempt {journal['attempt']}: {self._command(node_id, journal['path'])}")

    def _write_commands(self, reporter: TerminalReporter) -> None:
        failed = self._run.ledger.failed()
        if not failed:
            return
        reporter.section("hermetic repro commands")
        for record in failed:
            journal = record.journals[-1]["path"] if record.journals else self._run.settings.replay
            reporter.write_line(self._command(record.node_id, journal))

    def _command(self, node_id: str, journal: str | None) -> str:
        run = self._run
        own = ["--hermetic-all"] if run.config.getoption("hermetic_all") else []
        if journal is not None:
            own.append(f"--hermetic-replay={journal}")
        else:
            own.append(f"--hermetic-seed={run.settings.base_seed}")
        return reproduce.command(
            node_id,
            root=str(run.config.rootpath),
            directory=str(run.config.invocation_params.dir),
            arguments=[str(argument) for argument in run.config.invocation_params.args],
            positional=run.config.option.file_or_dir or (),
            own=own,
            environment=os.environ,
        )


def _tail(refusal: dict[str, Any]) -> str:
    count = f", {refusal['count']} times" if refusal["count"] > 1 else ""
    site = f" at {refusal['site']}" if refusal["site"] else ""
    return f"{site}{count}"
