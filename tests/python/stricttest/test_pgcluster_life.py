"""What ends a cluster, and what does not: exits, kills, forks, workers; and seeds, which outlive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pgcluster = pytest.importorskip("stricttest.pgcluster", reason="needs the distribution stricttest")

SECONDS_MAX = 20
"""A leftover is one that is still there after this long. Clean-up takes milliseconds."""

# What starts the run may ignore signals, and its programs with it: nohup does, a shell for its background jobs too.
STARTER = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
from stricttest.pgcluster import EphemeralCluster
cluster = EphemeralCluster("X").start()
print(cluster.data_dir.parent, cluster.socket_dir, flush=True)
"""


@pytest.fixture(autouse=True, scope="module")
def must_have_postgres(postgres):
    postgres(pgcluster.find_binaries)


def start(code: str) -> tuple[subprocess.Popen[str], list[Path]]:
    words = [sys.executable, "-c", STARTER + textwrap.dedent(code)]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    paths = [Path(word) for word in child.stdout.readline().split()]
    assert len(paths) == 2 and all(path.exists() for path in paths)
    return child, paths


def wait_until_gone(paths: list[Path]) -> None:
    limit = time.monotonic() + SECONDS_MAX
    while any(path.exists() for path in paths):
        assert time.monotonic() < limit, f"still there: {paths}"
        time.sleep(0.005)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_killed_owner_leaves_nothing(number):
    child, paths = start("import time; time.sleep(1000)")
    child.send_signal(number)
    child.wait()
    wait_until_gone(paths)


@pytest.mark.parametrize("ending", ["pass", "os._exit(3)", "raise SystemExit(1)", "cluster.stop()"])
def test_a_process_that_ends_leaves_nothing(ending):
    child, paths = start(ending)
    child.communicate()
    wait_until_gone(paths)


def test_a_forked_child_that_exits_does_not_stop_its_parents_cluster():
    child, paths = start("""
        if os.fork() == 0:
            sys.exit(0)
        os.wait()
        if os.fork() == 0:
            cluster.stop()
            os._exit(0)
        os.wait()
        print(cluster.sql("select 1"), flush=True)
        sys.stdin.read()
    """)
    assert child.stdout is not None
    assert child.stdout.readline() == "1\n"
    assert all(path.exists() for path in paths)
    child.communicate()
    wait_until_gone(paths)


def test_a_forked_child_has_databases_of_its_own():
    child, _ = start("""
        with cluster.database() as ours:
            if os.fork() == 0:
                with cluster.database() as theirs:
                    os._exit(0 if theirs != ours and cluster.sql("select 1") == "1" else 1)
            print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
    """)
    out, _ = child.communicate()
    assert out == "0\n"


def test_a_child_that_outlives_its_parent_does_not_keep_the_cluster():
    child, paths = start("""
        if os.fork() == 0:
            os.close(1)
            sys.stdin.read()
            os._exit(0)
        os._exit(0)
    """)
    assert child.wait() == 0
    wait_until_gone(paths)
    child.communicate()


def test_the_end_of_the_server_under_a_test_is_told_with_its_log():
    with pytest.raises(pgcluster.ServerDied, match="ready to accept connections"):
        with pgcluster.ephemeral_cluster("X") as cluster, cluster.database():
            pid = int((cluster.data_dir / "postmaster.pid").read_text().split()[0])
            os.kill(pid, signal.SIGKILL)
            cluster.sql("select 1")
    assert not cluster.running


def test_a_seed_runs_once_for_its_content(tmp_path, monkeypatch):
    monkeypatch.setenv("HERMETIC_PG_CACHE", str(tmp_path / "cache"))
    schema = tmp_path / "schema.sql"
    schema.write_text("create table book(title text);\ncopy book from stdin;\nfirst\n\\.\n")
    calls = []

    def fill(url: str) -> None:
        calls.append(url)
        subprocess.run(
            [pgcluster.find_binaries().psql, "-qX", url, "-c", "insert into book values ('second')"], check=True
        )

    for _ in range(2):
        with pgcluster.ephemeral_cluster("X", seed=[schema, fill]) as cluster:
            for _ in range(3):
                name = cluster.create_database().partition("@/")[2].partition("?")[0]
                assert cluster.sql("select count(*) from book; delete from book", dbname=name) == "2"
    assert len(calls) == 1
    schema.write_text("create table film(title text);")
    with pgcluster.ephemeral_cluster("X", seed=schema) as cluster:
        cluster.create_database("films")
        assert cluster.sql("select count(*) from film", dbname="films") == "0"


