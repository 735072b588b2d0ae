"""The virtual clock and its handle."""

from __future__ import annotations

import datetime
import logging
import os
import pickle
import sqlite3
import time
import uuid
from datetime import datetime as early_datetime
from time import monotonic as early_monotonic
from time import time as early_time

import hermetic
import pytest

UTC = datetime.timezone.utc


def test_every_spelling_is_frozen():
    with hermetic.sandbox(now="2021-06-01"):
        assert time.time() == early_time() == 1622505600.0
        assert time.time_ns() == 1622505600 * 10**9
        assert time.clock_gettime(time.CLOCK_REALTIME) == 1622505600.0
        assert datetime.datetime.now(UTC) == early_datetime.now(UTC)
        assert early_datetime.now(UTC).isoformat() == "2021-06-01T00:00:00+00:00"
        assert datetime.datetime.fromtimestamp(time.time(), UTC).year == 2021
        assert time.gmtime().tm_year == 2021
        assert sqlite3.connect(":memory:").execute("select current_timestamp").fetchone() == ("2021-06-01 00:00:00",)


def test_monotonic_clocks_tick_and_repeat():
    def readings():
        with hermetic.sandbox(seed=1):
            return [time.monotonic(), early_monotonic(), time.perf_counter(), time.monotonic_ns()]

    assert readings() == readings() == [1000.0, 1000.000001, 1000.000002, 1000_000003000]


def test_tick_zero_freezes_them():
    with hermetic.sandbox(tick=0):
        assert time.monotonic() == time.monotonic() == time.perf_counter()


def test_another_tick():
    with hermetic.sandbox(tick=0.5):
        assert [time.monotonic() for _ in range(3)] == [1000.0, 1000.5, 1001.0]


def test_sleep_advances_and_does_not_block():
    real = hermetic.real.monotonic()
    with hermetic.sandbox() as sb:
        time.sleep(3600)
        assert sb.clock.now() == datetime.datetime(2020, 1, 1, 1, tzinfo=UTC)
        assert 4600.0 <= time.monotonic() < 4600.001
    assert hermetic.real.monotonic() - real < 60


@pytest.mark.parametrize("seconds", [float("nan"), -1])
def test_sleep_refuses_what_is_no_duration(seconds):
    with hermetic.sandbox() as sb, pytest.raises(ValueError):
        time.sleep(seconds)
    with hermetic.sandbox() as sb:
        assert sb.clock.now().year == 2020


def test_the_handle_s_clock():
    with hermetic.sandbox() as sb:
        sb.clock.advance(1.5)
        assert time.time() == 1577836801.5
        assert time.monotonic() == 1001.5
        sb.clock.advance(datetime.timedelta(days=1))
        assert sb.clock.now().day == 2
        sb.clock.set("2019-01-01")
        assert time.gmtime().tm_year == 2019
        assert time.monotonic() == pytest.approx(1001.5 + 86400, abs=1e-3)
        sb.clock.move_to(datetime.datetime(2022, 1, 1, tzinfo=UTC))
        assert sb.clock.now().year == 2022


def test_now_does_not_tick():
    with hermetic.sandbox() as sb:
        for _ in range(10):
            sb.clock.now()
        assert time.monotonic() == 1000.0


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), datetime.timedelta(seconds=-1)], ids=str)
def test_advance_refuses(bad):
    with hermetic.sandbox() as sb, pytest.raises(ValueError):
        sb.clock.advance(bad)


def test_clock_off():
    with hermetic.sandbox(clock="off") as sb:
        assert time.time() > 1.7e9
        for act in (sb.clock.now, lambda: sb.clock.advance(1), lambda: sb.clock.set(0)):
            with pytest.raises(hermetic.SandboxError, match="clock='off'"):
                act()


def test_real_is_a_door():
    with hermetic.sandbox() as sb:
        assert sb.real.time() > 1.7e9
        assert sb.real.monotonic() != 1000.0
        assert len(sb.real.urandom(16)) == 16
        assert sb.real.uuid4() != sb.real.uuid4()
        assert sb.real.uuid4().version == 4
        assert sb.real.perf_counter() > 0
        before = sb.real.monotonic()
        sb.real.sleep(0.001)
        assert sb.real.monotonic() - before >= 0.001
        with hermetic.real.world():
            assert time.time() > 1.7e9
            with hermetic.real.world():
                pass
            assert time.time() > 1.7e9
        assert time.time() == 1577836800.0


def test_naive_times_follow_the_zone(monkeypatch):
    with hermetic.sandbox(tz="Asia/Tokyo"):
        assert datetime.datetime.now().isoformat() == "2020-01-01T09:00:00"
        assert time.tzname == ("JST", "JST")
    with hermetic.sandbox(tz="EST5EDT"):
        assert time.localtime().tm_hour == 19


def test_the_zone_comes_back():
    names, zone = time.tzname, os.environ.get("TZ")
    with hermetic.sandbox(tz="Asia/Tokyo"):
        assert os.environ["TZ"] == "Asia/Tokyo"
    assert time.tzname == names
    assert os.environ.get("TZ") == zone


def test_a_zone_in_env_is_looked_at():
    with hermetic.sandbox(env={"TZ": "Asia/Tokyo"}):
        assert time.localtime().tm_hour == 9


def test_types_and_pickles_are_the_real_ones():
    with hermetic.sandbox():
        now = datetime.datetime.now()
        assert type(now) is early_datetime
        assert pickle.loads(pickle.dumps(now)) == now
        assert pickle.loads(pickle.dumps(time.time)) is time.time
        assert repr(now).startswith("datetime.datetime(20")


def test_uuid1_repeats_and_leaves_nothing():
    def draw():
        with hermetic.sandbox(seed=3):
            return uuid.uuid1(), uuid.uuid1()

    first, second = draw()
    assert (first, second) == draw()
    assert first != second
    stamp = (uuid.uuid1().time - 0x01B21DD213814000) / 1e7
    assert abs(stamp - time.time()) < 3600


def test_logging_counts_from_the_entry():
    with hermetic.sandbox(now="2001-01-01"):
        record = logging.LogRecord("n", logging.INFO, "f", 1, "m", (), None)
        assert 0 <= record.relativeCreated < 1
    record = logging.LogRecord("n", logging.INFO, "f", 1, "m", (), None)
    assert 0 <= record.relativeCreated < 86_400_000


def test_monotonic_continues_where_asked():
    before = hermetic.real.monotonic()
    with hermetic.sandbox(monotonic="continue"):
        first = time.monotonic()
        assert first >= before
        time.sleep(100)
        assert time.monotonic() >= first + 100


def test_files_written_inside_are_not_from_the_future(tmp_path):
    with hermetic.sandbox():
        (tmp_path / "x").write_text("x")
        assert (tmp_path / "x").stat().st_mtime <= time.time()
