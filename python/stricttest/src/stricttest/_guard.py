"""Lays stances on the native floor and takes them away. The order of what lies there is kept beside this module's
importers, so that reloading one of them changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermetic import _native

from stricttest._errors import NetworkBlocked, PushBlocked, raised

if TYPE_CHECKING:
    from stricttest.socketguard import Policy

_native.floor_classes(raised(NetworkBlocked), raised(PushBlocked))


class _Laid:
    """One stance on the floor."""

    def __init__(self, ident: int, policy: Policy, is_session: bool) -> None:
        self.ident = ident
        self.policy = policy
        self.is_session = is_session


_stack: list[_Laid] = []


def lay(
    policy: Policy, *, home: str | None = None, spool: str | None = None, root: str | None = None, session: bool = False
) -> int:
    """Lays a stance on top and returns its number."""
    ident = _native.floor_enter(policy.loopback == "allow", policy.entries(), home=home, spool=spool, root=root)
    _stack.append(_Laid(ident, policy, session))
    return ident


def take_away(ident: int) -> None:
    """Takes a stance away, and those that were installed on top of it."""
    at = next((at for at, laid in enumerate(_stack) if laid.ident == ident), None)
    if at is None:
        return
    while len(_stack) > at:
        _native.floor_leave(_stack.pop().ident)


def install(policy: Policy) -> None:
    """Lays a stance that replaces the one installed before, if that is still on top."""
    replaced = _stack[-1] if _stack and not _stack[-1].is_session else None
    lay(policy)
    if replaced is not None:
        _stack.remove(replaced)
        _native.floor_leave(replaced.ident)


def current() -> Policy | None:
    return _stack[-1].policy if _stack else None


def allows(policy: Policy, host: str, port: int | None) -> bool:
    return _native.floor_decide(policy.loopback == "allow", policy.entries(), host, port)
