"""The door to the real world: clocks, sleep and entropy that no sandbox changes.

    from hermetic import real

    started = real.monotonic()
    with real.world():
        ...  # everything that this thread does here is real

For harnesses, watchdogs, and the one call that needs real entropy. The same functions hang on a handle as `sb.real`.
"""

from __future__ import annotations

from contextlib import contextmanager as _contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

try:
    from hermetic import _native
except ImportError:  # without the native library no sandbox can be entered, and everything is real
    import os as _os
    import time as _time

    time = _time.time
    time_ns = _time.time_ns
    monotonic = _time.monotonic
    monotonic_ns = _time.monotonic_ns
    perf_counter = _time.perf_counter
    perf_counter_ns = _time.perf_counter_ns
    sleep = _time.sleep
    urandom = _os.urandom

    @_contextmanager
    def world() -> Iterator[None]:
        yield
else:
    # A harness measures with these around each phase of each test.
    time = _native.real_time
    monotonic = _native.real_monotonic

    def time_ns() -> int:
        """Nanoseconds since the Unix epoch."""
        return _native.real_clock(0)

    def monotonic_ns() -> int:
        """Nanoseconds of the monotonic clock."""
        return _native.real_clock(1)

    perf_counter = monotonic
    perf_counter_ns = monotonic_ns

    def sleep(seconds: float) -> None:  # type: ignore[misc]
        """Sleeps for real; a negative number or NaN is a ValueError."""
        _native.real_sleep(seconds)

    def urandom(size: int, /) -> bytes:
        """`size` bytes of the system's entropy."""
        return _native.real_urandom(size)

    @_contextmanager
    def world() -> Iterator[None]:
        """Everything that this thread does in the block is real. Blocks nest."""
        _native.real_begin()
        try:
            yield
        finally:
            _native.real_end()


def uuid4() -> UUID:
    """A random UUID from real entropy."""
    from uuid import UUID

    return UUID(bytes=urandom(16), version=4)


__all__ = [
    "monotonic",
    "monotonic_ns",
    "perf_counter",
    "perf_counter_ns",
    "sleep",
    "time",
    "time_ns",
    "urandom",
    "uuid4",
    "world",
]
