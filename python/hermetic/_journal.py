"""What a journal says about a run besides its events, settings and fingerprint, and how far they fit a replay."""

from __future__ import annotations

import json
import locale
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hermetic import real
from hermetic._errors import ReplayMismatch
from hermetic._settings import native
from hermetic._values import Nanoseconds

if TYPE_CHECKING:
    from hermetic._sandbox import Given

REVISION_TIMEOUT_SECONDS = 2.0
REPLAYED = (
    "clock",
    "rng",
    "tick",
    "now",
    "network",
    "allow_loopback",
    "allow_unix",
    "fs",
    "chdir",
    "scrub_env",
    "order",
    "tz",
    "monotonic",
    "schedule",
)
"""Options that the journal's own values replace."""
COMPARED = {
    "python": "Python version",
    "implementation": "Python implementation",
    "platform": "platform",
    "machine": "machine",
    "tz_env": "TZ",
    "tzname": "time zone",
    "locale": "locale",
    "hash_seed_env": "PYTHONHASHSEED",
    "cpu_count": "CPU count",
    "git_revision": "git revision",
}
"""Facts of the fingerprint that replay compares; the rest is for readers."""

_facts: dict[str, Any] | None = None
_revisions: dict[str, str | None] = {}


def frame(given: Given) -> tuple[str, str]:
    """What the head of a journal says whatever the test and the moment, as JSON: the members of `config` that the
    options decide, and those that tell of machine and environment. Native code asks for them again where zone, locale
    or environment have changed."""
    pinned = [name for name, is_pinned in (("now", given.is_now_pinned), ("seed", given.is_seed_pinned)) if is_pinned]
    chosen = {name: value for name, value in given.settings.config.items() if name != "now"}
    chosen.update(fs=given.fs, chdir=given.chdir, scrub_env=given.scrub_env, tz=given.tz, pinned=pinned)
    root = given.root or ""
    machine = {"fingerprint": fingerprint(root), "root": root, "env": sorted(os.environ)}
    return _members(chosen), _members(machine)


def _members(values: dict[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":"))[1:-1]


def fingerprint(root: str) -> dict[str, Any]:
    """Facts about machine and interpreter. Those that cannot change while the process runs are collected once."""
    global _facts
    if _facts is None:
        uname = platform.uname()
        _facts = {
            "python": platform.python_version(),
            "implementation": platform.python_implementation(),
            "platform": f"{uname.system}-{uname.release}",
            "machine": uname.machine,
            "hostname": uname.node,
            "hash_seed_env": os.environ.get("PYTHONHASHSEED"),
            "hash_randomization": bool(sys.flags.hash_randomization),
            "cpu_count": os.cpu_count(),
        }
    return {
        **_facts,
        "tz_env": os.environ.get("TZ"),
        "tzname": list(time.tzname),
        "locale": _locale(),
        "git_revision": revision(root),
    }


def revision(folder: str) -> str | None:
    """The git revision of a folder, asked once; None without git or outside a repository."""
    if folder not in _revisions:
        try:
            # A sandbox that is active must not stamp the child, and git must not wait for a user.
            with real.world():
                answer = subprocess.run(
                    ["git", "rev-parse", "HEAD"],
                    cwd=folder or None,
                    capture_output=True,
                    text=True,
                    timeout=REVISION_TIMEOUT_SECONDS,
                    check=False,
                    env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
                )
            _revisions[folder] = answer.stdout.strip() or None if answer.returncode == 0 else None
        except (OSError, subprocess.SubprocessError):
            _revisions[folder] = None
    return _revisions[folder]


class Recorded:
    """A journal to replay."""

    __slots__ = ("config", "head", "path", "raw")

    def __init__(self, path: str) -> None:
        text, raw, _ = native().read_journal(path)
        self.path = path
        self.raw: bytes = raw
        self.head: dict[str, Any] = json.loads(text)
        config = self.head.get("config")
        if not isinstance(config, dict):
            raise ReplayMismatch(f"the journal {path} has no configuration, so it cannot be replayed; it can be shown")
        self.config: dict[str, Any] = config

    @property
    def seed(self) -> int | None:
        """The seed that the recording ran with; None where it had none."""
        value = self.config.get("seed")
        return None if value is None else int(value)

    def options(self) -> dict[str, Any]:
        """The recorded settings that replace the caller's."""
        options = {name: self.config[name] for name in REPLAYED if name in self.config}
        if isinstance(options.get("now"), int):
            options["now"] = Nanoseconds(options["now"])
        return options

    def warnings(self, root: str, test: str | None) -> Iterator[str]:
        """Everything that makes the replay less than faithful, one sentence each."""
        then = self.head.get("fingerprint") or {}
        now = fingerprint(root)
        for name, words in COMPARED.items():
            if then.get(name) is not None and then[name] != now.get(name):
                yield f"{words} differs: recorded with {then[name]!r}, replayed with {now.get(name)!r}"
        if then.get("hash_randomization") and then.get("hash_seed_env") in (None, "random"):
            yield "the recording ran with an unknown hash seed: set and dict orders that depend on it do not replay"
        network = self.config.get("network", "block")
        if network != "block":
            allowed = ", ".join(network) if isinstance(network, list) else "everything"
            yield f"the recording allowed network access ({allowed}): its traffic is not in the journal"
        if self.config.get("clock") == "off":
            yield "the recording left the clock real: its readings are not in the journal"
        for name in native().missing_generators(self.raw):
            yield f"the recording drew from the generator {name}, which is not there now: what it gives does not replay"
        recorded = self.head.get("test")
        if recorded and test and recorded != test:
            yield f"the journal was recorded for another test: {recorded}"


def running_test() -> str | None:
    """The node id that pytest is running, if it says so."""
    text = os.environ.get("PYTEST_CURRENT_TEST")
    return text.rpartition(" (")[0] if text else None


def _locale() -> str | None:
    try:
        return locale.setlocale(locale.LC_CTYPE, None)
    except locale.Error:
        return None
