"""A throwaway cluster and its databases, with the names and defaults of the documentation."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import hermetic
from hermetic import _native

from ._binaries import Binaries, programs
from ._errors import ClusterStopped, InvalidArgument, translated
from ._places import check_socket_dir, socket_path_for
from ._seed import Seed, key_of, split

POOL = 8
"""Databases that are kept ready."""

_open: weakref.WeakSet[EphemeralCluster] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    # The supervisor would see this process end too; this way the run is over when the interpreter is.
    for cluster in list(_open):
        cluster.stop()


class EphemeralCluster:
    """A cluster on a private unix socket, in memory, gone when it is stopped or its process ends, however it does.

    `dsn_env` names the variable that the application reads its connection string from; it holds the base URL while the
    cluster runs, and what it held before afterwards.

    Beyond the paths and programs: `settings` are further server settings; `pool` databases are kept ready (0: each is
    made when it is asked for); `seed` fills the template that every database is a copy of, and runs once for its
    content; `seed_depends` are files and directories whose content counts too; `seed_key` replaces that key;
    `namespaces` lets the server start quicker, with its data where only it sees them; `share` names a run whose
    processes use one cluster; `clock="follow"` lets `now()` and `clock_timestamp()` follow the sandbox of the process
    that has connected.
    """

    def __init__(
        self,
        dsn_env: str,
        *,
        port: int = 5432,
        superuser: str = "postgres",
        maintenance_db: str = "postgres",
        data_parent: str | Path | None = None,
        socket_parent: str | Path | None = None,
        binaries: Binaries | None = None,
        start_timeout: float = 60,
        settings: Mapping[str, object] | None = None,
        pool: int = POOL,
        seed: Seed = None,
        seed_key: str | None = None,
        seed_depends: Sequence[str | Path] = (),
        namespaces: bool = False,
        clock: Literal["real", "follow"] = "real",
        share: str | None = None,
    ) -> None:
        if not isinstance(dsn_env, str) or not dsn_env or "=" in dsn_env or "\0" in dsn_env:
            raise InvalidArgument(
                f"dsn_env {dsn_env!r} is not accepted: the name of the environment variable that the application reads "
                "its connection string from is required; there is no default name"
            )
        self.dsn_env = dsn_env
        self.port = int(port)
        if not 0 < self.port < 65536:
            raise InvalidArgument(f"port {port!r} is not accepted: 1 to 65535 are")
        self.superuser = superuser
        self.maintenance_db = maintenance_db
        self.start_timeout = start_timeout
        self._data_parent = None if data_parent is None else Path(data_parent)
        self._socket_parent = None if socket_parent is None else Path(socket_parent)
        self._binaries = binaries
        self._settings = {name: _setting(value) for name, value in (settings or {}).items()}
        self._pool = pool
        self._files, self._functions = split(seed)
        self._seed_key = seed_key
        self._seed_depends = list(seed_depends)
        self._namespaces = namespaces
        self._clock = clock
        self._share = share
        self._native: _native.PgCluster | None = None
        self._previous_dsn: str | None = None

    # --- life ---------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether the cluster has been started and not stopped."""
        return self._native is not None

    def start(self) -> EphemeralCluster:
        """Starts the cluster and exports the base URL. Does nothing where it runs already."""
        if self._native is not None:
            return self
        if self._socket_parent is not None and self._socket_parent.is_dir():
            check_socket_dir(self._socket_parent.absolute() / ("hpg-" + "0" * 12), self.port)
        key = self._seed_key
        if key is None or not (self._files or self._functions):
            key = key_of(self._files, self._functions, self._seed_depends)
        wanted: dict[str, object] = {
            "port": self.port,
            "superuser": self.superuser,
            "maintenance_db": self.maintenance_db,
            "data_parent": self._data_parent,
            "socket_parent": self._socket_parent,
            "binaries": programs(self._binaries),
            "start_timeout": float(self.start_timeout),
            "settings": list(self._settings.items()),
            "pool": self._pool,
            "namespaces": self._namespaces,
            "clock": self._clock,
            "seed_key": key,
            "share": self._share,
        }
        with translated():
            self._native = _native.PgCluster.start(wanted, self._files, self._seed if self._functions else None)
        _open.add(self)
        self._export()
        self._allow()
        return self

    def stop(self) -> None:
        """Ends the cluster: processes, socket and data are gone when this returns. Does nothing where it does not run.

        A shared cluster ends with the last of its processes. A forked child does nothing to its parent's cluster.
        """
        native, self._native = self._native, None
        if native is None:
            return
        _open.discard(self)
        self._restore()
        with translated():
            native.stop()

    def __enter__(self) -> EphemeralCluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _started(self) -> _native.PgCluster:
        if self._native is None:
            raise ClusterStopped("the cluster is not started: call start(), or use ephemeral_cluster()")
        return self._native

    def _seed(self, url: str) -> None:
        for function in self._functions:
            function(url)

    # --- places -------------------------------------------------------------------------------------------------

    @property
    def socket_dir(self) -> Path:
        """The directory of the server's socket."""
        return Path(self._started().socket_dir)

    @property
    def data_dir(self) -> Path:
        """The server's data directory. With `namespaces` only the server sees what is in it."""
        return Path(self._started().data_dir)

    @property
    def socket_path(self) -> str:
        """The path of the server's socket."""
        return socket_path_for(self.socket_dir, self.port)

    @property
    def log_path(self) -> Path:
        """The server's log."""
        return Path(self._started().log)

    @property
    def note(self) -> str:
        """What is worth knowing about this start, such as the user that root's server runs as; mostly empty."""
        return self._started().note

    @property
    def base_url(self) -> str:
        """The URL of the maintenance database."""
        return self.url_for(self.maintenance_db)

    def url_for(self, dbname: str) -> str:
        """The URL of a database, whether there is one of that name or not."""
        return self._started().url(dbname)

    # --- databases ----------------------------------------------------------------------------------------------

    @staticmethod
    def generate_name() -> str:
        """A fresh name, `test_` and 16 hexadecimal digits. It differs from run to run also inside a sandbox."""
        with translated():
            return _native.pg_generate_name()

    @staticmethod
    def _check_name(name: str) -> None:
        """Raises `InvalidArgument` for a name outside of the closed set, before anything is run."""
        with translated():
            _native.pg_check_name(name)

    def create_database(self, name: str | None = None) -> str:
        """Makes a database, under a fresh name where none is given, and returns its URL."""
        native = self._started()
        if name is not None:
            self._check_name(name)
        with translated():
            made = native.take(name)
        self._allow()
        return self.url_for(made)

    def drop_database(self, name: str) -> None:
        """Ends a database and its sessions; does nothing where there is none of that name."""
        native = self._started()
        with translated():
            native.retire(name)

    @contextmanager
    def database(self, name: str | None = None, *, export: bool = False) -> Iterator[str]:
        """A database for the block: its URL, which `export=True` also puts into the variable `dsn_env`."""
        native = self._started()
        if name is not None:
            self._check_name(name)
        with translated():
            made = native.take(name)
        self._allow()
        url = self.url_for(made)
        try:
            if not export:
                yield url
            else:
                previous = os.environ.get(self.dsn_env)
                os.environ[self.dsn_env] = url
                try:
                    yield url
                finally:
                    _put(self.dsn_env, previous)
        finally:
            # A cluster that was stopped inside the block has ended its databases.
            if self._native is native:
                self.drop_database(made)

    def sql(self, statement: str, *, dbname: str | None = None) -> str:
        """Runs statements in a database (the maintenance database where none is named); returns the rows as text.

        Columns are separated by `|`, NULL is empty, white space around the whole is dropped.
        """
        native = self._started()
        with translated():
            return native.sql(self.maintenance_db if dbname is None else dbname, statement)

    # --- environment and network --------------------------------------------------------------------------------

    def _export(self) -> None:
        self._previous_dsn = os.environ.get(self.dsn_env)
        os.environ[self.dsn_env] = self.base_url

    def _restore(self) -> None:
        _put(self.dsn_env, self._previous_dsn)

    def _allow(self) -> None:
        """The cluster's socket is inside the test's world: floors and the active sandbox let it be reached."""
        entry = f"{self.socket_dir}/"
        allow: Any = getattr(_native, "floor_allow", None)
        if allow is not None:
            allow(entry)
        handle = hermetic.current()
        if handle is not None:
            try:
                handle.allow_network(entry)
            except hermetic.SandboxError:
                # Its network is off or open: there is nothing to allow.
                pass


def _put(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


@contextmanager
def ephemeral_cluster(dsn_env: str, **kwargs: Any) -> Iterator[EphemeralCluster]:
    """A started cluster for the block. Takes what `EphemeralCluster` takes."""
    cluster = EphemeralCluster(dsn_env, **kwargs)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()
