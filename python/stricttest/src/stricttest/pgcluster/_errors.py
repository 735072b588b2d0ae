"""The classes of errors, one for each kind that the launcher tells (`spec/postgres.toml`, in the repository)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hermetic import _native


class _Parts:
    """What an error knows beside its message; each is empty where there is none."""

    command: str = ""
    """The command or the statements that failed."""
    output: str = ""
    """What the program printed."""
    log: str = ""
    """The end of the server's log."""


class PostgresUnavailable(_Parts, RuntimeError):
    """There is no PostgreSQL on this machine, no place for a cluster, or nobody to run it as."""


class UnsupportedVersion(PostgresUnavailable):
    """The server is older than the oldest supported release."""


class CacheUnavailable(PostgresUnavailable):
    """The directory of prepared clusters can neither be used nor written."""


class SocketPathTooLong(_Parts, ValueError):
    """The path of the socket is longer than the kernel takes."""


class InvalidArgument(_Parts, ValueError):
    """An argument has a value that cannot be used, such as a database's name outside the closed set."""


class PostgresClusterError(_Parts, RuntimeError):
    """Something failed in a cluster; the message holds the command, its output and the end of the server's log."""


class ServerStartFailed(PostgresClusterError):
    """The server did not come up, or not in time."""


class ServerDied(PostgresClusterError):
    """The server has ended although nobody stopped it."""


class ConnectionsExhausted(PostgresClusterError):
    """The server has no connection left; the message says who holds them."""


class StatementFailed(PostgresClusterError):
    """The server refused a statement."""


class NoSpace(PostgresClusterError):
    """The file system of the data directory has no room."""


class ClusterStopped(PostgresClusterError):
    """The cluster has been stopped, or its supervisor was killed."""


CLASSES: dict[str, type[Exception]] = {
    "cache": CacheUnavailable,
    "connections": ConnectionsExhausted,
    "died": ServerDied,
    "invalid": InvalidArgument,
    "socket-path": SocketPathTooLong,
    "space": NoSpace,
    "start": ServerStartFailed,
    "statement": StatementFailed,
    "stopped": ClusterStopped,
    "unavailable": PostgresUnavailable,
    "version": UnsupportedVersion,
}


def _message(what: str, parts: dict[str, str]) -> str:
    lines = [what.rstrip()]
    for title, text in parts.items():
        text = text.rstrip()
        if text:
            lines.append(f"{title}:{chr(10) if chr(10) in text else ' '}{text}")
    return "\n".join(lines)


@contextmanager
def translated() -> Iterator[None]:
    """Turns the launcher's errors into these classes."""
    try:
        yield
    except _native.PgError as error:
        kind, what, command, output, log = error.args
        parts = {"command": command, "output": output, "server log": log}
        raised = CLASSES.get(kind, PostgresClusterError)(_message(what, parts))
        raised.__dict__.update(command=command, output=output, log=log)
        raise raised from None
