"""What the run has noticed, collected from the reports of tests, here and from xdist workers; its verdict and its
closing report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stricttest._pytest import findings
from stricttest._pytest.findings import Entry
from stricttest._pytest.protocol import ATTRIBUTE
from stricttest._pytest.session import Session

LINES_MAX = 20
"""Lines of one kind in the closing report; JSON has them all."""

TITLES = {
    findings.NETWORK: "hosts tried",
    findings.PROCESS: "programs refused",
    findings.WRITE: "files written outside of a test's directories",
    findings.VARIABLE: "variables left by a test, and taken back",
}


class Ledger:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._entries: list[Entry] = []
        self._unowned: list[Entry] = []
        self._removed: dict[str, str] = {}
        self._helpers: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._entries += getattr(report, ATTRIBUTE, ())

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        told: dict[str, Any] = getattr(node, "workeroutput", {}).get("stricttest", {})
        self._unowned += told.get("unowned", ())
        self._helpers += [helper for helper in told.get("helpers", ()) if helper not in self._helpers]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        own = self._session
        own.witness.finish()
        own.take_unowned()
        if own.is_worker:
            output = own.config.workeroutput  # type: ignore[attr-defined]
            output["stricttest"] = {"unowned": own.unowned, "helpers": own.helpers}
            return
        self._unowned += own.unowned
        self._removed = own.environment.removed
        self._helpers += own.helpers
        if any(findings.is_decisive(entry) for entry in self._unowned) and exitstatus in (0, 5):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def has_failed_by_itself(self) -> bool:
        return any(findings.is_decisive(entry) for entry in self._unowned)

    def facts(self) -> dict[str, Any]:
        """The report as values: names of credentials and never their values."""
        entries = [dict(entry) for entry in self._entries]
        for entry in entries:
            entry.pop("told", None)

        def of(kind: str) -> list[Entry]:
            return [entry for entry in entries if entry["kind"] == kind]

        return {
            "stance": self._session.policy.describe(),
            "hosts_tried": of(findings.NETWORK),
            "programs_refused": of(findings.PROCESS),
            "files_written": of(findings.WRITE),
            "variables_left": of(findings.VARIABLE),
            "outside_of_tests": self._unowned,
            "credentials_removed": self._removed,
            "helpers_allowed": self._helpers,
        }

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        form = config.getoption("stricttest_report")
        if form.startswith("json"):
            text = json.dumps(self.facts(), sort_keys=True)
            path = form.partition(":")[2]
            if path:
                (config.invocation_params.dir / Path(path)).write_text(text + "\n", encoding="utf-8")
            else:
                terminalreporter.section("stricttest")
                terminalreporter.write_line(text)
            return
        lines = self._lines()
        if lines and (config.option.verbose >= 0 or self._entries or self._unowned):
            terminalreporter.section("stricttest")
            for line in lines:
                terminalreporter.write_line(line)

    def _lines(self) -> list[str]:
        lines = []
        for kind, title in TITLES.items():
            entries = [entry for entry in self._entries if entry["kind"] == kind]
            if entries:
                lines.append(f"{title}:")
                lines += [f"  {self._of_test(entry)}" for entry in entries[:LINES_MAX]]
                if len(entries) > LINES_MAX:
                    lines.append(f"  and {len(entries) - LINES_MAX} more (--stricttest-report=json has all)")
        if self._unowned:
            verdict = "the run fails for it" if self.has_failed_by_itself() else "noted"
            lines.append(f"outside of any test ({verdict}):")
            lines += [f"  {findings.line(entry)}" for entry in self._unowned[:LINES_MAX]]
        if self._removed:
            lines.append(f"credentials removed: {', '.join(sorted(self._removed))}")
        if self._helpers:
            lines.append(f"helpers of the harness allowed: {'; '.join(self._helpers)}")
        return lines

    def _of_test(self, entry: Entry) -> str:
        target = entry["subject"] if entry["port"] is None else f"{entry['subject']}:{entry['port']}"
        if entry["kind"] == findings.VARIABLE:
            target = entry["message"].removeprefix("the variable ")
        times = f" ({entry['count']} times)" if entry["count"] > 1 else ""
        asked = ", as the test expects" if entry.get("expected", 0) >= entry["count"] else ""
        site = f" at {entry['site']}" if entry["site"] else ""
        return f"{entry.get('test', '?')}: {target}{times}{site}{asked}"
