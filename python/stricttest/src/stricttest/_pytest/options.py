"""What the project has declared: ini keys to checked settings, and everything that is wrong with them in one error."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hermetic import _native

from stricttest._tables import LIST_KEYS, OPTIONAL_KEYS, REQUIRED_KEYS, SETTING_DOCS
from stricttest.config import Settings

PREFIX = "stricttest_"
OTHERS = ("stricttest_pg_",)
"""Keys of other modules of this distribution, which check them themselves."""

INFORMATIONAL = ("help", "version", "collectonly", "showfixtures", "show_fixtures_per_test", "markers", "cacheshow")
"""Options with which pytest runs no test. Such a command is never refused."""


@dataclass(frozen=True)
class Declared:
    """What the configuration says: `values` are settings without their prefix, as the native library takes them."""

    settings: Settings
    values: dict[str, str | list[str]]
    problems: tuple[str, ...]
    missing: tuple[str, ...]
    block: str
    file: str | None
    overrides: tuple[str, ...]


def declare(parser: pytest.Parser) -> None:
    for key in (*REQUIRED_KEYS, *OPTIONAL_KEYS):
        if key in LIST_KEYS:
            parser.addini(key, SETTING_DOCS[key], type="linelist")
        else:
            parser.addini(key, SETTING_DOCS[key])
    group = parser.getgroup("stricttest")
    group.addoption(
        "--stricttest-report",
        metavar="FORM",
        default="text",
        help="closing report: text, json (one line), or json:FILE",
    )
    group.addoption(
        "--stricttest-debugger",
        metavar="PORT",
        type=int,
        default=None,
        help="let a debugger be reached on the loopback at this port; the closing report says so",
    )


def _entries(config: pytest.Config) -> dict[str, Any]:
    """The configuration as pytest has read it: before pytest 9 plain values, then objects that know where they come
    from."""
    found = getattr(config, "_inicfg", None)
    return dict(found if found is not None else config.inicfg)


def read(config: pytest.Config) -> Declared:
    """Reads the settings. Nothing is raised: whether a problem ends the run depends on what the run is for."""
    entries = _entries(config)
    values: dict[str, str | list[str]] = {}
    is_native = False
    overridden = [text.split("=")[0] for text in _override_texts(config)]
    for key, entry in entries.items():
        if not key.startswith(PREFIX) or key.startswith(OTHERS):
            continue
        value = getattr(entry, "value", entry)
        is_native |= getattr(entry, "mode", "ini") == "toml"
        if getattr(entry, "origin", "file") == "override":
            overridden.append(key)
        values[key.removeprefix(PREFIX)] = [str(one) for one in value] if isinstance(value, list) else str(value)
    file = str(config.inipath) if config.inipath is not None else None
    read_values, problems, missing, block = _native.floor_settings(values, file, is_native)
    return Declared(
        settings=Settings.from_values(read_values),
        values=values,
        problems=tuple(problems),
        missing=tuple(PREFIX + name for name in missing),
        block=block,
        file=file,
        overrides=tuple(dict.fromkeys(key for key in overridden if key.startswith(PREFIX))),
    )


def _override_texts(config: pytest.Config) -> list[str]:
    namespace = getattr(config, "known_args_namespace", None)
    return list(getattr(namespace, "override_ini", None) or ())


def is_informational(config: pytest.Config) -> bool:
    namespace = getattr(config, "known_args_namespace", config.option)
    return any(getattr(namespace, name, False) for name in INFORMATIONAL)


def refuse(declared: Declared) -> None:
    """Raises one `pytest.UsageError` with every problem and a block to paste."""
    lines: list[str] = []
    if declared.overrides:
        keys = ", ".join(declared.overrides)
        lines.append(
            f"{keys}: set with -o on the command line or in PYTEST_ADDOPTS; the floor is declared in the project's "
            f"file alone"
        )
    lines += declared.problems
    if declared.missing:
        where = Path(declared.file).name if declared.file else "pyproject.toml"
        lines.append(f"{where} does not declare {', '.join(declared.missing)}; the most restrictive stance is:")
    if not lines:
        return
    text = "stricttest refuses to run: its settings are incomplete or wrong.\n" + "".join(
        f"  - {line}\n" for line in lines
    )
    if declared.missing:
        text += "\n" + declared.block
    raise pytest.UsageError(text.rstrip("\n"))
