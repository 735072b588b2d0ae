"""One run of one test in a sandbox, from the first fixture to the last finalizer.

Between the phases the world is real: reports, log handlers and other plugins work in real time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import hermetic
from hermetic import _native
from hermetic._pytest import findings, forkserver, hypothesis_examples, surroundings
from hermetic._pytest.hypothesis_examples import Examples

if TYPE_CHECKING:
    from hermetic._pytest.markers import Plan

Key = tuple[str, str, str]
"""Kind, message and site: what makes two findings one."""


class Attempt:
    # Most attempts end as they began, so this is written down once and not for each.
    is_failed = False
    is_over = False
    is_covered = False
    """A wider fixture holds a sandbox of its own open on top of this one."""
    journal: dict[str, Any] | None = None
    _is_paused = False
    _added: tuple[dict[str, Any], ...] = ()
    """What the sandboxes of wider fixtures noticed on behalf of this test."""
    _told: frozenset[Key] = frozenset()
    _judged: frozenset[Key] = frozenset()

    def __init__(self, item: pytest.Item, plan: Plan, sandbox: hermetic.Sandbox) -> None:
        """Enters the sandbox."""
        self.item = item
        self.node_id = sandbox._test_id
        self.plan = plan
        self._is_rearranged = plan.is_rearranging
        self.sandbox = sandbox
        self._forkserver = forkserver.number()
        core = sys.modules.get("hypothesis.core")
        if core is not None:
            hypothesis_examples.begin_early()
        self.handle = sandbox.__enter__()
        self.seed = self.handle.seed if plan.options.get("rng") != "off" else None
        """What everything beside the sandbox itself is seeded with; None where randomness is left alone."""
        self._examples = None if core is None or self.seed is None else Examples(core, self.seed)
        if self._examples is not None:
            if self.handle.mode == "record":
                self._examples.record(item)
            elif self.handle.mode == "replay" and self.handle.journal_path is not None:
                self._examples.replay(item, self.handle.journal_path)

    def pause(self) -> None:
        """The world is real until `resume`. Where the test holds a sandbox of its own on top, that one stays."""
        if self._is_paused or self.is_over:
            return
        if not self._is_rearranged:
            # What the test did to the environment shows between the phases, as without a sandbox; exchanging it, and
            # the state of every generator, twice for each test would cost more than all the rest.
            self._is_paused = self.sandbox._step_out()
        elif hermetic.current() is self.handle:
            self._is_paused = True
            self.sandbox.suspend()

    def resume(self) -> None:
        if not self._is_paused or self.is_covered:
            return
        self._is_paused = False
        if self._is_rearranged:
            self.sandbox.resume()
        else:
            _native.real_end()

    def has_virtual_clock(self) -> bool:
        """Whether the test can be told another time right now."""
        return (
            self.handle.mode == "deterministic"
            and self.plan.options.get("clock", "virtual") == "virtual"
            and hermetic.current() is self.handle
        )

    def leave(self) -> None:
        """Leaves the sandbox; what it noticed can still be asked for. If it is covered, it is left when it is
        uncovered."""
        self.is_over = True
        if self._examples is not None:
            self._examples.write(self.sandbox)
            self._examples.restore()
        if self.is_covered:
            return
        if forkserver.MODULE in sys.modules:
            forkserver.end(self._forkserver)
        forgotten = 0
        while (inner := _native.current()) is not None and inner is not self.handle:
            inner._sandbox.__exit__(None, None, None)
            forgotten += 1
        self.sandbox.__exit__(None, None, None)
        if forgotten:
            pytest.fail("hermetic: the test entered a sandbox and did not leave it; use a with block", pytrace=False)

    def uncover(self) -> None:
        self.is_covered = False
        if self.is_over:
            self.sandbox.__exit__(None, None, None)
        else:
            self.resume()

    @contextmanager
    def outlived(self) -> Iterator[None]:
        """The block belongs to something that outlives the test: it finds the world outside the sandbox, and changes
        it."""
        if self._is_paused or hermetic.current() is not self.handle:
            yield
            return
        self._is_paused, was_rearranged = True, self._is_rearranged
        self._is_rearranged = True
        current = os.environ.get(surroundings.CURRENT_TEST)
        self.sandbox.suspend()
        surroundings.apply({surroundings.CURRENT_TEST: current})
        try:
            yield
        finally:
            surroundings.apply({surroundings.CURRENT_TEST: None})
            self.resume()
            self._is_rearranged = was_rearranged

    def add(self, found: list[dict[str, Any]]) -> None:
        """Takes over what the sandbox of a wider fixture noticed on behalf of this test."""
        self._added += tuple(found)

    def news(self) -> list[dict[str, Any]]:
        """The findings that no report has told yet."""
        if not (self._added or self.sandbox._may_have_findings()):
            return []
        found = self._found()
        told, self._told = self._told, self._told.union(found)
        return [finding for key, finding in found.items() if key not in told]

    def verdicts(self) -> list[dict[str, Any]]:
        """The findings since the last call that decide against the test."""
        if not (self._added or self.sandbox._may_have_findings()):
            return []
        found = self._found()
        judged, self._judged = self._judged, self._judged.union(found)
        return [finding for key, finding in found.items() if finding["fatal"] and key not in judged]

    def _found(self) -> dict[Key, dict[str, Any]]:
        """All findings so far; of several that read the same, the first."""
        found: dict[Key, dict[str, Any]] = {}
        for finding in (*map(findings.as_plain, self.sandbox.findings), *self._added):
            found.setdefault((finding["kind"], finding["message"], finding["site"]), finding)
        return found
