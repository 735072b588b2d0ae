"""A server that follows: its sessions see the time of their client's sandbox, and its own waits stay real."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator

import hermetic
import pytest

pgcluster = pytest.importorskip("stricttest.pgcluster", reason="needs the distribution stricttest")
psycopg = pytest.importorskip("psycopg", reason="needs a driver that this interpreter can load")

NOON = "2031-02-03T12:00:00+00:00"
HOUR = datetime.timedelta(hours=1)


@pytest.fixture(scope="module")
def cluster(postgres):
    started = postgres(pgcluster.EphemeralCluster("X", clock="follow").start)
    yield started
    started.stop()


@pytest.fixture
def session(cluster) -> Iterator[psycopg.Connection]:
    """A connection from before the sandbox, such as a pool's."""
    with psycopg.connect(cluster.base_url, autocommit=True) as connection:
        yield connection


def inside(cluster, now: str = NOON, **options):
    return hermetic.sandbox(now=now, network=[f"{cluster.socket_dir}/"], rng="seed", **options)


def here() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def there(session) -> datetime.datetime:
    return session.execute("select clock_timestamp()").fetchone()[0]


def test_every_clock_of_the_server_is_the_sandboxs(cluster, session):
    with inside(cluster):
        row = session.execute(
            "select now(), clock_timestamp(), statement_timestamp(), current_date, localtimestamp at time zone 'utc', "
            "timeofday()"
        ).fetchone()
        assert set(row[:3]) == {here()} == {datetime.datetime.fromisoformat(NOON)}
        assert row[3] == datetime.date(2031, 2, 3)
        assert row[4] == here()
        assert row[5].startswith("Mon Feb 03 12:00:00.000000 2031")
        assert cluster.sql("select extract(year from now())") == "2031", "a session that begins inside"


def test_it_moves_with_sleeps_and_with_the_handle(cluster, session):
    with inside(cluster) as handle:
        start = there(session)
        time.sleep(3600)
        assert there(session) == here() == start + HOUR
        handle.clock.advance(86400)
        assert there(session) == here() == start + HOUR * 25
        handle.clock.set(datetime.datetime(2019, 1, 1, tzinfo=datetime.timezone.utc))
        assert there(session) == here() == datetime.datetime(2019, 1, 1, tzinfo=datetime.timezone.utc)


def test_a_transaction_keeps_the_time_of_its_start(cluster, session):
    with inside(cluster), session.transaction():
        first = session.execute("select now()").fetchone()[0]
        time.sleep(3600)
        now, clock = session.execute("select now(), clock_timestamp()").fetchone()
        assert now == first and clock == first + HOUR


def test_between_sandboxes_it_is_real_and_each_has_its_own(cluster, session):
    for year in (2020, 2040):
        assert abs(there(session) - here()) < HOUR and here().year not in (2020, 2040)
        with inside(cluster, now=f"{year}-01-01T00:00:00+00:00"):
            assert there(session) == here()
            assert here().year == year


def test_a_sandbox_without_a_clock_leaves_the_server_its_own(cluster, session):
    with hermetic.sandbox(clock="off", network=[f"{cluster.socket_dir}/"], rng="seed"):
        assert abs(there(session) - here()) < HOUR


def test_waits_of_the_server_are_real(cluster, session):
    with inside(cluster) as handle:
        begin, real = here(), handle.real.monotonic()
        before, after = session.execute("select clock_timestamp(), pg_sleep(0.2), clock_timestamp()").fetchone()[::2]
        took = handle.real.monotonic() - real
        assert took >= 0.19, "pg_sleep sleeps"
        assert before == begin, "and ends, although the sandbox's clock need not move"
        assert after - before >= datetime.timedelta(seconds=0.2), "what was waited is seen in the same statement"
        assert here() - begin <= datetime.timedelta(seconds=took), "the client's time followed, it did not race"


@pytest.mark.parametrize("setting", ["statement_timeout = 100", "lock_timeout = 100", "deadlock_timeout = 50"])
def test_time_outs_of_the_server_come(cluster, session, setting):
    with inside(cluster), psycopg.connect(cluster.base_url, autocommit=True) as other:
        session.execute("create table if not exists held(i int)")
        other.execute(f"set {setting}")
        if setting.startswith("statement"):
            with pytest.raises(psycopg.errors.QueryCanceled):
                other.execute("select pg_sleep(1000)")
            return
        with session.transaction():
            session.execute("lock table held")
            if setting.startswith("lock"):
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    other.execute("begin; lock table held")
                return
            # A cycle of two: only the timer finds it.
            session.execute("select pg_advisory_lock(1)")
            command = "select pg_advisory_lock(2); lock table held"
            with subprocess.Popen(
                [sys.executable, "-c", WAITER, cluster.base_url, command], stdout=subprocess.PIPE, text=True
            ) as waiter:
                assert waiter.stdout is not None and waiter.stdout.readline() == "ready\n"
                try:
                    session.execute("select pg_advisory_lock(2)")
                except psycopg.errors.DeadlockDetected:
                    return
                assert "DeadlockDetected" in waiter.communicate()[0]


