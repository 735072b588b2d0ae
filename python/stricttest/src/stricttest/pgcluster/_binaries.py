"""Which server there is: the programs of one release, from one directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hermetic import _native

from ._errors import translated

BINARY_SEARCH_DIRS: tuple[str, ...] = tuple(_native.pg_tables()[0])
"""Where programs are looked for after `PATH`. A `*` stands for a release; the newest, by number, comes first."""

REQUIRED_BINARIES = ("initdb", "pg_ctl", "psql")
"""The programs that [`Binaries`] names. Only the server's own are run; `psql` runs the files of a seed."""


@dataclass(frozen=True)
class Binaries:
    """The programs of one release."""

    initdb: Path
    pg_ctl: Path
    psql: Path

    @property
    def bindir(self) -> Path:
        """The directory that `initdb` was found in."""
        return self.initdb.parent


def find_binaries(extra_dirs: Sequence[str | Path] = ()) -> Binaries:
    """Finds a release: in the extra directories, in their order; then on `PATH`; then in the usual places.

    Raises `PostgresUnavailable` with every place that was looked in and the package to install.
    """
    with translated():
        initdb, postgres, pg_ctl, psql = _native.pg_find_binaries(
            [Path(directory) for directory in extra_dirs], os.environ.get("PATH"), list(BINARY_SEARCH_DIRS)
        )
    # Neither is needed to run a cluster; where the release came without, this is where it would be.
    return Binaries(initdb, pg_ctl or postgres.with_name("pg_ctl"), psql or postgres.with_name("psql"))


def programs(binaries: Binaries | None) -> tuple[Path, Path, Path | None, Path | None]:
    """What the launcher is told: `initdb`, `postgres`, and the others where they exist."""
    if binaries is None:
        with translated():
            return _native.pg_find_binaries([], os.environ.get("PATH"), list(BINARY_SEARCH_DIRS))
    real = Path(binaries.initdb).resolve()
    psql = Path(binaries.psql)
    return Path(binaries.initdb), real.with_name("postgres"), Path(binaries.pg_ctl), psql if psql.is_file() else None
