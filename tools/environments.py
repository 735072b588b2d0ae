"""Makes and repairs the virtual environments under `.venvs/`.

Each environment carries a stamp: a digest of its interpreter, its requirements and the wheel installed in it. A repeat
with the same digest costs nothing, and a new wheel replaces the old one without touching the rest. Which interpreters
exist is left to `interpreters.py`.

    $ python3 tools/environments.py tools -r tools/requirements.txt
    .venvs/tools
    $ python3 tools/environments.py demo -r examples/requirements.txt --wheel build/wheels/hermetic_sandbox-1.0.0-….whl
    .venvs/demo
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venvs"


class EnvironmentFailed(Exception):
    """An environment cannot be made; the text says why and what to do."""


def digest(*parts: str | bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part.encode() if isinstance(part, str) else part)
        whole.update(b"\0")
    return whole.hexdigest()


def stamp_of(folder: Path, name: str) -> str:
    path = folder / name
    return path.read_text() if path.exists() else ""


def run(*words: str | Path) -> None:
    """Runs a command quietly; on failure its output is the error."""
    # A caller's PYTHONPATH or PIP_TARGET would make the environment differ from what its stamp says.
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET")}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=env)
    if done.returncode != 0:
        raise EnvironmentFailed(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")


def create(folder: Path, python: str) -> None:
    """An empty environment, with `venv` where the interpreter has it, else with the tools' virtualenv (Debian)."""
    shutil.rmtree(folder, ignore_errors=True)
    whole = subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True)
    if whole.returncode == 0:
        run(python, "-m", "venv", folder)
    elif (HOME / "tools" / "bin" / "virtualenv").exists():
        run(HOME / "tools" / "bin" / "virtualenv", "--quiet", "--python", python, folder)
    else:
        raise EnvironmentFailed(
            f"{python} has no ensurepip. Install it (Debian: apt-get install python3-venv), then repeat."
        )


def ensure(name: str, python: str, requirements: list[Path], wheel: Path | None = None) -> Path:
    """The folder of environment `name`, made or repaired as needed. Raises `EnvironmentFailed`."""
    folder = HOME / name
    base = digest(python, *(path.read_bytes() for path in requirements))
    if stamp_of(folder, "base.stamp") != base:
        create(folder, python)
        for path in requirements:
            run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", path)
        (folder / "base.stamp").write_text(base)
    if wheel is not None and stamp_of(folder, "wheel.stamp") != (content := digest(wheel.read_bytes())):
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        # Without --no-deps, pip could look for a package of the same name in an index.
        run(*pip, "--force-reinstall", "--no-deps", wheel)
        (folder / "wheel.stamp").write_text(content)
    return folder


def add(folder: Path, project: Path) -> None:
    """Installs a pure Python project of ours, without its dependencies, unless exactly that is there already."""
    sources = sorted(path for path in project.rglob("*") if path.is_file() and path.suffix in (".py", ".toml", ".md"))
    content = digest(*(path.read_bytes() for path in sources), stamp_of(folder, "wheel.stamp"))
    if stamp_of(folder, f"{project.name}.stamp") != content:
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run(*pip, "--force-reinstall", "--no-deps", project)
        (folder / f"{project.name}.stamp").write_text(content)


def main() -> int:
    parser = argparse.ArgumentParser(description="Make or repair one environment under .venvs/.")
    parser.add_argument("name")
    parser.add_argument("-r", dest="requirements", action="append", type=Path, default=[])
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--project", action="append", type=Path, default=[], help="a pure Python project of ours")
    parser.add_argument("--python", default=os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))
    given = parser.parse_args()
    try:
        folder = ensure(given.name, given.python, given.requirements, given.wheel)
        for project in given.project:
            add(folder, project)
    except EnvironmentFailed as error:
        print(error, file=sys.stderr)
        return 1
    print(os.path.relpath(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