WAITER = """
import sys, psycopg
with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    connection.execute("set deadlock_timeout = 50")
    first, second = sys.argv[2].split("; ")
    connection.execute(first)
    print("ready", flush=True)
    try:
        connection.execute("begin; " + second)
    except psycopg.Error as error:
        print(type(error).__name__)
"""

ASK = "import sys, psycopg; print(psycopg.connect(sys.argv[1]).execute('select now()').fetchone()[0].year)"


def test_children_have_the_clock_of_their_nearest_parent_in_a_sandbox(cluster):
    def ask() -> int:
        return int(subprocess.run([sys.executable, "-c", ASK, cluster.base_url], capture_output=True, text=True).stdout)

    with inside(cluster):
        assert ask() == 2031
        if (child := os.fork()) == 0:
            os._exit(0 if psycopg.connect(cluster.base_url).execute("select now()").fetchone()[0] == here() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ask() == here().year


def test_processes_that_share_a_cluster_have_their_own_clocks(tmp_path):
    """Both are in sandboxes at the same time: each sees its own, whose connection it is."""
    code = """
        import sys, hermetic, psycopg
        from stricttest.pgcluster import ephemeral_cluster
        year = int(sys.argv[1])
        with ephemeral_cluster("X", clock="follow", share=sys.argv[2]) as cluster:
            with hermetic.sandbox(now=f"{year}-01-01T00:00:00+00:00", network="off"):
                with psycopg.connect(cluster.base_url, autocommit=True) as session:
                    for _ in range(20):
                        print("here", flush=True)
                        sys.stdin.readline()
                        seen = session.execute("select clock_timestamp()").fetchone()[0].year
                        assert seen == year, (seen, year)
        print("done", flush=True)
    """
    share = f"clock-{os.getpid()}-{tmp_path.name}"
    pair = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(year), share],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for year in (2020, 2040)
    ]
    for _ in range(20):
        for one in pair:
            assert one.stdout is not None and one.stdout.readline() == "here\n"
        for one in pair:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
    assert [one.communicate()[0] for one in pair] == ["done\n", "done\n"]


def test_a_forked_child_with_a_sandbox_of_its_own_is_followed(cluster, session):
    with inside(cluster):
        pass
    if (child := os.fork()) == 0:
        with inside(cluster, now="2050-01-01T00:00:00+00:00"):
            year = psycopg.connect(cluster.base_url).execute("select now()").fetchone()[0].year
        os._exit(0 if year == 2050 else 1)
    with inside(cluster):
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert there(session).year == 2031


def test_fixtures_and_the_command_line_follow(floored):
    floored.settings(stricttest_pg_clock="follow", hermetic_all="true")
    floored.file(
        "test_orders.py",
        """
        import datetime, psycopg, pytest

        @pytest.mark.hermetic(now="2031-02-03T12:00:00+00:00", network="off")
        def test_inside(pg_database):
            with psycopg.connect(pg_database) as session:
                assert session.execute("select now()").fetchone()[0].year == 2031
        """,
    )
    ran = floored.pytest("-q", "test_orders.py", "--hermetic-all")
    assert ran.code == 0, ran.text
    code = (
        "import hermetic, os, psycopg\n"
        "with hermetic.sandbox(now='2031-02-03T12:00:00+00:00', network='off'):\n"
        "    print('year', psycopg.connect(os.environ['U']).execute('select now()').fetchone()[0].year)\n"
    )
    words = [sys.executable, "-m", "hermetic", "pg", "run", "--dsn-env", "U", "--clock", "follow", "--"]
    ran = floored.run([*words, sys.executable, "-c", code])
    assert ran.line("year ") == "2031", ran.text


def test_what_cannot_follow_says_so(tmp_path):
    with pytest.raises(pgcluster.InvalidArgument, match='clock "often" is not accepted: "real" and "follow" are'):
        pgcluster.EphemeralCluster("X", clock="often").start()
    with pytest.raises(pgcluster.InvalidArgument, match="together with namespaces"):
        pgcluster.EphemeralCluster("X", clock="follow", namespaces=True).start()
    if tmp_path.stat().st_dev != os.stat("/dev/shm").st_dev:
        with pytest.raises(pgcluster.InvalidArgument, match=r"needs a socket directory in /dev/shm"):
            pgcluster.EphemeralCluster("X", clock="follow", socket_parent=tmp_path.parent.parent).start()
