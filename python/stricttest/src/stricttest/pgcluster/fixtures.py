"""pytest fixtures that need no code: `pg_cluster` for the session, `pg_database` for a test.

    def test_orders(pg_database):
        with psycopg.connect(pg_database) as connection:
            ...

Four settings of pytest's ini file shape them: `stricttest_pg_dsn_env` (the variable that a test's URL is exported
under), `stricttest_pg_seed` (SQL files relative to the root, or `module:function`, one a line),
`stricttest_pg_settings` (server settings, `name=value`, one a line) and `stricttest_pg_clock` (`follow`: the server's
clock is that of the test's sandbox). All workers of a pytest-xdist run share one
cluster. A machine without PostgreSQL skips the tests that ask for it, unless HERMETIC_PROMISES names `postgres`.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest

from ._cluster import EphemeralCluster
from ._errors import PostgresUnavailable
from ._seed import SeedPart

PROMISES = "HERMETIC_PROMISES"
"""The variable that names, separated by commas, what this machine must have: then its lack is a failure."""


class _Unexported(EphemeralCluster):
    """A cluster whose base URL no variable holds."""

    def _export(self) -> None:
        pass

    def _restore(self) -> None:
        pass


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("stricttest_pg_dsn_env", "variable that pg_database exports the URL of a test's database under")
    parser.addini("stricttest_pg_seed", "what fills every database: SQL files, or module:function", type="linelist")
    parser.addini("stricttest_pg_clock", "whose time the server shows: real, or follow (the test's sandbox)")
    parser.addini("stricttest_pg_settings", "settings of the server, name=value", type="linelist")


def _seed_part(text: str, config: pytest.Config) -> SeedPart:
    module, colon, name = text.partition(":")
    if not colon:
        return config.rootpath / text
    try:
        function: Callable[[str], object] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise pytest.UsageError(f"stricttest_pg_seed: {text} cannot be used: {error}") from None
    return function


def _settings(config: pytest.Config) -> dict[str, str]:
    settings = {}
    for line in config.getini("stricttest_pg_settings"):
        name, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"stricttest_pg_settings: {line!r} is not accepted: name=value is")
        settings[name.strip()] = value.strip()
    return settings


def _clock(config: pytest.Config) -> Literal["real", "follow"]:
    match config.getini("stricttest_pg_clock") or "real":
        case "real":
            return "real"
        case "follow":
            return "follow"
        case other:
            raise pytest.UsageError(f"stricttest_pg_clock: {other!r} is not accepted: real and follow are")


def _run_of(config: pytest.Config) -> str | None:
    """What the workers of one run have in common; nothing for a run without workers."""
    given: dict[str, Any] | None = getattr(config, "workerinput", None)
    return None if given is None else str(given["testrunuid"])


@pytest.fixture(scope="session")
def pg_cluster(request: pytest.FixtureRequest) -> Iterator[EphemeralCluster]:
    """The run's cluster."""
    config = request.config
    seed = [_seed_part(line, config) for line in config.getini("stricttest_pg_seed")]
    cluster = _Unexported(
        config.getini("stricttest_pg_dsn_env") or "unexported",
        seed=seed or None,
        settings=_settings(config),
        clock=_clock(config),
        share=_run_of(config),
    )
    try:
        cluster.start()
    except PostgresUnavailable as error:
        if "postgres" in os.environ.get(PROMISES, "").split(","):
            raise
        pytest.skip(str(error))
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def pg_database(pg_cluster: EphemeralCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a database that is this test's alone."""
    with pg_cluster.database(export=bool(request.config.getini("stricttest_pg_dsn_env"))) as url:
        yield url
