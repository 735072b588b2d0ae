"""The options of a sandbox, checked once and turned into what the engine takes.

Equal options give the same object, so that a suite that enters thousands of equal sandboxes checks them once. What is
read from the machine at entry (environment, journals, directories) is left to `_sandbox`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any, Final

from hermetic._errors import OptionError, OptionTypeError, SandboxError
from hermetic._values import instant_ns, seconds_ns

try:
    from hermetic import _native as _loaded
except ImportError as _error:
    _native: ModuleType | None = None
    _reason: str = str(_error)
else:
    _native = _loaded

DEFAULT_NOW: Final = "2020-01-01T00:00:00+00:00"
DEFAULT_TICK: Final = 1e-6
DEFAULT_SPIN_LIMIT: Final = 1_000_000
TICK_SECONDS_MAX: Final = 86_400

# The flags of the engine's interface (crates/abi).
CLOCK = 1 << 0
ENTROPY = 1 << 1
NETWORK = 1 << 2
ALLOW_LOOPBACK = 1 << 3
ALLOW_UNIX = 1 << 4
ORDER_SORTED = 1 << 5
ORDER_CHAOS = 1 << 6
AUTOMATIC = 1 << 7
MONOTONIC_CONTINUE = 1 << 8
STRICT_REPLAY = 1 << 9
PINNED_CLOCK = 1 << 10
PINNED_SEED = 1 << 11
NETWORK_STRICT = 1 << 12
INHERIT = 1 << 13
SCHEDULE_SEEDED = 1 << 14

CHOICES: Final = {
    "clock": ("virtual", "off"),
    "rng": ("all", "seed", "off"),
    "fs": ("off", "isolate"),
    "monotonic": ("fixed", "continue"),
    "order": (None, "sorted", "chaos", "off"),
    "inherit": ("on", "off"),
    "schedule": ("cooperative", "seeded"),
}
OPTIONS: Final = (
    "now",
    "tick",
    "clock",
    "rng",
    "network",
    "allow_loopback",
    "allow_unix",
    "spin_limit",
    "order",
    "monotonic",
    "network_strict",
    "strict_replay",
    "inherit",
    "schedule",
)
"""The options that the engine takes, in the order in which `settings` gets them."""


def native() -> Any:
    """The native library. Raises SandboxError with the reason where there is none."""
    if _native is None:
        raise SandboxError(f"Hermetic's native library cannot be loaded here: {_reason}")
    return _native


# The native bases of `Sandbox` and its handle; where there are none, no sandbox is ever entered.
DOOR: Any = _native.Door if _native is not None else object
HANDLE: Any = _native.Handle if _native is not None else object
ACTIVE: list[Any] = _native.active if _native is not None else []


class Settings:
    """Checked options. `plan` is their native form."""

    __slots__ = ("allow", "config", "has_network", "has_seed", "now_ns", "plan")

    def __init__(self, config: dict[str, Any], flags: int, now_ns: int, tick_ps: int, root: str) -> None:
        self.config = config
        self.now_ns = now_ns
        self.has_network = bool(flags & NETWORK)
        self.has_seed = config["rng"] != "off"
        network = config["network"]
        self.allow: tuple[str, ...] = () if isinstance(network, str) else tuple(network)
        self.plan = native().Plan(
            flags=flags,
            now_ns=now_ns,
            tick_ps=tick_ps,
            spin_limit=config["spin_limit"],
            allow="\n".join(self.allow),
            root=root,
            random=self.has_seed,
            numpy=config["rng"] == "all",
            environment=True,
        )


def settings(values: Sequence[Any], extra: int, root: str) -> Settings:
    """Checks the options that the engine takes, in the order of OPTIONS. `extra` are flags without an option."""
    at = OPTIONS.index("network")
    if not isinstance(values[at], str):
        values = (*values[:at], _entries(values[at]), *values[at + 1 :])
    try:
        return _settings(extra, root, *values)
    except TypeError as error:
        if isinstance(error, SandboxError):
            raise
    # An unhashable value: it is wrong, and the check says how.
    return _settings.__wrapped__(extra, root, *values)


# `typed` keeps True and 1 apart, which are equal keys and not equally good values.
@lru_cache(maxsize=256, typed=True)
def _settings(extra: int, root: str, *values: Any) -> Settings:
    config = dict(zip(OPTIONS, values))
    for option in ("clock", "rng", "order", "monotonic", "inherit", "schedule"):
        choice(option, config[option])
    for option in ("allow_loopback", "allow_unix", "network_strict", "strict_replay"):
        switch(option, config[option])
    _check_spin_limit(config["spin_limit"])
    _check_network(config["network"])
    if config["order"] is None:
        config["order"] = "off" if config["rng"] == "off" else "sorted"
    flags = extra
    for flag, is_wanted in (
        (CLOCK, config["clock"] == "virtual"),
        (ENTROPY, config["rng"] == "all"),
        (NETWORK, config["network"] not in ("off", "allow")),
        (ALLOW_LOOPBACK, config["allow_loopback"]),
        (ALLOW_UNIX, config["allow_unix"]),
        (ORDER_SORTED, config["order"] == "sorted"),
        (ORDER_CHAOS, config["order"] == "chaos"),
        (MONOTONIC_CONTINUE, config["monotonic"] == "continue"),
        (STRICT_REPLAY, config["strict_replay"]),
        (NETWORK_STRICT, config["network_strict"]),
        (INHERIT, config["inherit"] == "on"),
        (SCHEDULE_SEEDED, config["schedule"] == "seeded"),
    ):
        if is_wanted:
            flags |= flag
    return Settings(config, flags, instant_ns(config["now"]), _tick_ps(config["tick"]), root)


def choice(option: str, value: Any) -> Any:
    """A value out of a fixed set."""
    accepted = CHOICES[option]
    if value in accepted and not isinstance(value, bool):
        return value
    hint = ""
    if option == "fs" and value == "fake":
        hint = "; for an in-memory file system use pyfakefs beside sandbox(fs='off')"
    raise OptionError(f"{option}={value!r}: accepted are {_spelled(accepted)}{hint}")


def switch(option: str, value: Any) -> bool:
    """A bool, and nothing that merely looks true."""
    if value is True or value is False:
        return bool(value)
    raise OptionTypeError(f"{option}={value!r}: accepted are True and False")


def check_seed(seed: Any) -> None:
    """A seed is an int (and a bool is none), or None."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise OptionTypeError(f"seed={seed!r}: accepted are an int, and None for a fresh one")


