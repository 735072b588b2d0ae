"""Throwaway PostgreSQL: one cluster for a run, one database for a test, nothing left behind.

    with ephemeral_cluster(dsn_env="MYAPP_DATABASE_URL") as cluster:
        with cluster.database(export=True) as url:
            ...

The launcher is `hermetic._native`; this package gives it names, defaults and error classes. The pytest fixtures are in
`stricttest.pgcluster.fixtures`, so that importing this does not import pytest.
"""

from __future__ import annotations

from ._binaries import BINARY_SEARCH_DIRS, REQUIRED_BINARIES, Binaries, find_binaries
from ._cluster import EphemeralCluster, ephemeral_cluster
from ._errors import (
    CacheUnavailable,
    ClusterStopped,
    ConnectionsExhausted,
    InvalidArgument,
    NoSpace,
    PostgresClusterError,
    PostgresUnavailable,
    ServerDied,
    ServerStartFailed,
    SocketPathTooLong,
    StatementFailed,
    UnsupportedVersion,
)
from ._places import (
    DEFAULT_DATA_PARENTS,
    DEFAULT_SOCKET_PARENTS,
    FAST_SETTINGS,
    SOCKET_FILE_TEMPLATE,
    SUN_PATH_MAX,
    check_socket_dir,
    socket_path_for,
    sweep,
)

__all__ = [
    "BINARY_SEARCH_DIRS",
    "DEFAULT_DATA_PARENTS",
    "DEFAULT_SOCKET_PARENTS",
    "FAST_SETTINGS",
    "REQUIRED_BINARIES",
    "SOCKET_FILE_TEMPLATE",
    "SUN_PATH_MAX",
    "Binaries",
    "CacheUnavailable",
    "ClusterStopped",
    "ConnectionsExhausted",
    "EphemeralCluster",
    "InvalidArgument",
    "NoSpace",
    "PostgresClusterError",
    "PostgresUnavailable",
    "ServerDied",
    "ServerStartFailed",
    "SocketPathTooLong",
    "StatementFailed",
    "UnsupportedVersion",
    "check_socket_dir",
    "ephemeral_cluster",
    "find_binaries",
    "socket_path_for",
    "sweep",
]
