"""Starts a run over inside the throwaway environment, where something was imported before the floor.

pytest imports what `-p NAME` names before the plugins of the environment, this one among them, so such a module has
seen the real home and the credentials. Where the process is pytest's own and nothing else lives in it, it is replaced
by itself (same process id, same arguments) with the environment that the floor has made; the module then sees nothing
else. Not needed, and not done, where the project's `addopts` has `-p stricttest` in front.
"""

from __future__ import annotations

import os
import shlex
import sys
import threading
from collections.abc import Iterable, Iterator

import pytest

from stricttest._pytest import options
from stricttest._pytest.environment import RESTART_REMOVED, RESTART_ROOT, temp_problems
from stricttest._pytest.session import Session

RESTARTED = "STRICTTEST_RESTARTED"
"""Holds the id of the process that was restarted, so that it happens once."""


def if_needed(config: pytest.Config, session: Session) -> None:
    """Does not return where the run is started over."""
    if os.environ.pop(RESTARTED, None) == str(os.getpid()) or not _seen(config):
        return
    if session.is_worker or options.is_informational(config) or not _is_pytest_alone():
        return
    environment = session.environment
    if temp_problems(environment.temp_before, None, config.invocation_params.dir, config.rootpath):
        return
    variables = dict(os.environ)
    variables |= {
        RESTARTED: str(os.getpid()),
        RESTART_ROOT: environment.root,
        RESTART_REMOVED: ",".join(environment.removed),
    }
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], variables)


def _seen(config: pytest.Config) -> list[str]:
    """Modules that were named by -p and imported before the floor was there."""
    words = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *map(str, config.invocation_params.args)]
    return [name for name in _named(words) if name in sys.modules and not name.startswith(("_pytest", "stricttest"))]


def _named(words: Iterable[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        name = next(rest, "") if word == "-p" else word[2:] if word.startswith("-p") else ""
        if name and not name.startswith("no:"):
            yield name


def _is_pytest_alone() -> bool:
    """Whether the process was started as pytest, and nobody watches it or shares it."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    is_module = getattr(spec, "name", None) == "pytest.__main__"
    is_script = os.path.basename(sys.argv[0]) in ("pytest", "py.test")
    return (is_module or is_script) and not _is_watched() and threading.active_count() == 1


def _is_watched() -> bool:
    """Whether a debugger, a profiler or coverage follows this process; what they have gathered would be lost."""
    # Coverage need not trace by these two, and being imported does not mean that it measures.
    coverage = getattr(sys.modules.get("coverage"), "Coverage", None)
    is_measured = coverage is not None and coverage.current() is not None
    return is_measured or sys.gettrace() is not None or sys.getprofile() is not None