def _spelled(accepted: tuple[Any, ...]) -> str:
    words = [repr(value) for value in accepted]
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _check_spin_limit(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise OptionTypeError(f"spin_limit={value!r}: accepted is an int >= 0, where 0 switches the detector off")
    if not 0 <= value < 2**64:
        raise OptionError(
            f"spin_limit={value!r}: accepted is an int >= 0 and below 2**64, where 0 switches the detector off"
        )


def _tick_ps(value: Any) -> int:
    accepted = f"a number of seconds from 0 (frozen) to {TICK_SECONDS_MAX}"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise OptionTypeError(f"tick={value!r}: accepted is {accepted}")
    if not 0 <= value <= TICK_SECONDS_MAX:
        raise OptionError(f"tick={value!r}: accepted is {accepted}")
    seconds_ns(value, "tick", accepted)
    return round(value * 1e12)


def _entries(network: Any) -> tuple[str, ...]:
    accepted = "'block', 'off', or a list of entries like 'api.example.com:443'"
    if isinstance(network, (bytes, dict)) or not hasattr(network, "__iter__"):
        raise OptionTypeError(f"network={network!r}: accepted are {accepted}")
    entries = tuple(network)
    for entry in entries:
        if not isinstance(entry, str):
            raise OptionTypeError(
                f"network entry {entry!r}: {type(entry).__name__} is no text; accepted are {accepted}"
            )
        if "\n" in entry:
            raise OptionError(f"network entry {entry!r}: a line break is never part of an entry")
    return entries


def _check_network(network: Any) -> None:
    if isinstance(network, str):
        if network not in ("block", "off", "allow"):
            raise OptionError(
                f"network={network!r}: accepted are 'block', 'off' and a list of entries; "
                f"for one entry write [{network!r}]"
            )
        return
    native().check_entries(list(network))
