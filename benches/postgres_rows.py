"""The rows of throwaway PostgreSQL. The figures are milliseconds of elapsed time, taken by `postgres_probe.py`."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass

from samples import ROOT, SampleFailed, bare_environment, python_of

ENVIRONMENTS = {
    "ours": "bench",
    "ours-namespaces": "bench",
    "reference": "stricttest-0.2.0",
    "pytest-postgresql": "pytest-postgresql",
    "testing.postgresql": "testing-postgresql",
}


@dataclass(frozen=True)
class Postgres:
    """A figure of `postgres_probe.py`: a tool and what is asked of it."""

    tool: str
    what: str

    def take(self) -> float:
        program = str(ROOT / "benches" / "postgres_probe.py")
        command = [python_of(ENVIRONMENTS[self.tool]), "-W", "ignore", program, self.tool, self.what]
        done = subprocess.run(command, capture_output=True, text=True, env=bare_environment())
        if done.returncode != 0:
            raise SampleFailed(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return float(json.loads(done.stdout.splitlines()[-1]))


# Key, question, target in milliseconds, our tool, what, the peers.
TABLE: list[tuple[str, str, float, str, str, tuple[str, ...]]] = [
    (
        "pg-start",
        "PostgreSQL: cluster ready, warm cache, by copy",
        60,
        "ours",
        "start",
        ("reference", "pytest-postgresql", "testing.postgresql"),
    ),
    ("pg-start-ns", "PostgreSQL: cluster ready, warm cache, in namespaces", 45, "ours-namespaces", "start", ()),
    ("pg-first", "PostgreSQL: from nothing to a database of 50 tables, by copy", 110, "ours", "first", ("reference",)),
    (
        "pg-first-ns",
        "PostgreSQL: from nothing to a database of 50 tables, in namespaces",
        80,
        "ours-namespaces",
        "first",
        (),
    ),
    ("pg-handout", "PostgreSQL: hand-out of a database, tests of 20 ms", 1, "ours", "handout", ("reference",)),
    ("pg-query", "PostgreSQL: first connection and query in it", 8, "ours", "query", ("reference",)),
    ("pg-cycle", "PostgreSQL: a database made and dropped, 200 in turn", 40, "ours", "cycle", ("reference",)),
]
