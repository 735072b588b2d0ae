#!/usr/bin/env python3
"""A small service for a command line: notes, kept in a git repository below the user's data directory.

    notes.py add TEXT     commits a note and prints its number
    notes.py list         prints all notes, oldest first
    notes.py publish      pushes them, with the token in NOTES_TOKEN if there is one

It touches what such programs touch: the home directory, git's identity and configuration, a credential, a remote.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REMOTE = "https://notes.example.invalid/mine.git"


def folder() -> Path:
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "notes"


def git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder()), *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"notes: git {words[0]}: {done.stderr.strip()}")
    return done.stdout


def notes() -> list[str]:
    if not (folder() / ".git").exists():
        return []
    return git("log", "--reverse", "--format=%s").splitlines()


def add(text: str) -> None:
    if not (folder() / ".git").exists():
        folder().mkdir(parents=True, exist_ok=True)
        git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message", text)
    print(len(notes()))


def publish() -> None:
    token = os.environ.get("NOTES_TOKEN")
    address = REMOTE.replace("https://", f"https://{token}@") if token else REMOTE
    git("push", "--quiet", address, "HEAD")


def main(words: list[str]) -> None:
    match words:
        case ["add", text]:
            add(text)
        case ["list"]:
            print("\n".join(notes()))
        case ["publish"]:
            publish()
        case _:
            sys.exit("usage: notes.py add TEXT | list | publish")


if __name__ == "__main__":
    main(sys.argv[1:])
