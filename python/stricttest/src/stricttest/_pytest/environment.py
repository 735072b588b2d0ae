"""The session's environment: applies the native plan, keeps what it changed, and gives it all back."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from hermetic import _native

from stricttest._pytest.options import Declared

REAL_TMP = "STRICTTEST_REAL_TMPDIR"
"""Where the machine's temporary files are: throwaway directories of nested runs go there, so that paths stay short."""

GIT_TRACE = "GIT_TRACE2_EVENT"

OWNER = "owner"
"""File of a throwaway directory that names its process."""

RESTART_ROOT = "STRICTTEST_RESTART_ROOT"
RESTART_REMOVED = "STRICTTEST_RESTART_REMOVED"
"""What a run that was started over has to know of its first start: its throwaway directory, names of credentials."""


class Environment:
    """One throwaway directory with a home in it, and an environment that points there."""

    def __init__(self, declared: Declared, invocation_dir: Path) -> None:
        self._first_root = os.environ.pop(RESTART_ROOT, None)
        names = [name for name in os.environ.pop(RESTART_REMOVED, "").split(",") if name]
        self._before = dict(os.environ)
        self._tempdir = tempfile.tempdir
        self._path = sys.path[:]
        self.real_tmp = self._before.get(REAL_TMP) or tempfile.gettempdir()
        if not os.path.isdir(self.real_tmp):
            self.real_tmp = tempfile.gettempdir()
        _sweep(self.real_tmp, declared.settings.tmp_prefix)
        self.root = os.path.realpath(tempfile.mkdtemp(prefix=declared.settings.tmp_prefix, dir=self.real_tmp))
        self.home = os.path.join(self.root, "home")
        self.witness = os.path.join(self.root, "witness")
        self.removed = dict.fromkeys(names, "removed before the run was started over")
        self._apply(declared, invocation_dir)

    def _apply(self, declared: Declared, invocation_dir: Path) -> None:
        changes, folders, files = _native.floor_plan(self._before, self.root, declared.values)
        Path(self.root, OWNER).write_text(_owner(os.getpid()), encoding="utf-8")
        for path, is_private in folders:
            os.makedirs(path, mode=0o700 if is_private else 0o777, exist_ok=True)
        for path, text in files:
            Path(path).write_text(text, encoding="utf-8")
        Path(self.witness).touch()
        for name, value, cause, reason in changes:
            if value is None:
                if os.environ.pop(name, None) is not None and cause == "credential":
                    self.removed[name] = reason
            else:
                os.environ[name] = value
        os.environ[REAL_TMP] = self.real_tmp
        # Every git of every descendant tells what it was asked to do; a push that leaves the machine is found there.
        os.environ[GIT_TRACE] = self.witness
        # Hypothesis keeps its examples where the run was started, and not where its module happened to be imported.
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(invocation_dir / ".hypothesis"))
        tempfile.tempdir = None
        # An empty entry means the working directory of the moment, which moves now.
        sys.path[:] = [str(invocation_dir) if entry == "" else entry for entry in sys.path]

    def temp_before(self, name: str) -> str | None:
        """What a variable for temporary files held before it was moved."""
        return self._before.get(name)

    def restore(self) -> None:
        """The environment is as it was, whatever changed it since; the throwaway directory is gone."""
        for name in [name for name in os.environ if name not in self._before]:
            del os.environ[name]
        for name, value in self._before.items():
            if os.environ.get(name) != value:
                os.environ[name] = value
        tempfile.tempdir = self._tempdir
        if "" in self._path and "" not in sys.path:
            sys.path.insert(self._path.index(""), "")
        with contextlib.suppress(FileNotFoundError):
            os.getcwd()
        for root in (self.root, self._first_root):
            if root is not None:
                shutil.rmtree(root, ignore_errors=True)


def _owner(pid: int | str) -> str:
    """A process, and the name space in which its number means something: containers may share a temporary directory."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = "?"
    return f"{pid} {space}"


def _sweep(folder: str, prefix: str) -> None:
    """Takes away what sessions have left that were killed."""
    for name in os.listdir(folder):
        if not name.startswith(prefix):
            continue
        root = Path(folder, name)
        try:
            told = (root / OWNER).read_text(encoding="utf-8")
            pid = told.split()[0]
        except (OSError, IndexError):
            continue
        if told == _owner(pid) and not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(root, ignore_errors=True)


def _is_throwaway(rootpath: Path) -> bool:
    """Whether a test of a plugin (`pytester`) made the project beside its temporary root; its own files are inside."""
    root = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    return bool(root) and Path(os.path.realpath(root or "")).parent in Path(os.path.realpath(rootpath)).parents


def temp_problems(
    before: Callable[[str], str | None], basetemp: str | None, invocation_dir: Path, rootpath: Path
) -> list[str]:
    """Why temporary files of this run would land in a project or a work tree of git; one sentence for each place."""
    places = [(name, before(name)) for name in ("TMPDIR", "TEMP", "TMP")]
    places.append(("--basetemp", basetemp))
    problems = []
    for name, value in places:
        if not value:
            continue
        trouble = _native.floor_temp_trouble(os.path.realpath(invocation_dir / value), str(rootpath))
        if trouble is not None:
            kind, top = trouble
            if kind == "project" and _is_throwaway(rootpath):
                continue
            what = "the project" if kind == "project" else "the git work tree"
            problems.append(f"{name}={value} lies inside {what} {top}")
    return problems
