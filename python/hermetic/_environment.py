"""Changes to the environment at entry.

Bringing it back at exit is the business of the native session, which compares and sets only what differs.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from typing import Any

from hermetic import real
from hermetic._errors import OptionError, OptionTypeError

SCRUB_KEEPS = frozenset(
    {
        "COVERAGE_PROCESS_START",
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "PATH",
        "PYTHONHASHSEED",
        "SHELL",
        "TEMP",
        "TERM",
        "TMP",
        "TMPDIR",
        "TZ",
        "USER",
        "VIRTUAL_ENV",
    }
)
"""Harmless, or needed: without the loader's variables the interpreter, or what measures it, may stop working."""
SCRUB_KEEPS_PREFIXES = ("PYTEST_", "PYTHON", "COV_CORE_", "HERMETIC_")
ZONE_FOLDERS = ("/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo")
POSIX_ZONE = re.compile(r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)(?:[+-]?\d{1,3}(?::\d{1,2}){0,2}.*)")


def check_overrides(env: Any) -> dict[str, str | None]:
    """`env=`: names to texts, or to None for variables to remove."""
    if env is None:
        return {}
    if not isinstance(env, Mapping):
        raise OptionTypeError(f"env={env!r}: accepted is a mapping of names to texts, or to None to remove a variable")
    for name, value in env.items():
        if not isinstance(name, str) or not (value is None or isinstance(value, str)):
            raise OptionTypeError(f"env entry {name!r}: {value!r}: accepted are texts, and None to remove a variable")
        if not name or "=" in name or "\0" in name or "\0" in (value or ""):
            raise OptionError(
                f"env entry {name!r}: {value!r}: a name is not empty and has no '='; neither part has a NUL"
            )
    return dict(env)


def check_zone(tz: Any) -> str | None:
    """`tz=`: a zone that this machine knows, or a POSIX rule."""
    if tz is None:
        return None
    accepted = "None (the machine's zone), a zone name like 'Europe/Berlin', or a POSIX rule like 'EST5EDT'"
    if not isinstance(tz, str):
        raise OptionTypeError(f"tz={tz!r}: accepted is {accepted}")
    if tz in ("UTC", "GMT") or POSIX_ZONE.fullmatch(tz) or _zone_file(tz):
        return tz
    raise OptionError(f"tz={tz!r} is no zone that this machine knows; accepted is {accepted}")


def scrub() -> None:
    """Removes every variable outside the short list of harmless ones."""
    for name in list(os.environ):
        if name not in SCRUB_KEEPS and not name.startswith(SCRUB_KEEPS_PREFIXES):
            del os.environ[name]


def override(changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def apply_zone(tz: str | None) -> None:
    """Sets TZ, or leaves it, and makes the C library look at it."""
    if tz is not None:
        os.environ["TZ"] = tz
    # CPython looks at the clock to learn the offsets; that reading is not the test's and has no place in a journal.
    with real.world():
        time.tzset()


def _zone_file(tz: str) -> bool:
    name = tz.removeprefix(":")
    if not name or name.startswith("/") or ".." in name.split("/"):
        return False
    folders = (os.environ["TZDIR"],) if os.environ.get("TZDIR") else ZONE_FOLDERS
    return any(os.path.isfile(os.path.join(folder, name)) for folder in folders)
