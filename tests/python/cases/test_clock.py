"""Clocks, dates and types: the defects h03 to h12, h33, h34, h41, h46 and h51 of a peer, absent here."""

from __future__ import annotations

import ctypes
import datetime
import functools
import importlib
import logging
import os
import pickle
import sqlite3
import sys
import tempfile
import threading
import time
import uuid
from datetime import date as early_date
from datetime import datetime as early_datetime
from time import monotonic as early_monotonic
from time import sleep as early_sleep
from time import time as early_time

import hermetic
import pytest

EPOCH_2020 = 1_577_836_800
HOUR = 3600


def is_real(stamp: float) -> bool:
    return abs(stamp - hermetic.real.time()) < 60


@pytest.mark.case("h03")
@pytest.mark.parametrize("spelling", ["from time import time", "import time; time = time.time"])
def test_a_module_first_imported_inside_sees_the_real_clock_afterwards(tmp_path, monkeypatch, spelling):
    name = f"lazy_{abs(hash(spelling))}"
    (tmp_path / f"{name}.py").write_text(f"{spelling}\nfrom time import monotonic\nfrom os import urandom\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with hermetic.sandbox(seed=1):
        lazy = importlib.import_module(name)
        assert lazy.time() == EPOCH_2020
        inside = lazy.urandom(8)
    assert is_real(lazy.time())
    assert lazy.urandom is os.urandom
    assert lazy.urandom(8) != inside
    assert abs(lazy.monotonic() - hermetic.real.monotonic()) < 60


@pytest.mark.case("h04")
def test_names_imported_long_before_obey_inside():
    class Held:
        clock = staticmethod(early_time)

    def with_default(clock=early_time):
        return clock()

    table = {"clock": early_time}
    with hermetic.sandbox(seed=1) as sb:
        begin = sb.real.monotonic()
        assert early_time() == time.time() == Held.clock() == with_default() == table["clock"]() == EPOCH_2020
        assert functools.partial(early_time)() == EPOCH_2020
        assert early_datetime.now(datetime.timezone.utc).year == 2020
        assert early_date.today().year in (2019, 2020)
        early_sleep(HOUR)
        assert early_time() == EPOCH_2020 + HOUR
        assert sb.real.monotonic() - begin < 30
        assert early_monotonic() > 1000 + HOUR - 1


@pytest.mark.case("h06")
def test_dates_pickle_as_themselves(program):
    before = datetime.datetime(2001, 1, 1)
    with hermetic.sandbox(seed=1):
        assert pickle.loads(pickle.dumps(before)) == before
        moments = [datetime.datetime.now(datetime.timezone.utc), datetime.date.today(), datetime.datetime.now()]
        blob = pickle.dumps(moments)
    assert b"hermetic" not in blob
    elsewhere = program(f"import sys; sys.modules['hermetic'] = None; import pickle; print(pickle.loads({blob!r}))")
    assert elsewhere.code == 0
    assert elsewhere.text.startswith("[datetime.datetime(2020, 1, 1, 0, 0")


@pytest.mark.case("h07")
@pytest.mark.filterwarnings("ignore:The default datetime adapter:DeprecationWarning")
def test_sqlite_takes_frozen_dates_and_agrees_on_the_time():
    rows = sqlite3.connect(":memory:")
    rows.execute("CREATE TABLE visits (at)")
    rows.execute("INSERT INTO visits VALUES (?)", (datetime.datetime.now(),))
    with hermetic.sandbox(seed=1, now="2021-06-01T12:00:00+00:00"):
        rows.execute("INSERT INTO visits VALUES (?)", (datetime.datetime.now(datetime.timezone.utc),))
        [stamp] = rows.execute("SELECT CURRENT_TIMESTAMP").fetchone()
        [julian] = rows.execute("SELECT strftime('%s', 'now')").fetchone()
    assert stamp == "2021-06-01 12:00:00"
    assert julian == "1622548800"
    assert rows.execute("SELECT at FROM visits").fetchall()[1] == ("2021-06-01 12:00:00+00:00",)


@pytest.mark.case("h08")
def test_dates_are_of_the_real_types():
    with hermetic.sandbox(seed=1):
        moment = datetime.datetime.now(datetime.timezone.utc)
        assert repr(moment).startswith("datetime.datetime(2020, 1, 1, 0, 0")
        assert type(moment) is early_datetime is datetime.datetime
        assert type(moment.date()) is type(datetime.date.today()) is early_date
        assert isinstance(moment, early_datetime)


@pytest.mark.case("h09")
def test_what_was_keyed_by_type_inside_works_outside(tmp_path, monkeypatch):
    (tmp_path / "lazy_types.py").write_text("from datetime import datetime\nENCODERS = {datetime: str}\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    @functools.singledispatch
    def encode(value):
        return "default"

    with hermetic.sandbox(seed=1):
        lazy = importlib.import_module("lazy_types")
        encode.register(datetime.datetime, lambda value: "datetime")
    moment = datetime.datetime.now()
    assert lazy.datetime is datetime.datetime
    assert type(moment) in lazy.ENCODERS
    assert encode(moment) == "datetime"
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Visit", at=(lazy.datetime, ...))
    assert model(at=moment).at == moment


@pytest.mark.case("h11")
@pytest.mark.parametrize(
    "read",
    [
        lambda: time.clock_gettime(time.CLOCK_REALTIME),
        lambda: time.clock_gettime_ns(time.CLOCK_REALTIME) / 1e9,
        lambda: (
            time.clock_gettime(time.CLOCK_REALTIME_COARSE) if hasattr(time, "CLOCK_REALTIME_COARSE") else time.time()
        ),
        lambda: time.mktime(time.localtime()),
        lambda: ctypes.CDLL(None).time(None),
        lambda: datetime.datetime.now().timestamp(),
        lambda: (uuid.uuid1().time - 0x01B21DD213814000) / 1e7,
    ],
    ids=["clock_gettime", "clock_gettime_ns", "coarse", "localtime", "libc time", "datetime", "uuid1"],
)
def test_every_wall_clock_tells_the_same(read):
    with hermetic.sandbox(seed=1) as sb:
        assert read() == pytest.approx(EPOCH_2020, abs=0.01)
        sb.clock.advance(HOUR)
        assert read() == pytest.approx(EPOCH_2020 + HOUR, abs=0.01)
    assert is_real(read())


@pytest.mark.case("h11")
def test_a_file_written_inside_is_of_its_time(tmp_path):
    with hermetic.sandbox(seed=1) as sb:
        with tempfile.NamedTemporaryFile(dir=tmp_path) as file:
            assert abs(time.time() - os.stat(file.name).st_mtime) < 1
            assert abs(time.time() - os.fstat(file.fileno()).st_mtime) < 1
        sb.clock.advance(HOUR)
        (tmp_path / "later").write_text("x")
        assert abs((tmp_path / "later").stat().st_mtime - (EPOCH_2020 + HOUR)) < 1
        [entry] = [entry for entry in os.scandir(tmp_path) if entry.name == "later"]
        assert abs(entry.stat().st_mtime - (EPOCH_2020 + HOUR)) < 1


@pytest.mark.case("h12")
def test_numpy_reads_the_same_clock():
    numpy = pytest.importorskip("numpy")
    with hermetic.sandbox(seed=1):
        assert str(numpy.datetime64("now")) == "2020-01-01T00:00:00"
        assert type(numpy.datetime64("2020-01-01T00:00:00").item()) is early_datetime


@pytest.mark.case("h12")
def test_pandas_reads_the_same_clock():
    pandas = pytest.importorskip("pandas")
    with hermetic.sandbox(seed=1, now="2021-06-01T12:00:00+00:00"):
        assert pandas.Timestamp.now(tz="UTC") == pandas.Timestamp("2021-06-01T12:00:00+00:00")
        assert pandas.to_datetime("now", utc=True).year == 2021


@pytest.mark.case("h33")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, -0.5, "1", None])
def test_an_impossible_sleep_fails_as_outside_and_leaves_the_clock_alone(value):
    def attempt():
        try:
            time.sleep(value)
        except Exception as error:
            return type(error)

    outside = attempt()
    with hermetic.sandbox(seed=1):
        assert attempt() is outside is not None
        assert time.time() == EPOCH_2020
        assert time.localtime().tm_year in (2019, 2020)