def test_a_seed_that_fails_is_told_and_leaves_nothing(tmp_path):
    bad = tmp_path / "bad.sql"
    bad.write_text("select 1;\nselect nope;\n")
    with pytest.raises(pgcluster.StatementFailed, match=r"bad\.sql:2.*nope"):
        pgcluster.EphemeralCluster("X", seed=bad).start()

    def raising(url: str) -> None:
        raise LookupError(url)

    with pytest.raises(LookupError, match="hermetic_template"):
        pgcluster.EphemeralCluster("X", seed=raising, seed_key=str(tmp_path)).start()
    for seed in (tmp_path / "missing.sql", 7):
        with pytest.raises(ValueError, match="seed"):
            pgcluster.EphemeralCluster("X", seed=seed).start()


def test_a_cache_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HERMETIC_PG_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(pgcluster.CacheUnavailable, match="HERMETIC_PG_CACHE"):
        pgcluster.EphemeralCluster("X").start()


def test_seeds_reach_their_template_under_the_floor(floored, tmp_path):
    seeds = "schema.sql\n    seeds:fill\n    seeds:fill_here"
    floored.settings(stricttest_pg_dsn_env="APP_URL", stricttest_pg_seed=seeds)
    floored.file("schema.sql", "create table book(title text);\n")
    floored.file(
        "seeds.py",
        """
        import socket, subprocess, urllib.parse
        from stricttest import pgcluster
        def fill(url):
            words = [pgcluster.find_binaries().psql, "-qX", url, "-c", "insert into book values ('by psql')"]
            subprocess.run(words, check=True)
        def fill_here(url):
            query = urllib.parse.parse_qs(urllib.parse.urlparse(url).query)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}")
        """,
    )
    floored.file(
        "test_a.py",
        """
        def test_it(pg_cluster, pg_database):
            name = pg_database.partition("@/")[2].partition("?")[0]
            assert pg_cluster.sql("select title from book", dbname=name) == "by psql"
        """,
    )
    ran = floored.pytest("-q", env={"HERMETIC_PG_CACHE": str(tmp_path / "cache"), "PYTHONPATH": "."})
    assert ran.code == 0 and "1 passed" in ran.text, ran.text


# The floor's own keys stand here for the case that it is installed as a plugin.
INI = """\
[pytest]
stricttest_pg_dsn_env = APP_URL
stricttest_pg_seed = schema.sql
stricttest_sockets = deny
stricttest_socket_allowlist =
stricttest_unix_socket_allowlist =
stricttest_loopback = deny
stricttest_sandbox_required = false
"""
SUITE = """
import os, pytest

@pytest.mark.parametrize("number", range(6))
def test_one(number, pg_database, pg_cluster):
    assert os.environ["APP_URL"] == pg_database
    name = pg_database.partition("@/")[2].partition("?")[0]
    assert pg_cluster.sql("create table t(i int); select count(*) from book", dbname=name) == "0"
    print("RAN", pg_cluster.data_dir)
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_fixtures_need_no_code_and_workers_share_a_cluster(tmp_path, workers):
    pytest.importorskip("xdist")
    files = {"test_it.py": SUITE, "schema.sql": "create table book(title text);\n", "pytest.ini": INI}
    # Where the distribution is installed, its entry point brings the fixtures; naming them once more does no harm.
    files["conftest.py"] = 'pytest_plugins = ["stricttest.pgcluster.fixtures"]\n'
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "STRICTTEST_"))}
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", "-rP", "-n", str(workers)]
    ran = subprocess.run(words, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert "6 passed" in ran.stdout, ran.stdout
    places = {line.split()[1] for line in ran.stdout.splitlines() if line.startswith("RAN ")}
    assert len(places) == 1
    wait_until_gone([Path(place).parent for place in places])


def test_a_sandbox_lets_its_cluster_be_reached_and_no_time_pass():
    hermetic = pytest.importorskip("hermetic")
    psycopg = pytest.importorskip("psycopg")
    with hermetic.sandbox(seed=1, allow_unix=False) as sandbox:
        before = sandbox.clock.now()
        with pgcluster.ephemeral_cluster("X") as cluster, cluster.database() as url:
            assert cluster.sql("select 1") == "1"
            assert sandbox.clock.now() == before
            with psycopg.connect(url) as connection:
                assert connection.execute("select 2").fetchone() == (2,)
            with pytest.raises((psycopg.OperationalError, hermetic.NetworkBlockedError)):
                psycopg.connect("host=/nonexistent/elsewhere dbname=postgres")
