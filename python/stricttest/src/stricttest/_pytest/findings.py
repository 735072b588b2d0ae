"""What the floor noticed, as plain values that travel from xdist workers to the controller, and as texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hermetic import _native

from stricttest._errors import Refusal, take_expected

NETWORK, PROCESS, WRITE, VARIABLE = "floor-network", "floor-process", "floor-write", "variable"
_KINDS = {7: NETWORK, 8: PROCESS, 9: WRITE}
REFUSALS = (NETWORK, PROCESS)
ORIGINS = {"forked": "in a forked process", "started": "in a program that was started"}

Entry = dict[str, Any]
"""kind, subject, port, count, message, site; `expected` where the test asked for the refusal by name; `test` its node
id."""


def from_line(line: str) -> Entry:
    """What another process has written down: kind, port, count, subject, message, site and what kind of process it is,
    separated by tabs."""
    kind, port, count, subject, message, site, origin = line.split("\t")
    return {
        "kind": _KINDS.get(int(kind), kind),
        "subject": subject,
        "port": int(port) if int(port) >= 0 else None,
        "count": int(count),
        "message": f"{message} ({ORIGINS.get(origin, origin)})",
        "site": site,
    }


def take_native() -> list[Entry]:
    return [
        {
            "kind": found.kind,
            "subject": found.subject,
            "port": found.port,
            "count": found.count,
            "message": found.message,
            "site": found.site,
        }
        for found in _native.floor_take()
    ]


def settle_expected(entries: list[Entry]) -> None:
    """Marks what a test has asked for by name."""
    for refusal in take_expected():
        for entry in entries:
            if entry["kind"] in REFUSALS and _is_of(refusal, entry):
                entry["expected"] = min(entry["count"], entry.get("expected", 0) + 1)
                break


def _is_of(refusal: Refusal, entry: Entry) -> bool:
    if entry["kind"] == PROCESS:
        return bool(str(refusal) == entry["message"])
    return (refusal.subject, refusal.port, refusal.site) == (entry["subject"], entry["port"], entry["site"])


def is_decisive(entry: Entry) -> bool:
    """Whether a test that has this must fail."""
    count: int = entry["count"]
    return entry["kind"] in REFUSALS and count > entry.get("expected", 0)


def line(entry: Entry) -> str:
    times = f" ({entry['count']} times)" if entry["count"] > 1 else ""
    site = f", at {entry['site']}" if entry["site"] else ""
    return f"{entry['message']}{times}{site}"


def text(title: str, entries: Iterable[Entry]) -> str:
    return title + "".join(f"\n  - {line(entry)}" for entry in entries)
