"""Finds every CPython on this machine that the tests are run on.

Looks at `python3` and `python3.N` on PATH, in the usual system folders, and at pyenv's versions; starts each one,
because a name on PATH can be a shim that runs nothing; and keeps CPython 3.10 or newer. Making an environment of one is
left to `environments.py`.

    $ python3 tools/interpreters.py
    3.12.1    /usr/bin/python3.12
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

OLDEST = (3, 10)
MINORS = range(OLDEST[1], 20)
SYSTEM_FOLDERS = ("/usr/bin", "/usr/local/bin")

# `_base_executable` names the interpreter behind a virtual environment, so one of them is never found twice.
PROBE = """
import json, os, platform, sys, sysconfig
print(json.dumps({
    "path": os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
    "version": list(sys.version_info[:3]),
    "release": platform.python_version(),
    "cpython": sys.implementation.name == "cpython",
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
}))
"""


@dataclass(frozen=True)
class Interpreter:
    """One CPython: `label` is its release, made unique where two builds share one, and names its environment."""

    label: str
    path: str
    version: tuple[int, int, int]


def candidates() -> list[str]:
    names = ["python3", *(f"python3.{minor}" for minor in MINORS)]
    found = [path for name in names if (path := shutil.which(name))]
    found += [f"{folder}/{name}" for folder in SYSTEM_FOLDERS for name in names]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found += sorted(str(path) for path in pyenv.glob("versions/*/bin/python3"))
    return [path for path in dict.fromkeys(found) if os.access(path, os.X_OK)]


def probe(path: str) -> dict | None:
    """What the interpreter says of itself, or None where nothing runs under that name."""
    try:
        done = subprocess.run([path, "-I", "-c", PROBE], capture_output=True, text=True, timeout=30, check=True)
        return json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def discover() -> list[Interpreter]:
    """Every usable interpreter, oldest first. Free-threaded builds are left out: Hermetic refuses them for now."""
    facts = {}
    for answer in map(probe, candidates()):
        if answer and answer["cpython"] and not answer["free_threaded"] and tuple(answer["version"]) >= OLDEST:
            facts.setdefault(answer["path"], answer)
    found: list[Interpreter] = []
    for path, answer in sorted(facts.items(), key=lambda item: (item[1]["version"], item[0])):
        same = sum(other.label.split("-")[0] == answer["release"] for other in found)
        label = answer["release"] + (f"-{same + 1}" if same else "")
        found.append(Interpreter(label, path, tuple(answer["version"])))
    return found


def main() -> None:
    for interpreter in discover():
        print(f"{interpreter.label:<9} {interpreter.path}")


if __name__ == "__main__":
    main()
