"""The error tree. Everything that Hermetic raises on purpose is a `SandboxError`.

The engine raises some of these in a running thread by class alone; their constructors then ask it for the text.
"""

from __future__ import annotations

import errno
from typing import Any

try:
    from _socket import EAI_NONAME, gaierror
except ImportError:  # an interpreter without sockets
    EAI_NONAME, gaierror = -2, OSError  # type: ignore[misc,assignment]


def _last_interrupt() -> str:
    try:
        from hermetic import _native
    except ImportError:
        return ""
    return _native.last_interrupt()


def _stacks() -> str:
    """Where each thread stands, the calling one last."""
    import sys
    import threading
    import traceback

    names = {thread.ident: thread.name for thread in threading.enumerate()}
    own = threading.get_ident()
    frames = sorted(sys._current_frames().items(), key=lambda item: item[0] == own)
    parts = []
    for ident, frame in frames:
        stack = "".join(traceback.format_stack(frame)).rstrip()
        parts.append(f"thread {names.get(ident, ident)}:\n{stack}")
    return "\n".join(parts)


class SandboxError(Exception):
    """Something about a sandbox is wrong; the base of all errors here."""

    def __init__(self, *args: Any) -> None:
        if not args and (text := _last_interrupt()):
            args = (text,)
        super().__init__(*args)


class OptionError(SandboxError, ValueError):
    """An option has a value that is not acceptable. The message names option, value and what is accepted."""


class OptionTypeError(OptionError, TypeError):
    """An option has a value of a type that is not acceptable, or does not exist."""


class SandboxActiveError(SandboxError):
    """A sandbox is active in this process already; they do not nest."""


class SpinError(SandboxError):
    """A loop reads a clock that does not move."""


class DeadlockError(SandboxError):
    """All threads of the sandbox wait for each other. The message shows where each of them stands."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if not args:
            self.args = (f"{self}\n\n{_stacks()}",)


class NetworkBlockedError(SandboxError, ConnectionRefusedError):
    """A connection or an addressed send was refused. `address` is `(host, port)` or a path."""

    def __init__(self, message: str = "", address: Any = None) -> None:
        OSError.__init__(self, message)
        self.errno = errno.ECONNREFUSED
        self.strerror = message
        self.address = address

    def __str__(self) -> str:
        return str(self.strerror)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.strerror, self.address)


class NameLookupBlockedError(NetworkBlockedError, gaierror):
    """A name look-up was refused. Also a `socket.gaierror`, which is what failing look-ups raise."""

    def __init__(self, message: str = "", address: Any = None) -> None:
        super().__init__(message, address)
        self.errno = EAI_NONAME


class ReplayError(SandboxError):
    """A replay went wrong."""


class ReplayExhausted(ReplayError):
    """Replay was asked for more than the journal holds. `source` says of what, `consumed` how many there were."""

    def __init__(self, *args: Any, source: str | None = None, consumed: int | None = None) -> None:
        super().__init__(*args)
        self.source = source
        self.consumed = consumed


class ReplayMismatch(ReplayError):
    """The journal cannot be used here, or holds something else than replay asked for."""
