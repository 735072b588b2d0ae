"""Journals of a run: one scratch file per process while tests run, a named file for each attempt that failed.

The scratch file is mapped once and used again for each test. It is a readable journal at any moment, so after a crash
it holds the last test up to its end; it is then given a proper name by the controller of the same run, or by the next
run that records into the same directory. A lock that dies with its process tells which scratch files are left over.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from mmap import PAGESIZE, mmap
from typing import TYPE_CHECKING, Any

import pytest

from hermetic._pytest import journals

if TYPE_CHECKING:
    from hermetic._pytest.attempt import Attempt
    from hermetic._pytest.plugin import Run

INDEX = "index.json"
SCRATCH = re.compile(r"unfinished-(?P<run>[0-9a-f]+)-[0-9]+\.journal")
FINISHED = re.compile(r".*__[0-9a-f]{10}__(?P<run>[0-9a-f]+)-a(?P<attempt>[0-9]+)\.journal")
NOTHING = bytes(8)
SLUG_LENGTH_MAX = 80
ATTEMPTS_MAX = 10_000
"""More files of one name than this in one run are not a matter of retries."""


class Recorder:
    def __init__(self, run: Run) -> None:
        assert run.settings.record is not None
        self._run = run
        self._directory = run.settings.record
        self.scratch = os.path.join(self._directory, f"unfinished-{run.settings.run}-{os.getpid()}.journal")
        """Where the sandboxes of this process write."""
        self._lock: int | None = None
        self._beginning: mmap | None = None
        """The scratch file's first page."""

    def prepare(self) -> str:
        """Makes the directory and claims the scratch file, before the first sandbox of the process."""
        if self._lock is None:
            os.makedirs(self._directory, exist_ok=True)
            self._lock = os.open(self.scratch, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # An empty file cannot be mapped.
            os.ftruncate(self._lock, PAGESIZE)
            self._beginning = mmap(self._lock, PAGESIZE)
        return self.scratch

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Learns how a phase is judged, after everybody else had a say in it (an expected failure is none)."""
        report = yield
        attempt = self._run.attempt
        if report.failed and attempt is not None and attempt.item is item:
            attempt.is_failed = True
        return report

    def settle(self, attempt: Attempt) -> None:
        """Keeps the journal of a failed attempt, and forgets that of any other."""
        if not attempt.is_failed:
            assert self._beginning is not None
            # Without its first bytes it is no journal: a crash before the next test leaves nothing to take for a
            # failure.
            self._beginning[: len(NOTHING)] = NOTHING
            return
        node_id = attempt.item.nodeid
        number, path = claim(self._directory, node_id, self._run.settings.run)
        attempt.sandbox.keep_journal(path)
        attempt.journal = {"path": path, "attempt": number, "test": node_id, "outcome": "failed"}

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        if self._lock is not None:
            with suppress(FileNotFoundError):
                os.unlink(self.scratch)
            os.close(self._lock)
            self._lock = self._beginning = None
        if self._run.settings.worker is None and os.path.isdir(self._directory):
            with _exclusive(self._directory):
                for journal in recover(self._directory):
                    if journal["run"] == self._run.settings.run:
                        record = self._run.ledger.record(journal["test"])
                        record.journals.append(journal)
                        record.is_failed = True
                write_index(self._directory, self._run.ledger.journals())

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Names what a crashed run left here, so that it is not taken for part of this one."""
        if self._run.settings.worker is None and os.path.isdir(self._directory):
            with _exclusive(self._directory):
                recover(self._directory)


def claim(directory: str, node_id: str, run: str) -> tuple[int, str]:
    """Makes the empty file for the next attempt of a test. Returns the attempt's number and the path."""
    slug = re.sub(r"[^A-Za-z0-9_.-]+", "-", node_id).strip("-")[:SLUG_LENGTH_MAX]
    digest = hashlib.sha1(node_id.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()[:10]
    for attempt in range(1, ATTEMPTS_MAX):
        path = os.path.join(directory, f"{slug}__{digest}__{run}-a{attempt}.journal")
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
            return attempt, path
    raise OSError(f"more than {ATTEMPTS_MAX} journals of {node_id!r} in {directory!r}; remove some")


def recover(directory: str) -> list[dict[str, Any]]:
    """Gives proper names to the scratch files of processes that are no more. Returns what became of them."""
    found: list[dict[str, Any]] = []
    for name in sorted(os.listdir(directory)):
        if (match := SCRATCH.fullmatch(name)) is None:
            continue
        path = os.path.join(directory, name)
        with suppress(FileNotFoundError), open(path, "rb+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            test = journals.test_of(path)
            if test is None:
                os.unlink(path)
                continue
            number, proper = claim(directory, test, match["run"])
            journals.finish(path, proper)
            os.unlink(path)
            found.append({"path": proper, "attempt": number, "test": test, "run": match["run"], "outcome": "crashed"})
    return found


def write_index(directory: str, told: list[dict[str, Any]]) -> None:
    """Writes `index.json`: what it said before of files that are still there, what this run told, and whatever else
    lies there."""
    path = os.path.join(directory, INDEX)
    entries: dict[str, dict[str, Any]] = {}
    with suppress(FileNotFoundError, ValueError, KeyError, TypeError), open(path, encoding="utf-8") as file:
        entries = {entry["file"]: entry for entry in json.load(file)["journals"]}
    outcomes = {os.path.basename(journal["path"]): journal for journal in told}
    listed = []
    for name in sorted(os.listdir(directory)):
        if (match := FINISHED.fullmatch(name)) is None:
            continue
        entry = entries.get(name)
        if entry is None:
            journal = outcomes.get(name) or {
                "test": journals.test_of(os.path.join(directory, name)),
                "outcome": "crashed",
            }
            entry = {"file": name, "test": journal["test"], "attempt": int(match["attempt"]), "run": match["run"]}
            entry["outcome"] = journal["outcome"]
        listed.append(entry)
    if listed:
        _write_atomically(path, json.dumps({"journals": listed}, indent=2) + "\n")


def _write_atomically(path: str, text: str) -> None:
    part = f"{path}.part-{os.getpid()}"
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(part, path)


@contextmanager
def _exclusive(directory: str) -> Iterator[None]:
    """One process at a time looks after a directory; the lock is on the directory itself and leaves no file."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
