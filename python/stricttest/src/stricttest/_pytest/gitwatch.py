"""Watches git itself: every git of every descendant writes down its command line, and a push that would have left is
found.

The audit hook sees programs that this process starts; a push by a child of a child is only seen here. Nothing has
left in either case: the lockdown refuses the transport.
"""

from __future__ import annotations

import json
import os
from typing import Any

from hermetic import _native

COMMANDS = ("push", "send-pack", "http-push")
LEN_MAX = 64 * 1024 * 1024


class GitWatch:
    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._seen = 0
        self._rest = b""
        self._starts: dict[str, list[str]] = {}
        self._trees: dict[str, str] = {}

    def close(self) -> None:
        os.close(self._fd)

    def look(self) -> None:
        """Notes what git was asked to push since the last look. Costs one system call where no git ran."""
        size = os.fstat(self._fd).st_size
        if size == self._seen or self._seen > LEN_MAX:
            return
        text = self._rest + os.pread(self._fd, size - self._seen, self._seen)
        self._seen = size
        *lines, self._rest = text.split(b"\n")
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            self._event(event)

    def _event(self, event: dict[str, Any]) -> None:
        ident, kind = str(event.get("sid")), event.get("event")
        if kind == "start":
            words = [str(word) for word in event.get("argv", ())]
            if any(word in COMMANDS for word in words):
                self._starts[ident] = words
        elif kind == "def_repo" and ident in self._starts:
            self._trees[ident] = str(event.get("worktree", ""))
        elif kind in ("exit", "atexit") and ident in self._starts:
            self._judge(self._starts.pop(ident), self._trees.pop(ident, ""))

    def _judge(self, words: list[str], tree: str) -> None:
        command = next(at for at, word in enumerate(words) if word in COMMANDS)
        # The options before the command led to this work tree; where they said more than that, the whole line tells it.
        variables = dict(os.environ)
        found = _native.floor_push(["git", *words[command:]], tree or os.sep, variables)
        found = found or _native.floor_push(words, tree or os.getcwd(), variables)
        if found is None:
            return
        _, remote, url, _ = found
        where = f" in {tree}" if tree else ""
        _native.floor_note_process(
            url,
            f"stricttest saw a program that a test had started try a git push to another machine{where}\n"
            f"  command: {' '.join(words)}\n  remote: {remote}\n  url: {url}\n"
            "The transport was locked, so nothing left.",
            "",
        )
