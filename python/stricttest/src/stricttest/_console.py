"""The command `stricttest`: asserts that the last run of a project was isolated.

    $ stricttest verify

exits with 0 if the record of the last run says that the floor held from its beginning to its end and no later run of
pytest has left its traces in the project, with 1 if not, and with 2 for a command line that it does not understand.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from stricttest._tables import REQUIRED_KEYS

FILES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
CLOCK_SLACK_SECONDS = 2.0
"""How much older than another file of the same run the record may be."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="stricttest", description="Checks on the isolation floor of a test suite.")
    commands = parser.add_subparsers(dest="command", required=True)
    verify = commands.add_parser("verify", help="exit with 1 unless the last run of the project was isolated")
    verify.add_argument("--root", type=Path, default=Path(), help="the project's root (the working directory)")
    verify.add_argument("--max-age", type=float, default=None, metavar="SECONDS", help="how old the run may be")
    verify.add_argument("--passed", action="store_true", help="the run must have passed as well")
    given = parser.parse_args(arguments)
    problems = verify_root(given.root.resolve(), given.max_age, given.passed)
    for problem in problems:
        print(f"stricttest verify: {problem}", file=sys.stderr)
    if not problems:
        print("stricttest verify: the last run was isolated")
    return 1 if problems else 0


def verify_root(root: Path, max_age: float | None, must_pass: bool) -> list[str]:
    """Everything that speaks against the last run; empty if it was isolated."""
    problems = _configuration_problems(root)
    record = _record(root)
    if record is None:
        return [*problems, f"there is no record of a run in {root}: run pytest with the plugin enabled first"]
    if not record.get("is_isolated"):
        problems.append(f"the last run was not isolated: {record.get('reason', 'no reason was written down')}")
    if max_age is not None and time.time() - record["written"] > max_age:
        problems.append(
            f"the last isolated run is {time.time() - record['written']:.0f} s old; at most {max_age:g} are accepted"
        )
    if must_pass and record.get("exit_status") != 0:
        problems.append(f"the last run ended with status {record.get('exit_status')}")
    cache = root / ".pytest_cache" / "v" / "cache"
    later = [
        path.name for path in sorted(cache.glob("*")) if path.stat().st_mtime > record["written"] + CLOCK_SLACK_SECONDS
    ]
    if later:
        problems.append(
            f"a later run of pytest has changed {', '.join(later)} in {cache} without the floor (-p no:stricttest, "
            f"PYTEST_DISABLE_PLUGIN_AUTOLOAD, or another environment)"
        )
    return problems


def _record(root: Path) -> dict[str, Any] | None:
    from stricttest._places import record_path

    try:
        record = json.loads(record_path(root).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("format") == 1 else None


def _configuration_problems(root: Path) -> list[str]:
    """The marker in the project's configuration: the five keys, so that a machine without the plugin shows in a
    review."""
    texts = [(root / name).read_text(encoding="utf-8", errors="replace") for name in FILES if (root / name).is_file()]
    missing = [key for key in REQUIRED_KEYS if not any(key in text for text in texts)]
    return [f"the project's configuration does not declare {', '.join(missing)}"] if missing else []


if __name__ == "__main__":
    sys.exit(main())
