"""Where clusters live, and the check of a socket's path."""

from __future__ import annotations

from pathlib import Path

from hermetic import _native

from ._errors import translated

_TABLES = _native.pg_tables()

DEFAULT_DATA_PARENTS: tuple[str, ...] = tuple(_TABLES[1])
"""Parents of data directories, tried in this order before the directory for temporary files."""

DEFAULT_SOCKET_PARENTS: tuple[str, ...] = tuple(_TABLES[2])
"""Parents of socket directories, tried in this order before the directory for temporary files."""

FAST_SETTINGS: tuple[str, ...] = tuple(_TABLES[3])
"""The server's settings, as `name=value`; `settings` of a cluster comes after them and wins."""

SUN_PATH_MAX: int = _TABLES[4]
"""The longest path of a unix socket in bytes."""

SOCKET_FILE_TEMPLATE = ".s.PGSQL.{port}"
"""The name that a server gives its socket."""


def socket_path_for(directory: str | Path, port: int) -> str:
    """The path of the socket that a server with this port makes in a directory.

    >>> socket_path_for("/tmp/x", 5432)
    '/tmp/x/.s.PGSQL.5432'
    """
    return str(Path(directory) / SOCKET_FILE_TEMPLATE.format(port=port))


def check_socket_dir(directory: str | Path, port: int) -> str:
    """Checks, before anything runs, that a server can put its socket there; returns the socket's path.

    Raises `SocketPathTooLong`, or `ValueError` for white space in the path.
    """
    with translated():
        return str(_native.pg_check_socket_dir(Path(directory), port))


def sweep() -> list[str]:
    """Removes what runs of this user left that were killed with their supervisor; returns the names of those runs.

    Every start of a cluster does this too.
    """
    with translated():
        return _native.pg_sweep()