@pytest.mark.case("h34")
def test_many_readings_are_not_a_stuck_loop():
    with hermetic.sandbox(seed=1, spin_limit=2_000):
        for _ in range(10_000):
            time.perf_counter()
        for _ in range(10):
            for _ in range(1_500):
                time.time()
            time.sleep(0.001)


@pytest.mark.case("h34")
def test_a_stuck_loop_ends():
    with pytest.raises(hermetic.SandboxError, match=r"(?i)clock"):
        with hermetic.sandbox(seed=1, spin_limit=1_000):
            end = time.time() + 1
            while time.time() < end:
                pass


@pytest.mark.case("h34")
def test_a_stuck_loop_that_swallows_the_error_fails_at_the_end():
    readings = 0
    with pytest.raises(hermetic.SandboxError):
        with hermetic.sandbox(seed=1, spin_limit=100):
            while readings < 5_000:
                readings += 1
                try:
                    time.time()
                except Exception:
                    continue


@pytest.mark.case("h41")
def test_another_threads_readings_do_not_move_this_threads_clock():
    def elapsed_us() -> int:
        stop = threading.Event()
        with hermetic.sandbox(seed=1):
            reader = threading.Thread(target=lambda: [time.monotonic() for _ in iter(stop.is_set, True)], daemon=True)
            reader.start()
            begin = time.monotonic()
            sum(number * number for number in range(200_000))
            elapsed = time.monotonic() - begin
            stop.set()
            reader.join()
        return round(elapsed * 1e6)

    assert {elapsed_us() for _ in range(3)} == {1}


@pytest.mark.case("h46")
def test_functions_keep_their_identity():
    outside = time.time, os.urandom, time.sleep
    with hermetic.sandbox(seed=1):
        assert (time.time, os.urandom, time.sleep) == outside
        for function in (time.time, time.monotonic, time.sleep, os.urandom, os.listdir):
            assert pickle.loads(pickle.dumps(function)) is function
        assert (time.time.__name__, os.urandom.__name__, type(time.time).__name__) == (
            "time",
            "urandom",
            "builtin_function_or_method",
        )


@pytest.mark.case("h51")
def test_log_records_are_not_created_before_logging_was():
    with hermetic.sandbox(seed=1):
        record = logging.LogRecord("name", logging.INFO, "path", 1, "message", (), None)
        assert record.created == EPOCH_2020
        assert record.relativeCreated >= 0
        time.sleep(2)
        later = logging.LogRecord("name", logging.INFO, "path", 1, "message", (), None)
        assert later.relativeCreated - record.relativeCreated == pytest.approx(2000, abs=1)
    after = logging.LogRecord("name", logging.INFO, "path", 1, "message", (), None)
    assert 0 <= after.relativeCreated < 3.6e6 * 24
    assert "lazy_types" not in sys.modules or is_real(after.created)
