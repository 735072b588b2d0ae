"""Command line options and ini keys: what the user may say, read once into `Settings` when pytest is configured.

Everything is checked here, so that a wrong value ends the run with exit code 4 before a test has run. What a single
test says about itself is read by `markers`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import pytest

SEED_LIMIT = 2**64
"""Base seeds are below this: a test's seed is eight bytes of a hash, XOR the base seed."""


@dataclass(frozen=True)
class Settings:
    """What this run was told. Paths are absolute."""

    base_seed: int
    run: str
    """Names this run in journal names; the same in all its worker processes."""
    sandbox_all: bool = False
    defaults: dict[str, Any] = field(default_factory=dict)
    """Sandbox options for every test, which any marker may override."""
    record: str | None = None
    replay: str | None = None
    worker: str | None = None
    """Name of this xdist worker; None in the process that the user started."""


def declare(parser: pytest.Parser) -> None:
    """Adds the options and ini keys. Part of ``pytest --help``, so the texts are for users."""
    group = parser.getgroup("hermetic", "hermetic: deterministic, isolated, replayable tests")
    group.addoption(
        "--hermetic-all",
        action="store_true",
        default=False,
        help="run every test in a sandbox (a test leaves with the marker hermetic(off=True))",
    )
    group.addoption(
        "--hermetic-seed",
        metavar="INT",
        help="base seed, from which each test's seed is derived (default: a fresh one)",
    )
    group.addoption(
        "--hermetic-record", metavar="DIR", help="write a journal for each failing attempt of a sandboxed test into DIR"
    )
    group.addoption(
        "--hermetic-replay",
        metavar="PATH",
        help="run the test that the journal PATH was recorded from, with its values",
    )
    group.addoption(
        "--hermetic-strict-network",
        action="store_true",
        default=False,
        help="a refused connection or look-up fails the test, even where the code swallowed the error",
    )
    group.addoption("--hermetic-tz", metavar="ZONE", help="time zone of sandboxed tests (default: the machine's)")
    group.addoption(
        "--hermetic-schedule",
        metavar="CHOICE",
        help="cooperative: threads run until they wait (default); seeded: they are also interrupted, by the seed",
    )
    parser.addini("hermetic_all", "as --hermetic-all", type="bool", default=False)
    parser.addini("hermetic_seed", "as --hermetic-seed", default="")
    parser.addini("hermetic_record", "as --hermetic-record, relative to the root directory", default="")
    parser.addini("hermetic_strict_network", "as --hermetic-strict-network", type="bool", default=False)
    parser.addini("hermetic_tz", "as --hermetic-tz", default="")
    parser.addini("hermetic_schedule", "as --hermetic-schedule", default="")


def read(config: pytest.Config) -> Settings:
    """The settings of this run.

    Raises `pytest.UsageError` for a value that cannot be used, naming option, value and what is accepted.
    """
    inherited = getattr(config, "workerinput", {})
    if "hermetic_run" in inherited:
        record, replay = inherited["hermetic_record"], inherited["hermetic_replay"]
    else:
        record, replay = _paths(config)
    return Settings(
        base_seed=inherited.get("hermetic_base_seed", _seed(config)),
        run=inherited.get("hermetic_run") or os.urandom(4).hex(),
        sandbox_all=config.getoption("hermetic_all") or config.getini("hermetic_all"),
        defaults=_defaults(config),
        record=record,
        replay=replay,
        worker=inherited.get("workerid"),
    )


def _given(config: pytest.Config, name: str) -> tuple[str, str | None]:
    """How the user spelled the setting, and its value: the option first, else the ini key, else None."""
    value = config.getoption(f"hermetic_{name}")
    if value is not None:
        return f"--hermetic-{name}", value
    return f"hermetic_{name}", config.getini(f"hermetic_{name}") or None


def _seed(config: pytest.Config) -> int:
    spelled, text = _given(config, "seed")
    if text is None:
        return int.from_bytes(os.urandom(4), "big")
    try:
        seed = int(text)
    except ValueError:
        raise pytest.UsageError(f"{spelled}: {text!r} is not a seed; give an integer, as in {spelled}=42") from None
    if not 0 <= seed < SEED_LIMIT:
        raise pytest.UsageError(f"{spelled}: {seed} is out of range; give an integer from 0 to {SEED_LIMIT - 1}")
    return seed


def _paths(config: pytest.Config) -> tuple[str | None, str | None]:
    """Where to record, what to replay. A project that records by its ini file can still replay."""
    here = str(config.invocation_params.dir)
    record, replay = config.getoption("hermetic_record"), config.getoption("hermetic_replay")
    for name, value in (("record", record), ("replay", replay)):
        if value == "":
            raise pytest.UsageError(f"--hermetic-{name}: the path is empty; give a path")
    if replay is not None:
        if record is not None:
            raise pytest.UsageError(
                "--hermetic-record and --hermetic-replay exclude each other: a run either writes journals or is fed one"
            )
        return None, os.path.join(here, replay)
    if record is None and (by_ini := config.getini("hermetic_record")):
        here, record = str(config.rootpath), by_ini
    if record is None:
        return None, None
    record = os.path.normpath(os.path.join(here, record))
    if os.path.lexists(record) and not os.path.isdir(record):
        raise pytest.UsageError(f"--hermetic-record: {record!r} is not a directory; give one, it is made when needed")
    return record, None


def _defaults(config: pytest.Config) -> dict[str, Any]:
    defaults: dict[str, Any] = {}
    if config.getoption("hermetic_strict_network") or config.getini("hermetic_strict_network"):
        defaults["network_strict"] = True
    for option in ("tz", "schedule"):
        spelled, value = _given(config, option)
        if value is None:
            continue
        from hermetic import SandboxError, sandbox

        one: dict[str, Any] = {option: value}
        try:
            sandbox(**one)
        except (SandboxError, ValueError) as error:
            raise pytest.UsageError(f"{spelled}: {error}") from None
        defaults.update(one)
    return defaults
