"""Deterministic, isolated, replayable blocks of Python.

    import hermetic

    with hermetic.sandbox(seed=42) as sb:
        ...  # same time, same uuids, same tokens, same random stream: every run

Names are loaded when they are first used, so that importing the package costs next to nothing and works everywhere;
where the engine cannot run, entering a sandbox says why.
"""

from __future__ import annotations

TYPE_CHECKING = False
if (
    TYPE_CHECKING
):  # type checkers take this branch; at run time even `typing` would cost more than the rest of this file
    from typing import Any

    from hermetic import real as real
    from hermetic._errors import DeadlockError as DeadlockError
    from hermetic._errors import NameLookupBlockedError as NameLookupBlockedError
    from hermetic._errors import NetworkBlockedError as NetworkBlockedError
    from hermetic._errors import OptionError as OptionError
    from hermetic._errors import ReplayError as ReplayError
    from hermetic._errors import ReplayExhausted as ReplayExhausted
    from hermetic._errors import ReplayMismatch as ReplayMismatch
    from hermetic._errors import SandboxActiveError as SandboxActiveError
    from hermetic._errors import SandboxError as SandboxError
    from hermetic._errors import SpinError as SpinError
    from hermetic._sandbox import Clock as Clock
    from hermetic._sandbox import Jump as Jump
    from hermetic._sandbox import Sandbox as Sandbox
    from hermetic._sandbox import SandboxHandle as SandboxHandle
    from hermetic._sandbox import current as current
    from hermetic._sandbox import sandbox as sandbox

    __version__: str

_HOMES = {
    "Clock": "_sandbox",
    "Jump": "_sandbox",
    "NameLookupBlockedError": "_errors",
    "NetworkBlockedError": "_errors",
    "OptionError": "_errors",
    "ReplayError": "_errors",
    "ReplayExhausted": "_errors",
    "ReplayMismatch": "_errors",
    "Sandbox": "_sandbox",
    "SandboxActiveError": "_errors",
    "SandboxError": "_errors",
    "SandboxHandle": "_sandbox",
    "DeadlockError": "_errors",
    "SpinError": "_errors",
    "current": "_sandbox",
    "sandbox": "_sandbox",
}

__all__ = [*sorted(_HOMES), "__version__", "real"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "real":
        return import_module("hermetic.real")
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("hermetic-sandbox")
    elif name in _HOMES:
        value = getattr(import_module(f"hermetic.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module 'hermetic' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
