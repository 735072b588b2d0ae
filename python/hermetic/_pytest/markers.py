"""What the markers on a test, its class, its module and its packages say together: a `Plan`.

The nearest marker wins for each option, and markers further out fill in the rest. Most tests have no marker of their
own and share the plan of the node above, so a plan is worked out once per marked node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from hermetic._pytest.surroundings import REARRANGING

MARKER = "hermetic"
RESERVED = ("record", "replay", "test_id")
"""Sandbox options that belong to the whole run and not to one test."""


class Plan(NamedTuple):
    """How to run the tests below a node."""

    is_marked: bool
    """A marker asks for a sandbox."""
    is_off: bool
    options: dict[str, Any]
    error: str | None
    """Why the markers cannot be used; the tests fail with it."""
    is_rearranging: bool
    """The options change environment, zone or directory."""


class Plans:
    """Plans by node. `defaults` are options for every test, which any marker may override."""

    def __init__(self, defaults: dict[str, Any]) -> None:
        self._top = _plan(False, False, dict(defaults), None)
        self._by_node: dict[Any, Plan] = {}

    def of(self, node: Any) -> Plan:
        """The plan of an item or collector."""
        if node is None:
            return self._top
        plan = self._by_node.get(node)
        if plan is None:
            plan = self._by_node[node] = _merged(self.of(node.parent), list(_own_marks(node)))
        return plan

    def of_test(self, item: pytest.Item) -> Plan:
        """As `of`. Most tests have no marker of ours, and are not worth an entry of their own."""
        for mark in item.own_markers:
            if mark.name == MARKER:
                return self.of(item)
        return self.of(item.parent)


def _merged(outer: Plan, marks: list[pytest.Mark]) -> Plan:
    """`outer`, overridden by `marks`, nearest first."""
    if not marks:
        return outer
    options = dict(outer.options)
    is_off, error = outer.is_off, outer.error
    for mark in reversed(marks):
        error = _complaint(mark) or error
        own = dict(mark.kwargs)
        is_off = bool(own.pop("off", is_off))
        options.update(own)
    return _plan(True, is_off, options, error)


def _plan(is_marked: bool, is_off: bool, options: dict[str, Any], error: str | None) -> Plan:
    return Plan(is_marked, is_off, options, error, not REARRANGING.isdisjoint(options))


def _complaint(mark: pytest.Mark) -> str | None:
    if mark.args:
        values = ", ".join(map(repr, mark.args))
        return f"marker hermetic({values}): options are given by name, as in hermetic(seed=7)"
    for name in RESERVED:
        if name in mark.kwargs:
            hint = "use --hermetic-record or --hermetic-replay" if name != "test_id" else "pytest's node id is used"
            return f"marker hermetic({name}={mark.kwargs[name]!r}): {name} belongs to the whole run; {hint}"
    off = mark.kwargs.get("off", False)
    if not isinstance(off, bool):
        return f"marker hermetic(off={off!r}): off is True or False"
    return None


def _own_marks(node: Any) -> Iterator[pytest.Mark]:
    """The node's own markers of our name, nearest first."""
    marks = [mark for mark in node.own_markers if mark.name == MARKER]
    if len(marks) < 2:
        yield from marks
        return
    # A parameter set is nearer than the function it is given to, and a class nearer than those it inherits from; pytest
    # lists the former last and the latter first.
    parameters = [mark for mark in getattr(getattr(node, "callspec", None), "marks", ()) if mark.name == MARKER]
    lineage: list[Any] = []
    if isinstance(node, pytest.Class):
        for ancestor in node.obj.__mro__:
            found = ancestor.__dict__.get("pytestmark", ())
            lineage.extend(found if isinstance(found, (list, tuple)) else [found])
    order = [_identity(mark) for mark in (*parameters, *lineage)]
    yield from sorted(marks, key=lambda mark: _rank(order, mark))


def _rank(order: list[int], mark: pytest.Mark) -> int:
    identity = _identity(mark)
    return order.index(identity) if identity in order else len(order)


def _identity(mark: Any) -> int:
    """Marks compare by value; two equal ones may stand in two places. A decorator wraps the mark itself."""
    return id(getattr(mark, "mark", mark))
