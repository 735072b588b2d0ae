"""`fs="isolate"`: working directory, home and temporary files in a place of their own, the same path for the same seed.

It is a real directory, so it is no barrier: absolute paths still lead out. Writes that do so are reported in `outside`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hermetic import _native
from hermetic._errors import SandboxError

SUFFIXES_MAX = 1000
"""More processes than this with one seed at one time are not a matter of parallel tests."""
OUTSIDE_MAX = 100
"""So many paths are remembered; a test that writes to more has made its point."""
XDG = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_CACHE_HOME": ".cache",
    "XDG_STATE_HOME": ".local/state",
}
WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
IGNORED = ("/dev/", "/proc/", "/sys/")
PATH_EVENTS = frozenset({"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate"})

_watched: list[FileSystem] = []
_is_hooked = False


class FileSystem:
    """The isolated directories of a sandbox: `root`, and `cwd`, `home`, `tmp` below it."""

    def __init__(self, root: str, lock: int) -> None:
        self.root = Path(root)
        self.cwd = self.root / "cwd"
        self.home = self.root / "home"
        self.tmp = self.root / "tmp"
        self.outside: list[str] = []
        """Paths outside `root` that were opened for writing, made or removed; each once."""
        self._lock: int | None = lock
        self._is_entered = False
        self._directory: str | None = None
        self._inside: str | None = None
        self._temporary: str | None = None

    def __repr__(self) -> str:
        return f"FileSystem(root={str(self.root)!r})"

    def _enter(self, chdir: bool, keep: frozenset[str]) -> None:
        """Points environment and process at the directories. Names in `keep` were chosen by the caller."""
        home = str(self.home)
        values = {
            "TMPDIR": str(self.tmp),
            "TEMP": str(self.tmp),
            "TMP": str(self.tmp),
            "HOME": home,
            "USERPROFILE": home,
        }
        if "HOME" in keep and os.environ.get("HOME"):
            home = os.environ["HOME"]
        values.update({name: os.path.join(home, below) for name, below in XDG.items()})
        os.environ.update({name: value for name, value in values.items() if name not in keep})
        self._is_entered = True
        self._temporary, tempfile.tempdir = tempfile.tempdir, os.environ.get("TMPDIR", str(self.tmp))
        _native.set_home(home)
        if chdir:
            self._directory = os.getcwd()
            os.chdir(self.cwd)
        _watch(self)

    def _suspend(self) -> None:
        """Back to the outer directories, until `_resume`."""
        _native.set_home(None)
        self._temporary, tempfile.tempdir = tempfile.tempdir, self._temporary
        if self._directory is not None:
            with suppress(FileNotFoundError):
                self._inside = os.getcwd()
            os.chdir(self._directory)
        if self in _watched:
            _watched.remove(self)

    def _resume(self) -> None:
        _native.set_home(os.environ.get("HOME", str(self.home)))
        self._temporary, tempfile.tempdir = tempfile.tempdir, self._temporary
        if self._directory is not None:
            self._directory = os.getcwd()
            os.chdir(self._inside or self.cwd)
        _watched.append(self)

    def _leave(self, is_suspended: bool = False) -> None:
        """Back out, and removes the directories."""
        if self in _watched:
            _watched.remove(self)
        if self._is_entered and not is_suspended:
            tempfile.tempdir = self._temporary
            _native.set_home(None)
        if self._directory is not None and not is_suspended:
            try:
                os.chdir(self._directory)
            except OSError:
                # The directory that the test started in is gone; somewhere that exists is better than nowhere.
                os.chdir(os.path.expanduser("~") if os.path.isdir(os.path.expanduser("~")) else "/")
        shutil.rmtree(self.root, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def create(seed: Any, test: str | None) -> FileSystem:
    """Makes the directories for a seed.

    A lock says that they are in use; another sandbox then takes the next suffix.
    """
    # stricttest moves the temporary directory to another place in each run; a seed's path must not move with it.
    machine = os.environ.get("STRICTTEST_REAL_TMPDIR") or tempfile.gettempdir()
    base = os.path.join(os.path.realpath(machine), f"hermetic-{os.getuid()}")
    try:
        os.makedirs(base, mode=0o700, exist_ok=True)
        if os.lstat(base).st_uid != os.getuid() or not os.path.isdir(base) or os.path.islink(base):
            raise SandboxError(
                f"fs='isolate': {base!r} belongs to somebody else; remove it, or set TMPDIR to another directory"
            )
        digest = hashlib.sha256(f"hermetic:{seed}:{test or ''}".encode()).hexdigest()[:12]
        for number in range(SUFFIXES_MAX):
            name = digest if number == 0 else f"{digest}-{number}"
            lock = _try_lock(os.path.join(base, f"{name}.lock"))
            if lock is not None:
                return _fill(os.path.join(base, name), lock)
    except OSError as error:
        raise SandboxError(f"fs='isolate': cannot make a directory below {base!r}: {error}") from error
    raise SandboxError(f"fs='isolate': {SUFFIXES_MAX} sandboxes with seed {seed!r} are active below {base!r}")


def _try_lock(path: str) -> int | None:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _fill(root: str, lock: int) -> FileSystem:
    # What lies here is left from a process that died: its lock is free.
    shutil.rmtree(root, ignore_errors=True)
    made = FileSystem(root, lock)
    try:
        os.mkdir(root, 0o700)
        for folder in (made.cwd, made.home, made.tmp):
            folder.mkdir(mode=0o700)
    except BaseException:
        os.close(lock)
        raise
    return made


def _watch(files: FileSystem) -> None:
    global _is_hooked
    if not _is_hooked:
        # Audit hooks cannot be removed: this one is added by the first isolated sandbox only, and idle without one.
        sys.addaudithook(_hook)
        _is_hooked = True
    _watched.append(files)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watched:
        return
    if event == "open":
        path, mode, flags = arguments
        writes = flags & WRITE_FLAGS if isinstance(flags, int) else any(sign in (mode or "") for sign in "wax+")
        if writes:
            _note(path)
    elif event in PATH_EVENTS:
        for path in arguments[: 2 if event == "os.rename" else 1]:
            _note(path)


def _note(path: Any) -> None:
    if not isinstance(path, (str, bytes)):
        return
    files = _watched[-1]
    try:
        full = os.path.abspath(os.fsdecode(path))
    except (OSError, ValueError):
        return
    root = str(files.root)
    if full == root or full.startswith((root + "/", *IGNORED)) or "/__pycache__" in full:
        return
    if full not in files.outside and len(files.outside) < OUTSIDE_MAX:
        files.outside.append(full)
