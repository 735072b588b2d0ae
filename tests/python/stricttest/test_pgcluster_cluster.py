"""Clusters and databases: every documented name, default and error, through SQL and three drivers."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

pgcluster = pytest.importorskip("stricttest.pgcluster", reason="needs the distribution stricttest")

VARIABLE = "PGCLUSTER_TEST_URL"


@pytest.fixture(scope="module")
def cluster(postgres):
    started = postgres(pgcluster.EphemeralCluster(VARIABLE).start)
    yield started
    started.stop()


def name_of(url: str) -> str:
    return re.fullmatch(r"postgresql://postgres@/(\w+)\?host=\S+&port=5432", url).group(1)


def is_there(cluster, name: str) -> bool:
    return cluster.sql(f"select count(*) from pg_database where datname = '{name}'") == "1"


def test_a_cluster_answers_over_its_socket_alone(cluster):
    assert cluster.running
    assert cluster.start() is cluster
    assert cluster.sql("select 1, 'a b', null; select 2") == "1|a b|\n2"
    assert cluster.sql("show listen_addresses") == ""
    assert cluster.sql("show fsync; show server_encoding") == "off\nUTF8"
    assert cluster.sql("create temp table t(i int); insert into t values (1)") == ""
    assert cluster.sql("select to_regclass('pg_temp.t')") == "", "each call has a session of its own"
    assert isinstance(cluster.socket_dir, Path) and isinstance(cluster.data_dir, Path)
    assert isinstance(cluster.socket_path, str) and os.path.exists(cluster.socket_path)
    assert (cluster.data_dir / "PG_VERSION").exists()
    assert len(cluster.socket_path) <= pgcluster.SUN_PATH_MAX == 107
    host = str(cluster.socket_dir).replace("/", "%2F")
    assert cluster.base_url == f"postgresql://postgres@/postgres?host={host}&port=5432" == os.environ[VARIABLE]
    assert cluster.url_for("x_y") == f"postgresql://postgres@/x_y?host={host}&port=5432"


def test_a_database_lasts_for_its_block(cluster):
    before = os.environ[VARIABLE]
    with cluster.database() as url:
        name = name_of(url)
        assert re.fullmatch(r"test_[0-9a-f]{16}", name)
        assert cluster.sql("create table t(i int); select count(*) from t", dbname=name) == "0"
        assert os.environ[VARIABLE] == before
    assert not is_there(cluster, name)
    with pytest.raises(KeyError), cluster.database("orders", export=True) as url:
        assert os.environ[VARIABLE] == url == cluster.url_for("orders")
        assert cluster.sql("select to_regclass('t')", dbname="orders") == "", "no test sees another's tables"
        raise KeyError("the body's own error comes through")
    assert os.environ[VARIABLE] == before
    assert not is_there(cluster, "orders")


def test_databases_are_made_and_dropped_by_name(cluster):
    for _ in range(2):
        assert cluster.create_database("orders") == cluster.url_for("orders")
        with pytest.raises(pgcluster.StatementFailed, match="already exists"):
            cluster.create_database("orders")
        cluster.drop_database("orders")
    cluster.drop_database("never_there")
    url = cluster.create_database()
    assert is_there(cluster, name_of(url))
    cluster.drop_database(name_of(url))
    assert re.fullmatch(r"test_[0-9a-f]{16}", cluster.generate_name())


@pytest.mark.parametrize("name", ["", "a b", "a-b", "1a", "abc\n", '"; drop', "x" * 64, "é"])
def test_names_are_a_closed_set(cluster, name):
    for act in (cluster.create_database, cluster.drop_database):
        with pytest.raises(ValueError, match="not accepted"):
            act(name)
    with pytest.raises(ValueError, match="not accepted"), cluster.database(name):
        pass


def test_a_session_that_is_open_does_not_keep_a_database(cluster):
    psycopg = pytest.importorskip("psycopg")
    with cluster.database() as url:
        connection = psycopg.connect(url)
    assert not is_there(cluster, name_of(url))
    connection.close()


def test_statements_that_fail_say_what_and_where(cluster):
    with pytest.raises(pgcluster.PostgresClusterError) as caught:
        cluster.sql("select nope")
    assert isinstance(caught.value, RuntimeError)
    for part in ('column "nope" does not exist', "42703", "select nope", "server log:"):
        assert part in str(caught.value)
    assert caught.value.command == "select nope"
    assert "nope" in caught.value.log


def test_drivers_of_every_kind(cluster):
    psycopg = pytest.importorskip("psycopg")
    with cluster.database() as url, psycopg.connect(url) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_an_asynchronous_driver(cluster):
    asyncpg = pytest.importorskip("asyncpg")

    async def ask(url: str) -> int:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval("select 6 * 7")
        finally:
            await connection.close()

    with cluster.database() as url:
        assert asyncio.run(ask(url)) == 42


def test_a_variable_that_was_set_is_put_back(monkeypatch, cluster):
    monkeypatch.setenv("OWN_URL", "before")
    with pgcluster.ephemeral_cluster("OWN_URL", port=6000, superuser="admin", settings={"work_mem": "8MB"}) as own:
        assert os.environ["OWN_URL"] == own.base_url
        assert own.sql("select current_user; show work_mem") == "admin\n8MB"
        data, sockets = own.data_dir, own.socket_dir
    assert os.environ["OWN_URL"] == "before"
    assert not data.parent.exists() and not sockets.exists()
    own.stop()
    assert not own.running
    for use in (lambda: own.base_url, lambda: own.data_dir, lambda: own.sql("select 1"), lambda: own.url_for("x")):
        with pytest.raises(RuntimeError, match="not started"):
            use()


def test_a_stopped_cluster_starts_anew(cluster):
    own = pgcluster.EphemeralCluster("OWN_URL")
    for _ in range(2):
        with own:
            assert own.sql("select 1") == "1"
        assert "OWN_URL" not in os.environ


def test_parents_that_are_given_are_used_or_refused(cluster, tmp_path):
    with pgcluster.ephemeral_cluster("OWN_URL", data_parent=tmp_path, socket_parent="/tmp") as own:
        assert tmp_path in own.data_dir.parents and own.socket_dir.parent == Path("/tmp")
        assert own.sql("select 1") == "1"
    assert list(tmp_path.iterdir()) == []
    long = tmp_path / ("d" * 100)
    long.mkdir()
    for arguments, error in [
        ({"data_parent": "/nonexistent"}, pgcluster.PostgresUnavailable),
        ({"socket_parent": "/nonexistent"}, pgcluster.PostgresUnavailable),
        ({"socket_parent": long}, pgcluster.SocketPathTooLong),
        ({"settings": {"no_such_setting": 1}}, pgcluster.ServerStartFailed),
        ({"settings": {"port": 1}}, ValueError),
        ({"start_timeout": 0}, ValueError),
        ({"pool": 10_000}, ValueError),
        ({"superuser": "pg_x"}, ValueError),
    ]:
        with pytest.raises(error):
            pgcluster.EphemeralCluster("OWN_URL", **arguments).start()
        assert "OWN_URL" not in os.environ
    assert [path.name for path in tmp_path.iterdir()] == [long.name]


def test_connections_that_run_out_are_told_by_database(cluster):
    psycopg = pytest.importorskip("psycopg")
    settings = {"max_connections": 6, "superuser_reserved_connections": 0}
    with pgcluster.ephemeral_cluster("OWN_URL", settings=settings, pool=0) as own:
        url = own.create_database("crowded")
        held = []
        with pytest.raises(psycopg.OperationalError):
            while len(held) < 20:
                held.append(psycopg.connect(url))
        with pytest.raises(pgcluster.ConnectionsExhausted) as caught:
            own.sql("select 1", dbname="crowded")
        assert "crowded: " in str(caught.value) and "max_connections = 6" in str(caught.value)
        for connection in held:
            connection.close()


def test_what_needs_no_server():
    with pytest.raises(TypeError):
        pgcluster.EphemeralCluster()
    for name in ("", "A=B", None):
        with pytest.raises(ValueError, match="no default name"):
            pgcluster.EphemeralCluster(name)
    assert pgcluster.socket_path_for("/x", 5) == "/x/.s.PGSQL.5"
    room = pgcluster.SUN_PATH_MAX - len("/.s.PGSQL.5432")
    assert len(pgcluster.check_socket_dir("/" + "d" * (room - 1), 5432)) == 107
    with pytest.raises(pgcluster.SocketPathTooLong, match="107"):
        pgcluster.check_socket_dir("/" + "d" * room, 5432)
    with pytest.raises(ValueError, match="whitespace"):
        pgcluster.check_socket_dir("/a b", 5432)
    assert issubclass(pgcluster.SocketPathTooLong, ValueError)
    assert issubclass(pgcluster.PostgresUnavailable, RuntimeError)


def fake_programs(directory: Path, *names: str) -> Path:
    directory.mkdir(parents=True)
    for name in names:
        (directory / name).write_text("#!/bin/sh\n")
        (directory / name).chmod(0o755)
    return directory


def test_programs_are_found_in_the_documented_order(tmp_path, monkeypatch):
    everything = ("initdb", "pg_ctl", "psql")
    for release in ("9.6", "18", "10"):
        fake_programs(tmp_path / "usual" / release / "bin", *everything)
    monkeypatch.setattr("stricttest.pgcluster._binaries.BINARY_SEARCH_DIRS", (f"{tmp_path}/usual/*/bin",))
    monkeypatch.setenv("PATH", "/nonexistent")
    assert pgcluster.find_binaries().bindir == tmp_path / "usual/18/bin"
    path = fake_programs(tmp_path / "path", *everything)
    monkeypatch.setenv("PATH", str(path))
    assert pgcluster.find_binaries().initdb == path / "initdb"
    extra = fake_programs(tmp_path / "extra", *everything)
    found = pgcluster.find_binaries([extra])
    assert found == pgcluster.Binaries(extra / "initdb", extra / "pg_ctl", extra / "psql")


def test_a_machine_without_a_server_says_what_to_install(tmp_path, monkeypatch):
    client = fake_programs(tmp_path / "client", "psql")
    monkeypatch.setattr("stricttest.pgcluster._binaries.BINARY_SEARCH_DIRS", ())
    monkeypatch.setenv("PATH", str(client))
    with pytest.raises(pgcluster.PostgresUnavailable) as caught:
        pgcluster.ephemeral_cluster("OWN_URL").__enter__()
    for part in ("initdb", "pg_ctl", "psql", str(client), "client package alone", "server package"):
        assert part in str(caught.value)


def test_an_old_server_is_refused_by_name(tmp_path):
    old = fake_programs(tmp_path / "old", "initdb", "pg_ctl", "psql", "postgres")
    (old / "postgres").write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 9.6.24'\n")
    with pytest.raises(pgcluster.UnsupportedVersion, match=r"9\.6\.24"):
        pgcluster.EphemeralCluster("OWN_URL", binaries=pgcluster.find_binaries([old])).start()


def test_errors_are_those_of_the_table():
    table = Path(__file__).parents[3] / "spec" / "postgres.toml"
    if not table.exists():
        pytest.skip("the table of errors is in the repository only")
    rows = re.findall(r'^kind = "(.*)"\npython = "(.*)"\npython_base = "(.*)"$', table.read_text(), re.M)
    from stricttest.pgcluster._errors import CLASSES

    assert {kind: found.__name__ for kind, found in CLASSES.items()} == {kind: name for kind, name, _ in rows}
    for kind, name, base in rows:
        assert base in [parent.__name__ for parent in CLASSES[kind].__mro__[1:]]
        assert getattr(pgcluster, name) is CLASSES[kind]
