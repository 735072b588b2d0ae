"""One figure of a throwaway PostgreSQL, in milliseconds, printed as JSON: `postgres_probe.py TOOL WHAT`.

Tools: `ours`, `ours-namespaces`, `reference`, `pytest-postgresql`, `testing.postgresql`. What: `start` (until it
answers), `first` (from nothing to a usable database with fifty tables in it), `handout` (median time until a test of
20 ms has its database), `query` (median of the first connection and query in a database), `cycle` (mean of 200
databases, made and dropped in turn).

PostgreSQL and the peers refuse root. A peer's probe therefore becomes `nobody` after everything has been imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = "".join(
    f"create table t{n}(id serial primary key, a int, b text, up int references t{max(n - 1, 0)}(id));"
    f"create index on t{n}(a); create index on t{n}(b);"
    f"insert into t{n}(a, b) select g, g::text from generate_series(1, 20) g;\n"
    for n in range(50)
)
TESTS = 40
TEST_SECONDS = 0.020


def milliseconds(act: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    act()
    return (time.perf_counter() - begin) * 1000


class Ours:
    """`stricttest.pgcluster` of this checkout, on the engine of the wheel."""

    def __init__(self, namespaces: bool = False) -> None:
        sys.path.insert(0, str(ROOT / "python" / "stricttest" / "src"))
        from stricttest.pgcluster import EphemeralCluster

        self.seed = ROOT / "build" / "bench" / "schema.sql"
        self.seed.parent.mkdir(parents=True, exist_ok=True)
        self.seed.write_text(SCHEMA)
        self.make = lambda **more: EphemeralCluster("BENCH_URL", namespaces=namespaces, **more)

    def start(self, seeded: bool) -> None:
        self.cluster = self.make(seed=self.seed if seeded else None)
        self.cluster.start()

    def create(self) -> str:
        return self.cluster.create_database()

    def drop(self, url: str) -> None:
        self.cluster.drop_database(url.partition("@/")[2].partition("?")[0])

    def stop(self) -> None:
        self.cluster.stop()


class Reference:
    """`stricttest` 0.2.0."""

    def __init__(self) -> None:
        from stricttest.pgcluster import EphemeralCluster

        become_nobody()
        self.make = lambda: EphemeralCluster("BENCH_URL")

    def start(self, seeded: bool) -> None:
        self.cluster = self.make().start()
        self.is_seeded = seeded

    def create(self) -> str:
        url = self.cluster.create_database()
        if self.is_seeded:
            self.cluster.sql(SCHEMA, dbname=url.partition("@/")[2].partition("?")[0])
        return url

    drop, stop = Ours.drop, Ours.stop


class PytestPostgresql:
    """The executor of pytest-postgresql, as its process fixture uses it."""

    def __init__(self) -> None:
        import pytest_postgresql.janitor  # noqa: F401
        from pytest_postgresql.executors.proc import PostgreSQLExecutor

        become_nobody()
        self.folder = f"/dev/shm/bench-{os.getpid()}"
        os.mkdir(self.folder)
        self.executor = PostgreSQLExecutor(
            executable=f"{server_directory()}/pg_ctl",
            host="127.0.0.1",
            port=20_000 + os.getpid() % 20_000,
            datadir=f"{self.folder}/data",
            unixsocketdir=self.folder,
            logfile=f"{self.folder}/log",
            startparams="-w",
            dbname="bench",
        )

    def start(self, seeded: bool) -> None:
        self.executor.start()

    def stop(self) -> None:
        self.executor.stop()
        subprocess.run(["rm", "-rf", self.folder], check=True)


class TestingPostgresql:
    """testing.postgresql."""

    def __init__(self) -> None:
        import testing.postgresql

        become_nobody()
        self.module = testing.postgresql
        self.folder = f"/dev/shm/bench-{os.getpid()}"

    def start(self, seeded: bool) -> None:
        programs = {"initdb": f"{server_directory()}/initdb", "postgres": f"{server_directory()}/postgres"}
        self.server = self.module.Postgresql(base_dir=self.folder, **programs)

    def stop(self) -> None:
        self.server.stop()
        subprocess.run(["rm", "-rf", self.folder], check=True)


def server_directory() -> str:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return str(found[-1])


def become_nobody() -> None:
    os.environ["HOME"] = "/"
    os.chdir("/")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


TOOLS: dict[str, Callable[[], Any]] = {
    "ours": Ours,
    "ours-namespaces": lambda: Ours(namespaces=True),
    "reference": Reference,
    "pytest-postgresql": PytestPostgresql,
    "testing.postgresql": TestingPostgresql,
}


def query(url: str) -> None:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("select 1").fetchall()


def measure(tool: Any, what: str) -> float:
    if what in ("start", "first"):

        def act() -> None:
            tool.start(what == "first")
            if what == "first":
                tool.create()

        return milliseconds(act)
    tool.start(False)
    figures = []
    if what == "cycle":
        begin = time.perf_counter()
        for _ in range(200):
            tool.drop(tool.create())
        return (time.perf_counter() - begin) * 1000 / 200
    for _ in range(TESTS):
        begin = time.perf_counter()
        url = tool.create()
        if what == "query":
            begin = time.perf_counter()
            query(url)
        figures.append((time.perf_counter() - begin) * 1000)
        time.sleep(TEST_SECONDS)
        tool.drop(url)
    return median(figures)


def main() -> None:
    name, what = sys.argv[1:]
    if what == "query":
        # Before a peer's probe becomes a user who may not read the interpreter's files.
        import psycopg  # noqa: F401
    tool = TOOLS[name]()
    if name.startswith("ours"):
        # The cache is filled by whoever comes first on a machine; what is measured is everybody after.
        tool.start(what == "first")
        tool.stop()
    try:
        figure = measure(tool, what)
    finally:
        tool.stop()
    print(json.dumps(figure))


if __name__ == "__main__":
    main()
