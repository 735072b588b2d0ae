"""Times as users write them, in integer nanoseconds. Pure: nothing here reads a clock."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import Any

from hermetic._errors import OptionError, OptionTypeError

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
NS = 1_000_000_000
WALL_NS_MIN = 0
WALL_NS_MAX = 2**63 - 1
"""Virtual clocks count signed 64-bit nanoseconds, which end in 2262."""
INSTANT = "an ISO 8601 text like '2021-06-01T12:00:00+00:00' (UTC where it names no zone), a datetime, or epoch seconds"


class Nanoseconds(int):
    """A time that is in nanoseconds already, as journals hold it."""


def instant_ns(value: Any, option: str = "now") -> int:
    """Nanoseconds since the Unix epoch. A naive datetime or text is UTC."""
    if isinstance(value, bool):
        raise OptionTypeError(f"{option}={value!r}: a bool is no time; accepted is {INSTANT}")
    if isinstance(value, str):
        ns = _from_datetime(_parse(value, option))
    elif isinstance(value, datetime):
        ns = _from_datetime(value)
    elif isinstance(value, Nanoseconds):
        ns = int(value)
    elif isinstance(value, (int, float)):
        ns = seconds_ns(value, option, INSTANT)
    else:
        raise OptionTypeError(f"{option}={value!r}: {type(value).__name__} is no time; accepted is {INSTANT}")
    if not WALL_NS_MIN <= ns <= WALL_NS_MAX:
        raise OptionError(
            f"{option}={value!r} is outside the virtual clock: accepted are times from 1970 to 2262-04-11"
        )
    return ns


def seconds_ns(value: float, option: str, accepted: str) -> int:
    """Seconds as nanoseconds, exactly where the number is exact."""
    if isinstance(value, int):
        return value * NS
    if not math.isfinite(value):
        raise OptionError(f"{option}={value!r} is not finite; accepted is {accepted}")
    whole = math.floor(value)
    return whole * NS + round((value - whole) * NS)


def duration_ns(value: Any, option: str) -> int:
    """A duration that is not negative, from seconds or a timedelta."""
    accepted = "a number of seconds >= 0, or a timedelta"
    if isinstance(value, timedelta):
        ns = (value.days * 86_400 + value.seconds) * NS + value.microseconds * 1000
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        ns = seconds_ns(value, option, accepted)
    else:
        raise OptionTypeError(f"{option}={value!r}: {type(value).__name__} is no duration; accepted is {accepted}")
    if not 0 <= ns <= WALL_NS_MAX:
        raise OptionError(f"{option}={value!r} is out of range; accepted is {accepted}, at most 292 years")
    return ns


def to_datetime(ns: int) -> datetime:
    """An aware UTC datetime; what is below a microsecond is cut."""
    return EPOCH + timedelta(microseconds=ns // 1000)


def _parse(text: str, option: str) -> datetime:
    # Python 3.10 does not know the suffix that the rest of the world writes.
    spelled = text.strip()
    if spelled[-1:] in "Zz" and spelled:
        spelled = spelled[:-1] + "+00:00"
    try:
        return datetime.fromisoformat(spelled)
    except ValueError:
        raise OptionError(f"{option}={text!r} is no time; accepted is {INSTANT}") from None


def _from_datetime(value: datetime) -> int:
    if value.tzinfo is None or value.utcoffset() is None:
        value = value.replace(tzinfo=timezone.utc)
    delta = value - EPOCH
    return (delta.days * 86_400 + delta.seconds) * NS + delta.microseconds * 1000
