"""One session's floor, from the first moment at which pytest lets us in to the last."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from hermetic import _native

from stricttest import _guard
from stricttest._pytest import findings, helpers, options
from stricttest._pytest.directories import Directories
from stricttest._pytest.environment import Environment
from stricttest._pytest.findings import Entry
from stricttest._pytest.leaks import Variables
from stricttest._pytest.witness import Witness
from stricttest.socketguard import Policy

KEY = pytest.StashKey["Session"]()

_sessions: list[Session] = []
"""Sessions that are open in this process: pytest can run inside pytest."""


class Session:
    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.started = time.time()
        self.declared = options.read(config)
        self.settings = self.declared.settings
        self.environment = Environment(self.declared, config.invocation_params.dir)
        self.policy = Policy.from_settings(self.settings)
        self.helpers: list[str] = []
        self.unowned: list[Entry] = []
        # Sandboxes of hermetic with directories of their own have them beside ours, at the same place in every run.
        self._watched = [self.environment.root, os.path.join(self.environment.real_tmp, f"hermetic-{os.getuid()}")]
        self._is_watching = False
        self._ident = _guard.lay(
            self.policy,
            home=self.environment.home,
            spool=self.environment.witness,
            root=str(config.rootpath),
            session=True,
        )
        self.directories = Directories(config, os.path.join(self.environment.root, "cwd"), self.settings.import_cwd)
        self.witness = Witness(self.environment.witness)
        self.variables = Variables()
        _sessions.append(self)

    @property
    def is_worker(self) -> bool:
        return hasattr(self.config, "workerinput")

    def allow_helpers(self) -> None:
        self.helpers = helpers.allow(self.config, self.environment.root)

    def use_basetemp(self) -> None:
        """pytest's temporary directory stays where the machine keeps such things, so that it can be looked at
        afterwards."""
        factory: Any = getattr(self.config, "_tmp_path_factory", None)
        if factory is None:
            return
        import tempfile

        moved, tempfile.tempdir = tempfile.tempdir, self.environment.real_tmp
        try:
            base = factory.getbasetemp()
        finally:
            tempfile.tempdir = moved
        self._watched += [str(base), os.path.realpath(base)]
        self.directories.use_base(base)

    def watch(self, is_on: bool) -> None:
        """Files that are written outside of the session's directories are noted while a test runs."""
        self._is_watching = is_on
        if is_on:
            _native.floor_watch(self._watched)
        else:
            _native.floor_watch(None)

    def take(self) -> list[Entry]:
        """What was noticed since the last call."""
        entries = self.witness.take()
        if _native.floor_pending():
            entries += findings.take_native()
        if entries:
            findings.settle_expected(entries)
        return entries

    def take_unowned(self) -> None:
        """What was noticed while no test ran."""
        self.unowned += self.take()

    def end(self) -> None:
        """Gives everything back; once."""
        if self not in _sessions:
            return
        self.watch(False)
        _sessions.remove(self)
        _guard.take_away(self._ident)
        self.witness.close()
        self.environment.restore()
        if _sessions and _sessions[-1]._is_watching:
            _sessions[-1].watch(True)


def begin(config: pytest.Config) -> Session:
    """Opens the session of a configuration, once; it is closed when pytest is done with the configuration."""
    found = config.stash.get(KEY, None)
    if found is None:
        found = config.stash[KEY] = Session(config)
        config.add_cleanup(found.end)
    return found
