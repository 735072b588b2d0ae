"""What refusals are raised as: `BaseException`s, so that an `except Exception` in the code under test hides nothing.

A refusal fails its test at the end however it was caught, with one exception: a test that asks for the class by name,
as `pytest.raises(NetworkBlocked)` does, has said that it expects the refusal. The metaclass hears that question.
"""

from __future__ import annotations

import sys
from typing import Any

_expected: list[Refusal] = []
"""Refusals that a test has asked for by name, until the end of the test settles them."""


class _Asked(type):
    """Notes instances that somebody checks against the class: `isinstance` and `issubclass`, but no `except` clause."""

    def __instancecheck__(cls, instance: Any) -> bool:
        is_one = type.__instancecheck__(cls, instance)
        if is_one and cls.__name__ in _NAMES:
            _note(instance)
        return is_one

    def __subclasscheck__(cls, subclass: type) -> bool:
        is_one = type.__subclasscheck__(cls, subclass)
        # Older `pytest.raises` and `unittest` ask about the class while the exception is being handled. So does the
        # interpreter whenever it makes an exception ready, hence the look at who asks.
        if is_one and cls.__name__ in _NAMES and sys._getframe(1).f_globals.get("__name__") in _ASSERTING:
            current = sys.exc_info()[1]
            if current is not None and type.__instancecheck__(cls, current):
                _note(current)
        return is_one


_NAMES = frozenset(("NetworkBlocked", "PushBlocked"))
_ASSERTING = frozenset(("_pytest.python_api", "_pytest.raises", "unittest.case"))


def _note(instance: Any) -> None:
    if not any(known is instance for known in _expected):
        _expected.append(instance)


def take_expected() -> list[Refusal]:
    """The refusals that were asked for by name since the last call."""
    taken = _expected[:]
    _expected.clear()
    return taken


class Refusal(BaseException, metaclass=_Asked):
    """What every refusal of the floor has: the text, what was asked for, and the place that asked."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The twin that was raised has no name of its own; what comes out of a pickle is the class that everybody knows.
        return getattr(sys.modules[__name__], type(self).__name__), (str(self), self.subject, self.port, self.site)

    def __init__(self, message: str = "", subject: str = "", port: int | None = None, site: str = "") -> None:
        super().__init__(message)
        self.subject = subject
        self.port = port
        self.site = site


class NetworkBlocked(Refusal):
    """A connection, a send, a look-up or a listening socket was refused.

    `subject` is the host, address or path, `port` the port or None, `site` the `file:line in function` that asked.
    """


class PushBlocked(Refusal):
    """A git push to another machine was refused before it started."""


def raised(cls: type[Refusal]) -> type[Refusal]:
    """What the native library raises for a class: a twin below it, because Python answers `isinstance` for the very
    class of an object without asking the metaclass."""
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    twin: type[Refusal] = _Asked(cls.__name__, (cls,), names)  # type: ignore[assignment]
    return twin
