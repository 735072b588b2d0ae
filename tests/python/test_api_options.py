"""Options are checked when a sandbox is made: one error names option, value and what it accepts. Nothing is entered."""

from __future__ import annotations

import datetime
import os
import time

import hermetic
import pytest

BAD = {
    "an unknown option": ({"sede": 1}, "sede=1", "did you mean seed"),
    "a word for a time": ({"now": "yesterday"}, "now='yesterday'", "ISO 8601"),
    "an empty time": ({"now": ""}, "now=''", "ISO 8601"),
    "a bool for a time": ({"now": True}, "now=True", "ISO 8601"),
    "a list for a time": ({"now": [2020]}, "now=[2020]", "ISO 8601"),
    "NaN for a time": ({"now": float("nan")}, "now=nan", "ISO 8601"),
    "a time after the clock ends": ({"now": "2500-01-01"}, "now='2500-01-01'", "2262"),
    "a time before the epoch": ({"now": -1}, "now=-1", "1970"),
    "a negative tick": ({"tick": -1e-6}, "tick=-1e-06", "from 0"),
    "NaN for a tick": ({"tick": float("nan")}, "tick=nan", "from 0"),
    "an infinite tick": ({"tick": float("inf")}, "tick=inf", "from 0"),
    "a bool for a tick": ({"tick": True}, "tick=True", "from 0"),
    "a text for a tick": ({"tick": "1"}, "tick='1'", "from 0"),
    "an unknown clock": ({"clock": "real"}, "clock='real'", "'virtual' and 'off'"),
    "an unhashable clock": ({"clock": ["virtual"]}, "clock=['virtual']", "'virtual' and 'off'"),
    "an unknown rng": ({"rng": "some"}, "rng='some'", "'all', 'seed' and 'off'"),
    "an unknown fs": ({"fs": "ram"}, "fs='ram'", "'off' and 'isolate'"),
    "a fake fs": ({"fs": "fake"}, "fs='fake'", "pyfakefs"),
    "an unknown order": ({"order": "random"}, "order='random'", "'chaos'"),
    "an unknown monotonic": ({"monotonic": "real"}, "monotonic='real'", "'continue'"),
    "a name for a network": ({"network": "example.com"}, "network='example.com'", "['example.com']"),
    "a number for a network": ({"network": 1}, "network=1", "list of entries"),
    "a port of 70000": ({"network": ["example.com:70000"]}, "example.com:70000", "65535"),
    "a URL in the allowlist": ({"network": ["https://example.com/x"]}, "https://example.com/x", "example.com:443"),
    "a number in the allowlist": ({"network": [443]}, "443", "no text"),
    "a line break in the allowlist": ({"network": ["a\nb"]}, r"a\nb", "line break"),
    "an empty entry": ({"network": [""]}, '""', "accepted are"),
    "a number for a switch": ({"allow_loopback": 1}, "allow_loopback=1", "True and False"),
    "a text for a switch": ({"scrub_env": "yes"}, "scrub_env='yes'", "True and False"),
    "a text for a seed": ({"seed": "42"}, "seed='42'", "an int"),
    "a bool for a seed": ({"seed": True}, "seed=True", "an int"),
    "a float for a seed": ({"seed": 1.5}, "seed=1.5", "an int"),
    "a negative spin limit": ({"spin_limit": -1}, "spin_limit=-1", "0"),
    "a float for a spin limit": ({"spin_limit": 1e6}, "spin_limit=1000000.0", "an int"),
    "an unknown zone": ({"tz": "Mars/Olympus"}, "tz='Mars/Olympus'", "Europe/Berlin"),
    "a zone outside the zones": ({"tz": "../../etc/passwd"}, "tz='../../etc/passwd'", "Europe/Berlin"),
    "a number in the environment": ({"env": {"A": 1}}, "'A': 1", "texts"),
    "a name with an equals sign": ({"env": {"A=B": "1"}}, "'A=B'", "'='"),
    "a list for an environment": ({"env": ["A"]}, "env=['A']", "mapping"),
    "a number for a journal": ({"record": 1}, "record=1", "a path"),
    "an empty journal": ({"replay": ""}, "replay=''", "a path"),
    "record with replay": ({"record": "a", "replay": "b"}, "record and replay", "one of them"),
}


@pytest.mark.parametrize("options, value, accepted", BAD.values(), ids=list(BAD))
def test_bad_option(options, value, accepted):
    with pytest.raises(hermetic.SandboxError) as caught:
        hermetic.sandbox(**options)
    assert value in str(caught.value)
    assert accepted in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert hermetic.current() is None


@pytest.mark.parametrize(
    "now",
    [
        "2021-06-01T12:00:00+00:00",
        "2021-06-01T12:00:00Z",
        "2021-06-01T12:00:00",
        "2021-06-01 12:00:00",
        "2021-06-01T14:00:00+02:00",
        1622548800,
        1622548800.0,
        datetime.datetime(2021, 6, 1, 12, tzinfo=datetime.timezone.utc),
        datetime.datetime(2021, 6, 1, 12),
        datetime.datetime(2021, 6, 1, 7, tzinfo=datetime.timezone(datetime.timedelta(hours=-5))),
    ],
    ids=str,
)
def test_spellings_of_one_instant(now):
    with hermetic.sandbox(now=now) as sb:
        assert time.time() == 1622548800.0
        assert sb.clock.now() == datetime.datetime(2021, 6, 1, 12, tzinfo=datetime.timezone.utc)


def test_fractions_of_a_second_are_exact():
    with hermetic.sandbox(now="2021-06-01T12:00:00.123456+00:00"):
        assert time.time_ns() == 1622548800_123456000
    with hermetic.sandbox(now=1.5):
        assert time.time_ns() == 1_500_000_000
    with hermetic.sandbox(now=2**60 // 10**9):
        assert time.time_ns() == 2**60 // 10**9 * 10**9


def test_equal_values_of_other_types_are_checked_each_time():
    hermetic.sandbox(tick=1)
    with pytest.raises(hermetic.OptionError):
        hermetic.sandbox(tick=True)
    hermetic.sandbox(spin_limit=1)
    with pytest.raises(hermetic.OptionError):
        hermetic.sandbox(spin_limit=True)


def test_only_the_seed_is_positional():
    with hermetic.sandbox(7) as sb:
        assert sb.seed == 7
    with pytest.raises(TypeError):
        hermetic.sandbox(7, "2020-01-01")  # type: ignore[misc]


def test_seeds_of_any_size_and_sign():
    def draw(seed):
        with hermetic.sandbox(seed=seed) as sb:
            assert sb.seed == seed
            return os.urandom(8)

    seeds = [0, 1, -1, 2**32, 2**64, -(2**64), 10**100]
    assert len({draw(seed) for seed in seeds}) == len(seeds)
    assert draw(10**100) == draw(10**100)


def test_a_fresh_seed_is_shown_and_repeats():
    with hermetic.sandbox() as sb:
        first, seed = os.urandom(8), sb.seed
    assert 0 <= seed < 2**32
    with hermetic.sandbox(seed=seed):
        assert os.urandom(8) == first
    with hermetic.sandbox() as sb:
        assert sb.seed != seed


def test_deep_datetime_is_accepted():
    for value in (True, False):
        with hermetic.sandbox(deep_datetime=value):
            assert datetime.datetime.now(datetime.timezone.utc).year == 2020
