"""Recording and replaying through the sandbox itself."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import hermetic
import pytest
from hermetic import _native


def work():
    return [
        time.time(),
        time.monotonic(),
        os.urandom(4).hex(),
        random.random(),
        random.Random().random(),
        time.perf_counter(),
        os.getrandom(3).hex(),
    ]


def record(path, act=work, **options):
    with hermetic.sandbox(record=path, **options) as sb:
        assert sb.mode == "record"
        return act(), sb


def replay(path, act=work, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with hermetic.sandbox(replay=path, **options) as sb:
            assert sb.mode == "replay"
            return act(), sb


def head(path) -> dict:
    return json.loads(_native.read_journal(str(path))[0])


@pytest.mark.parametrize("name", ["x.journal", "x.json", "x.json.gz", "x.journal.gz", "made/up/x"])
def test_the_same_values_return(tmp_path, name):
    path = tmp_path / name
    values, sb = record(path)
    assert sb.journal_path == str(path)
    assert values[0] > 1.7e9
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    for _ in range(2):
        again, sb = replay(path)
        assert again == values
        assert sb.journal_path == str(path)


def test_two_recordings_differ(tmp_path):
    assert record(tmp_path / "a")[0] != record(tmp_path / "b")[0]


def test_what_is_pinned_stays_pinned(tmp_path):
    path = tmp_path / "x.journal"
    values, sb = record(path, now="2021-06-01", seed=7)
    assert values[0] == 1622505600.0
    assert values[3] == random.Random(7).random()
    assert sb.seed == 7
    with hermetic.sandbox(now="2021-06-01", seed=7):
        assert work() == values
    assert replay(path)[0] == values
    assert head(path)["config"]["pinned"] == ["now", "seed"]


def test_the_seed_returns(tmp_path):
    values, sb = record(tmp_path / "x", lambda: (random.random(), hermetic.current().seed))
    assert values[1] == sb.seed is not None
    assert replay(tmp_path / "x", lambda: (random.random(), hermetic.current().seed))[0] == values


def test_the_recorded_configuration_wins(tmp_path):
    record(tmp_path / "x", work, tick=0.25, now="2021-06-01", seed=3, order="off")
    values, sb = replay(tmp_path / "x", work, tick=0.5, now="1999-01-01", seed=4)
    assert values[0] == 1622505600.0
    assert sb.seed == 3


def test_the_head_says_what_ran(tmp_path, monkeypatch):
    monkeypatch.setenv("H_SECRET", "do not tell")
    record(tmp_path / "x.json", work, network=["api.example.com:443"], rng="seed")
    told = head(tmp_path / "x.json")
    assert told["config"]["network"] == ["api.example.com:443"]
    assert told["config"]["clock"] == "virtual"
    assert told["fingerprint"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert told["hermetic"] == hermetic.__version__
    assert "H_SECRET" in told["env"]
    assert "do not tell" not in (tmp_path / "x.json").read_text()


def test_an_empty_journal_is_small(tmp_path):
    record(tmp_path / "x.journal", lambda: None)
    assert (tmp_path / "x.journal").stat().st_size <= 1536


def test_a_relative_path_is_meant_where_it_was_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record("x.journal", work, fs="isolate")
    assert (tmp_path / "x.journal").exists()


def test_sleep_is_real_while_recording_and_not_while_replaying(tmp_path):
    def nap():
        start = time.monotonic()
        time.sleep(0.05)
        return time.monotonic() - start

    before = hermetic.real.monotonic()
    values, _ = record(tmp_path / "x", nap)
    assert hermetic.real.monotonic() - before >= 0.05
    assert values >= 0.05
    assert replay(tmp_path / "x", nap)[0] == values


def once():
    return os.urandom(4)


def twice():
    return once() + once()


def never():
    return None


class TestDivergence:
    def test_more_than_recorded(self, tmp_path):
        record(tmp_path / "x", once)
        with pytest.raises(hermetic.ReplayError):
            replay(tmp_path / "x", twice)

    def test_less_than_recorded(self, tmp_path):
        record(tmp_path / "x", once)
        with pytest.raises(hermetic.ReplayMismatch):
            replay(tmp_path / "x", never)

    def test_another_kind(self, tmp_path):
        record(tmp_path / "x", once)
        with pytest.raises(hermetic.ReplayError) as caught:
            replay(tmp_path / "x", time.time)
        assert "clock" in str(caught.value)
        assert "random bytes" in str(caught.value)

    def test_another_length(self, tmp_path):
        record(tmp_path / "x", lambda: [os.urandom(size) for size in (4,)])
        with pytest.raises(hermetic.ReplayMismatch):
            replay(tmp_path / "x", lambda: [os.urandom(size) for size in (5,)])

    def test_it_stops_the_test_there(self, tmp_path):
        reached = []

        def go_on():
            twice()
            for number in range(1000):
                reached.append(number)

        record(tmp_path / "x", once)
        with pytest.raises(hermetic.ReplayError):
            replay(tmp_path / "x", go_on)
        assert len(reached) < 1000

    def test_swallowing_it_does_not_help(self, tmp_path):
        def swallow():
            try:
                twice()
                for _ in range(100):
                    pass
            except Exception:
                pass

        record(tmp_path / "x", once)
        with pytest.raises(hermetic.ReplayError):
            replay(tmp_path / "x", swallow)

    def test_not_strict_goes_on(self, tmp_path):
        record(tmp_path / "x", once)
        values, _ = replay(tmp_path / "x", lambda: [once() for _ in range(3)], strict_replay=False)
        assert len(set(values)) == 3


UNUSABLE = {
    "absent": (None, "cannot read"),
    "empty": (b"", "x.journal"),
    "foreign": (b"PK\x03\x04 something else entirely, and long enough to have a head of its own" * 4, "x.journal"),
    "json of somebody else": (b'{"format": "other"}', "x.journal"),
    "the reference's own": (b'{"format": "hermetic-journal", "version": 1, "events": {}}', "x.journal"),
}


@pytest.mark.parametrize("content, told", UNUSABLE.values(), ids=list(UNUSABLE))
def test_a_file_that_is_no_journal(tmp_path, content, told):
    path = tmp_path / "x.journal"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(hermetic.ReplayMismatch, match=told):
        replay(path)
    assert hermetic.current() is None


def test_a_journal_cut_anywhere_is_refused_or_read(tmp_path):
    record(tmp_path / "x.journal")
    whole = (tmp_path / "x.journal").read_bytes()
    for length in range(0, len(whole), 97):
        (tmp_path / "y.journal").write_bytes(whole[:length])
        with pytest.raises(hermetic.ReplayMismatch):
            _native.read_journal(str(tmp_path / "y.journal"))


class TestWarnings:
    def told(self, path, **changes) -> list[str]:
        text = json.loads(path.read_text())
        text["head"]["fingerprint"].update(changes.get("fingerprint", {}))
        text["head"]["config"].update(changes.get("config", {}))
        text["head"].update(changes.get("head", {}))
        path.write_text(json.dumps(text))
        with pytest.warns(UserWarning):
            with hermetic.sandbox(replay=path) as sb:
                work()
        return sb.replay_warnings

    @pytest.mark.parametrize(
        "changes, told",
        [
            ({"fingerprint": {"python": "3.99.0"}}, "Python version"),
            ({"fingerprint": {"cpu_count": 77}}, "CPU count"),
            ({"fingerprint": {"git_revision": "0" * 40}}, "git revision"),
            ({"fingerprint": {"hash_seed_env": "77"}}, "PYTHONHASHSEED"),
            ({"config": {"network": ["example.com:443"]}}, "traffic"),
            ({"head": {"test": "other.py::test_other"}}, "another test: other.py::test_other"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_told(self, tmp_path, changes, told):
        record(tmp_path / "x.json")
        assert any(told in text for text in self.told(tmp_path / "x.json", **changes))


CRASHES = {
    "os._exit": "os._exit(3)",
    "a kill": "os.kill(os.getpid(), 9)",
    "a segfault": "import ctypes; ctypes.string_at(0)",
}


@pytest.mark.parametrize("crash", CRASHES.values(), ids=list(CRASHES))
def test_a_crash_leaves_a_readable_journal(tmp_path, crash):
    code = f"""
