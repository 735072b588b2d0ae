"""What a sandbox noticed, as pytest shows it: a section of the report, a failure where the test swallowed it, a line at
the end.

What counts as a finding, and which ones are fatal, is the engine's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

SECTION = "Hermetic"
REFUSAL = "refusal"


def as_plain(finding: Any) -> dict[str, Any]:
    """A finding in plain values, which survive the way from an xdist worker."""
    return {
        "kind": finding.kind,
        "count": finding.count,
        "fatal": finding.fatal,
        "where": _where(finding),
        "message": finding.message,
        "site": finding.site,
    }


def section(findings: Iterable[dict[str, Any]]) -> str:
    """The text of the report section."""
    return "\n".join(map(line, findings))


def line(finding: dict[str, Any]) -> str:
    """One finding in one line: what, where from, how often."""
    site = f" at {finding['site']}" if finding["site"] and finding["site"] not in finding["message"] else ""
    count = f" ({finding['count']} times)" if finding["count"] > 1 else ""
    return f"{finding['message']}{site}{count}"


def fail_for(findings: Sequence[dict[str, Any]]) -> None:
    """Fails the running test for findings that no error has told: its code swallowed it, or there was none to raise."""
    __tracebackhide__ = True
    if findings:
        lines = [f"hermetic: {line(finding)}" for finding in findings]
        pytest.fail(
            "\n".join([*lines, "The test came to its end all the same; this decides against it."]), pytrace=False
        )


def _where(finding: Any) -> str:
    """``host:port`` of a refusal."""
    if finding.kind != REFUSAL:
        return ""
    host: str = finding.subject
    if finding.port is None:
        return host
    return f"[{host}]:{finding.port}" if ":" in host else f"{host}:{finding.port}"
