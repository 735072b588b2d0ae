"""Recording and replaying: the peer's defects h35 to h39, h57 and h58, absent here."""

from __future__ import annotations

import json
import logging
import random
import secrets
import threading
import time

import hermetic
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def kept(tmp_path):
    return str(tmp_path / "kept.journal")


CRASHES = {
    "exit": ("import os; os._exit(3)", ()),
    "kill": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", ()),
    "segfault": ("import ctypes; ctypes.string_at(8)", ("-p", "no:faulthandler")),
    "time-out": (
        "import threading; threading.Event().wait(30)",
        ("--timeout=1", "--timeout-method=thread"),
    ),
}


@pytest.mark.case("h35")
@pytest.mark.parametrize("way", CRASHES)
def test_a_crash_leaves_the_events_up_to_it(project, program, way):
    code, options = CRASHES[way]
    if way == "time-out":
        pytest.importorskip("pytest_timeout")
    project.write(test_crash=f"import time\ndef test_crash():\n    time.time(); time.time()\n    {code}\n")
    ran = project.pytest("-q", "--hermetic-all", "--hermetic-record=journals", *options)
    assert ran.code not in (0, 5), ran.text
    left = [path for path in (project.root / "journals").glob("*") if path.name != "index.json"]
    assert len(left) == 1, ran.text
    shown = program("import sys; from hermetic._console import main; sys.exit(main())", "journal", "show", str(left[0]))
    assert shown.code == 0, shown.text
    assert "test_crash" in shown.text
    assert shown.text.count("test_crash.py:3") >= 2, shown.text


@pytest.mark.case("h36")
def test_a_long_run_replays_to_its_end(kept):
    def work() -> float:
        for _ in range(120_000):
            last = time.time()
        return last

    with hermetic.sandbox(record=kept):
        recorded = work()
    with hermetic.sandbox(replay=kept):
        assert work() == recorded


@pytest.mark.case("h37")
def test_a_replay_that_uses_nothing_is_an_error(kept):
    with hermetic.sandbox(record=kept):
        time.time()
        time.time()
    with pytest.raises(hermetic.ReplayError, match=r"2|left"):
        with hermetic.sandbox(replay=kept):
            pass


@pytest.mark.case("h37")
def test_an_added_reading_never_shifts_the_ones_after_it(kept):
    log = logging.Logger("quiet")
    log.addHandler(logging.NullHandler())

    def work(verbose: bool) -> float:
        if verbose:
            log.warning("a line added before replaying reads the clock once")
        begin = time.time()
        time.sleep(0.01)
        return time.time() - begin

    with hermetic.sandbox(record=kept):
        recorded = work(False)
    try:
        with hermetic.sandbox(replay=kept):
            replayed = work(True)
    except hermetic.ReplayError as error:
        assert "logging" in str(error)
    else:
        assert replayed == recorded


@pytest.mark.case("h38")
@pytest.mark.parametrize("extra", ["secrets.token_hex(4)", "secrets.token_hex(9)", "time.time()"])
def test_a_swallowed_divergence_fails_all_the_same(kept, extra):
    names = {"secrets": secrets, "time": time}
    with hermetic.sandbox(record=kept):
        secrets.token_hex(4)
    with pytest.raises(hermetic.ReplayError):
        with hermetic.sandbox(replay=kept):
            secrets.token_hex(4)
            try:
                eval(extra, names)
            except Exception:
                pass


@pytest.mark.case("h38")
def test_a_swallowed_divergence_fails_the_test(project):
    project.write(
        test_tokens="""
        import os, secrets
        def test_tokens():
            secrets.token_hex(4)
            try:
                if os.environ.get("MORE"): secrets.token_hex(4)
            except Exception: pass
            assert os.environ.get("MORE")
        """
    )
    project.pytest("-q", "--hermetic-all", "--hermetic-record=journals")
    [journal] = project.journals()
    ran = project.pytest("-q", f"--hermetic-replay={journal}", env={"MORE": "1"})
    assert ran.code == 1, ran.text
    assert "test_tokens.py" in ran.text
    assert "swallowed" in ran.text or "Replay" in ran.text


@pytest.mark.case("h39")
def test_threads_of_one_name_are_told_apart(kept):
    def work(count: int) -> list[list[float]]:
        readings: list[list[float]] = [[] for _ in range(count)]

        def read(number: int) -> None:
            readings[number] += [time.time() for _ in range(50)]

        threads = [threading.Thread(target=read, args=(number,), name="worker") for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return readings

    with hermetic.sandbox(record=kept):
        recorded = work(4)
    with hermetic.sandbox(replay=kept):
        assert work(4) == recorded


@pytest.mark.case("h57")
def test_what_is_pinned_stays_pinned_while_recording(kept):
    with hermetic.sandbox(seed=5, now="2021-01-01", record=kept) as sb:
        assert (time.gmtime().tm_year, sb.seed) == (2021, 5)
        assert random.random() == random.Random(5).random()
        inside = random.Random().random()
    with hermetic.sandbox(seed=5):
        assert random.Random().random() == inside


@pytest.mark.case("h57")
def test_what_is_not_pinned_is_real_while_recording(tmp_path):
    path = tmp_path / "kept.json"
    with hermetic.sandbox(record=str(path)) as sb:
        assert abs(time.time() - sb.real.time()) < 60
        begin = sb.real.monotonic()
        time.sleep(0.05)
        assert sb.real.monotonic() - begin >= 0.05
    assert json.loads(path.read_text())


@pytest.mark.case("h58")
@pytest.mark.parametrize(
    "options", [(), ("-n2",), ("--cov=.",), ("--timeout=5",)], ids=["plain", "xdist", "cov", "timeout"]
)
def test_a_replay_goes_with_other_plugins(project, options):
    project.write(
        test_values="""
        import time, secrets
        def test_values(): assert 0, (time.time(), secrets.token_hex(4))
        def test_other(): pass
        """
    )
    recorded = project.pytest("--hermetic-all", "--hermetic-record=journals")
    [journal] = project.journals()
    replayed = project.pytest(f"--hermetic-replay={journal}", *options)
    assert replayed.outcomes()["failed"] == 1, replayed.text
    assert "passed" not in replayed.outcomes()
    assert recorded.errors()[0] == replayed.errors()[0], replayed.text