import hermetic, os
with hermetic.sandbox(record={str(tmp_path / "x.journal")!r}):
    print(os.urandom(4).hex(), flush=True)
    {crash}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode in (3, -signal.SIGKILL, -signal.SIGSEGV)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith("x.journal.part-")
    text, raw, events = _native.read_journal(str(left))
    assert events >= 1
    assert bytes.fromhex(done.stdout.strip()) in raw
    _native.finish_journal(str(left), str(tmp_path / "y.json"))
    assert done.stdout.strip() in Path(tmp_path / "y.json").read_text()


def test_automatic_recordings_share_a_scratch_file(tmp_path):
    scratch = tmp_path / "scratch.journal"
    kept = []
    for number in range(3):
        sandbox = hermetic.Sandbox(automatic=True, record=scratch, test_id=f"test_{number}")
        with sandbox:
            drawn = os.urandom(4)
        if number != 1:
            sandbox.keep_journal(tmp_path / f"{number}.json")
            kept.append((number, drawn))
        else:
            sandbox.discard_journal()
    for number, drawn in kept:
        assert head(tmp_path / f"{number}.json")["test"] == f"test_{number}"
        assert drawn.hex() in (tmp_path / f"{number}.json").read_text()
    assert not (tmp_path / "1.json").exists()


def test_console_script_shows_it(tmp_path):
    record(tmp_path / "x.journal", once)
    done = subprocess.run(
        [sys.executable, "-m", "hermetic", "journal", "show", str(tmp_path / "x.journal")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done
    assert "test_sandbox_journal.py" in done.stdout
