"""The public page of hermetic-sandbox 0.1.0, example by example: each documented name, option and default works here.

The examples are in our own words; the order is the page's. What the page lists as limitations is tested in `cases/`.
"""

from __future__ import annotations

import asyncio
import datetime
import gzip
import inspect
import json
import os
import random
import secrets
import shlex
import socket
import tempfile
import time
import uuid
import warnings
from pathlib import Path

import hermetic
import pytest

UTC = datetime.timezone.utc
EPOCH_2020 = 1_577_836_800
NOBODY = "203.0.113.9"


class TestOpening:
    """The context manager in one line, and what repeats under it."""

    def test_a_block_repeats_with_its_seed(self):
        def look(seed: int) -> tuple:
            with hermetic.sandbox(seed=seed):
                return time.time(), uuid.uuid4(), secrets.token_hex(8), [random.random() for _ in range(3)]

        assert look(42) == look(42)
        assert look(42)[1:] != look(43)[1:]

    def test_a_failing_run_in_ci_replays_at_home(self, project):
        project.write(
            tests__test_checkout="""
            import secrets, time
            def test_flaky():
                token = secrets.token_hex(4)
                assert not token, time.time()
            def test_solid(): pass
            """
        )
        failed = project.pytest("--hermetic-all", "--hermetic-record=journals/")
        [journal] = project.journals()
        local = project.pytest("tests/test_checkout.py::test_flaky", f"--hermetic-replay={journal}")
        assert local.outcomes()["failed"] == 1
        assert local.errors() == failed.errors()


class TestWhatItControls:
    """The page's table, row by row: the default, what happens, and the off switch."""

    def test_wall_clock_is_frozen_at_2020_in_utc(self):
        with hermetic.sandbox():
            assert time.time() == time.time() == EPOCH_2020
            assert datetime.datetime.now(UTC) == datetime.datetime(2020, 1, 1, tzinfo=UTC)
            assert time.gmtime()[:6] == (2020, 1, 1, 0, 0, 0)

    def test_sleep_moves_the_clock_and_never_waits(self):
        with hermetic.sandbox() as sb:
            begin = sb.real.monotonic()
            before = time.monotonic()
            time.sleep(5000)
            assert time.time() == EPOCH_2020 + 5000
            assert 5000 <= time.monotonic() - before < 5001
            assert sb.real.monotonic() - begin < 30

    @pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland", "America/Los_Angeles"])
    def test_naive_times_are_in_the_machines_zone(self, program, zone):
        code = """
        import datetime, time, hermetic
        with hermetic.sandbox():
            naive = datetime.datetime.now()
            assert naive == datetime.datetime.fromtimestamp(1577836800), naive
            assert datetime.date.today() == naive.date()
            assert time.localtime()[:5] == naive.timetuple()[:5]
            print(naive.isoformat(timespec="seconds"))
        """
        want = {"UTC": "2020-01-01T00:00:00", "Pacific/Auckland": "2020-01-01T13:00:00"}
        ran = program(code, env={"TZ": zone})
        assert ran.text.strip() == want.get(zone, "2019-12-31T16:00:00")

    def test_clock_off_leaves_time_real(self):
        with hermetic.sandbox(clock="off") as sb:
            assert abs(time.time() - sb.real.time()) < 60
            with pytest.raises(hermetic.SandboxError):
                sb.clock.advance(1)

    def test_monotonic_clocks_tick_by_a_microsecond(self):
        with hermetic.sandbox():
            for read in (time.monotonic, time.perf_counter):
                first, second = read(), read()
                assert second - first == pytest.approx(1e-6, abs=1e-9)

    @pytest.mark.parametrize("tick", [0, 0.5, 2])
    def test_tick_sets_how_far(self, tick):
        with hermetic.sandbox(tick=tick):
            first, second = time.monotonic(), time.monotonic()
            assert second - first == pytest.approx(tick, abs=1e-9)

    def test_a_deadline_poll_makes_progress(self):
        with hermetic.sandbox():
            polls, end = 0, time.monotonic() + 0.01
            while time.monotonic() < end:
                polls += 1
            assert 9_000 < polls < 11_000

    def test_all_randomness_is_seeded(self):
        with hermetic.sandbox(seed=7):
            assert random.random() == random.Random(7).random()
            drawn = os.urandom(8), uuid.uuid4(), secrets.randbits(64), random.SystemRandom().random()
        with hermetic.sandbox(seed=7):
            random.random()
            assert (os.urandom(8), uuid.uuid4(), secrets.randbits(64), random.SystemRandom().random()) == drawn

    def test_rng_seed_touches_only_random(self):
        def look() -> tuple:
            with hermetic.sandbox(seed=7, rng="seed"):
                return random.random(), uuid.uuid4()

        first, second = look(), look()
        assert first[0] == second[0]
        assert first[1] != second[1]

    def test_rng_off_touches_nothing(self):
        random.seed(99)
        wanted = random.Random(99).random()
        with hermetic.sandbox(seed=7, rng="off"):
            assert random.random() == wanted

    def test_the_callers_generator_continues_afterwards(self):
        random.seed(99)
        with hermetic.sandbox(seed=7):
            random.random()
        assert random.random() == random.Random(99).random()

    @pytest.mark.parametrize(
        "attempt",
        [
            lambda: socket.create_connection((NOBODY, 443), timeout=1),
            lambda: socket.socket().connect((NOBODY, 443)),
            lambda: socket.socket().connect_ex((NOBODY, 443)),
            lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", (NOBODY, 53)),
            lambda: socket.getaddrinfo("api.example.com", 443),
        ],
        ids=["create_connection", "connect", "connect_ex", "sendto", "getaddrinfo"],
    )
    def test_the_network_is_refused(self, attempt):
        with hermetic.sandbox():
            with pytest.raises(hermetic.NetworkBlockedError) as caught:
                attempt()
        assert isinstance(caught.value, (ConnectionRefusedError, hermetic.SandboxError))

    def test_error_handling_for_refused_connections_still_fits(self):
        with hermetic.sandbox(), pytest.raises(ConnectionRefusedError):
            socket.create_connection((NOBODY, 443), timeout=1)

    def test_loopback_and_unix_sockets_stay_open(self, listener, tmp_path):
        server, port = listener
        with hermetic.sandbox(), socket.create_connection(("127.0.0.1", port)) as client:
            peer, _ = server.accept()
            client.sendall(b"hello")
            assert peer.recv(5) == b"hello"
            peer.close()
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind(str(tmp_path / "s"))
            server.listen(1)
            with hermetic.sandbox():
                client.connect(str(tmp_path / "s"))

    def test_loopback_and_unix_sockets_can_be_closed(self, listener, tmp_path):
        _, port = listener
        with hermetic.sandbox(allow_loopback=False), pytest.raises(hermetic.NetworkBlockedError):
            socket.create_connection(("127.0.0.1", port))
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind(str(tmp_path / "s"))
            server.listen(1)
            with hermetic.sandbox(allow_unix=False), pytest.raises(hermetic.NetworkBlockedError):
                client.connect(str(tmp_path / "s"))

    def test_an_allowlist_opens_what_it_names(self, listener):
        _, port = listener
        with hermetic.sandbox(rng="seed", allow_loopback=False, network=[f"127.0.0.1:{port}"]):
            socket.create_connection(("127.0.0.1", port)).close()
            with pytest.raises(hermetic.NetworkBlockedError):
                socket.create_connection(("127.0.0.1", port ^ 1))

    def test_an_allowlist_with_all_randomness_warns(self):
        with pytest.warns(UserWarning):
            with hermetic.sandbox(network=["api.example.com:443"]):
                pass
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with hermetic.sandbox(network=["api.example.com:443"], rng="seed"):
                pass

    def test_the_file_system_is_isolated_on_request(self):
        before = os.getcwd(), os.environ.get("HOME"), tempfile.gettempdir()
        with hermetic.sandbox(fs="isolate") as sb:
            assert Path.cwd() == sb.fs.cwd
            assert Path.home() == sb.fs.home
            assert Path(tempfile.gettempdir()) == sb.fs.tmp
            Path("note").write_text("x")
            root = sb.fs.root
        assert not root.exists()
        assert (os.getcwd(), os.environ.get("HOME"), tempfile.gettempdir()) == before

    def test_isolation_without_moving(self):
        before = os.getcwd()
        with hermetic.sandbox(fs="isolate", chdir=False) as sb:
            assert os.getcwd() == before
            assert Path.home() == sb.fs.home

    def test_the_environment_is_changed_inside_and_restored(self, monkeypatch):
        monkeypatch.setenv("SHOP_MODE", "live")
        monkeypatch.setenv("SHOP_KEY", "k")
        monkeypatch.delenv("SHOP_NEW", raising=False)
        with hermetic.sandbox(env={"SHOP_MODE": "test", "SHOP_KEY": None}):
            assert os.environ["SHOP_MODE"] == "test"
            assert "SHOP_KEY" not in os.environ
            os.environ["SHOP_NEW"] = "1"
            del os.environ["SHOP_MODE"]
        assert (os.environ["SHOP_MODE"], os.environ["SHOP_KEY"]) == ("live", "k")
        assert "SHOP_NEW" not in os.environ

    def test_scrub_keeps_only_what_is_safe(self, monkeypatch):
        monkeypatch.setenv("SHOP_KEY", "k")
        with hermetic.sandbox(scrub_env=True):
            assert "SHOP_KEY" not in os.environ
            assert "PATH" in os.environ
        assert os.environ["SHOP_KEY"] == "k"

    def test_subsystems_are_independent(self):
        with hermetic.sandbox(clock="off", rng="off") as sb:
            assert abs(time.time() - sb.real.time()) < 60
            with pytest.raises(hermetic.NetworkBlockedError):
                socket.getaddrinfo("api.example.com", 443)


class TestHandle:
    def test_the_handle_moves_time_and_leads_out(self, listener):
        _, port = listener
        with hermetic.sandbox(seed=42, now="2021-06-01T00:00:00+00:00", allow_loopback=False) as sb:
            assert sb.seed == 42
            sb.clock.advance(3600)
            assert sb.clock.now() == datetime.datetime(2021, 6, 1, 1, tzinfo=UTC)
            sb.clock.set("2022-01-01")
            assert sb.clock.now() == datetime.datetime(2022, 1, 1, tzinfo=UTC)
            sb.clock.move_to("2023-01-01")
            assert time.gmtime().tm_year == 2023
            assert sb.real.time() > 1.7e9
            assert len(sb.real.urandom(16)) == 16
            assert sb.real.urandom(16) != sb.real.urandom(16)
            sb.allow_network(f"localhost:{port}")
            sb.allow_network(f"127.0.0.1:{port}")
            socket.create_connection(("127.0.0.1", port)).close()
            assert hermetic.current() is sb
        assert hermetic.current() is None

    def test_reading_the_clock_through_the_handle_does_not_tick(self):
        with hermetic.sandbox() as sb:
            before = time.monotonic()
            for _ in range(100):
                sb.clock.now()
            assert time.monotonic() - before == pytest.approx(1e-6, abs=1e-9)

    @pytest.mark.parametrize(
        "now",
        [
            "2021-06-01T00:00:00+00:00",
            "2021-06-01T02:00:00+02:00",
            "2021-06-01",
            datetime.datetime(2021, 6, 1),
            datetime.datetime(2021, 6, 1, tzinfo=UTC),
            1622505600,
            1622505600.0,
        ],
    )
    def test_now_takes_text_dates_and_seconds(self, now):
        with hermetic.sandbox(now=now):
            assert time.time() == 1622505600

    def test_a_generated_seed_can_be_used_again(self):
        with hermetic.sandbox() as sb:
            seed, drawn = sb.seed, random.random()
        assert isinstance(seed, int)
        with hermetic.sandbox(seed=seed):
            assert random.random() == drawn

    def test_a_decorated_function_gets_a_fresh_sandbox_for_each_call(self):
        @hermetic.sandbox(seed=3)
        def plain() -> tuple:
            time.sleep(10)
            return time.time(), random.random()

        @hermetic.sandbox(seed=3)
        async def waiting() -> tuple:
            time.sleep(10)
            return time.time(), random.random()

        assert plain() == plain() == asyncio.run(waiting()) == asyncio.run(waiting())
        assert plain()[0] == EPOCH_2020 + 10
        assert plain.__name__ == "plain"
        assert inspect.iscoroutinefunction(waiting)


class TestPytest:
    def test_marker_and_fixture(self, project):
        project.write(
            test_shop="""
            import pytest, random, socket, time, uuid

            @pytest.mark.hermetic
            def test_ids(): assert time.time() == 1577836800; print("ID", uuid.uuid4())

            @pytest.mark.hermetic(network="off", seed=7)
            def test_network():
                assert random.random() == random.Random(7).random()
                socket.getaddrinfo("203.0.113.9", 80)

            def test_travel(hermetic_sandbox):
                before = time.time(); hermetic_sandbox.clock.advance(86400); assert time.time() == before + 86400

            @pytest.mark.hermetic(now="2021-06-01")
            def test_both(hermetic_sandbox): assert hermetic_sandbox.clock.now().year == 2021

            def test_unmarked(): assert time.time() > 1.7e9
            """
        )
        ran = project.pytest("-s", "--hermetic-seed=1")
        assert ran.outcomes() == {"passed": 5}, ran.text
        ids = {line[line.index("ID") :] for line in ran.text.splitlines() if "ID" in line}
        again = project.pytest("-s", "--hermetic-seed=1")
        assert ids == {line[line.index("ID") :] for line in again.text.splitlines() if "ID" in line}

    def test_all_tests_and_opting_out(self, project):
        project.write(
            test_all="""
            import pytest, time
            def test_inside(): assert time.time() == 1577836800

            @pytest.mark.hermetic(off=True)
            def test_outside(hermetic_sandbox): assert time.time() > 1.7e9 and hermetic_sandbox is None
            """
        )
        assert project.pytest("--hermetic-all").outcomes() == {"passed": 2}

    def test_a_tests_seed_does_not_depend_on_the_others(self, project):
        project.write(
            test_draw="""
            import random
            def test_a(): print("A", random.random())
            def test_b(): assert 0, random.random()
            """
        )
        alone = project.pytest("--hermetic-all", "--hermetic-seed=99", "test_draw.py::test_b")
        after = project.pytest("--hermetic-all", "--hermetic-seed=99")
        spread = project.pytest("--hermetic-all", "--hermetic-seed=99", "-n2")
        other = project.pytest("--hermetic-all", "--hermetic-seed=100")
        assert alone.errors() == after.errors() == spread.errors() != other.errors()
        assert "99" in "".join(line for line in after.text.splitlines() if "base seed" in line)

    def test_a_failing_test_prints_a_command_that_reproduces_it(self, project):
        project.write(test_draw="import random\ndef test_draw(): assert 0, random.random()")
        failed = project.pytest("--hermetic-all")
        [command] = failed.lines("pytest ")
        again = project.pytest(*shlex.split(command)[1:])
        assert again.errors() == failed.errors()

    def test_the_hash_seed_is_part_of_the_command(self, project):
        project.write(test_draw="def test_draw(): assert 0")
        failed = project.pytest("--hermetic-all", env={"PYTHONHASHSEED": "77"})
        assert failed.lines("PYTHONHASHSEED=77 pytest ")


class TestLoop:
    """Record in CI, replay at home."""

    def test_only_failing_attempts_leave_journals(self, project):
        project.write(
            test_loop="""
            import random
            def test_good(): random.random()
            def test_bad(): assert 0, random.random()
            """
        )
        project.pytest("--hermetic-all", "--hermetic-record=journals/")
        [journal] = project.journals()
        index = json.loads((project.root / "journals" / "index.json").read_text())
        [entry] = index["journals"]
        assert (entry["file"], entry["test"]) == (journal.name, "test_loop.py::test_bad")

    def test_nothing_is_left_where_all_pass(self, project):
        project.write(test_loop="def test_good(): pass")
        project.pytest("--hermetic-all", "--hermetic-record=journals/")
        folder = project.root / "journals"
        assert not folder.exists() or list(folder.iterdir()) == []

    def test_replay_chooses_the_test_and_the_recorded_options_win(self, project):
        project.write(
            test_loop="""
            import time, pytest
            @pytest.mark.hermetic(tick=0.25)
            def test_bad():
                first = time.monotonic(); assert 0, time.monotonic() - first
            def test_good(): pass
            """
        )
        failed = project.pytest("--hermetic-all", "--hermetic-record=journals/")
        [journal] = project.journals()
        replayed = project.pytest(f"--hermetic-replay={journal}")
        assert replayed.outcomes()["failed"] == 1
        assert "passed" not in replayed.outcomes()
        assert replayed.errors() == failed.errors()

    @pytest.mark.filterwarnings("ignore::UserWarning")
    @pytest.mark.parametrize("name", ["kept.journal", "kept.json", "kept.json.gz", "kept.journal.gz"])
    def test_a_block_is_recorded_and_replayed_by_path(self, tmp_path, name):
        path = tmp_path / "below" / name
        with hermetic.sandbox(record=str(path)) as sb:
            assert sb.mode == "record"
            recorded = time.time(), os.urandom(8), random.random(), time.monotonic()
        content = path.read_bytes()
        if name.endswith(".gz"):
            content = gzip.decompress(content)
        if ".json" in name:
            assert json.loads(content)
        with hermetic.sandbox(replay=str(path)) as sb:
            assert sb.mode == "replay"
            assert (time.time(), os.urandom(8), random.random(), time.monotonic()) == recorded

    RECORD = "import hermetic, sys, time\nwith hermetic.sandbox(record=sys.argv[1]): time.time()"
    REPLAY = """
    import hermetic, sys, time, warnings
    warnings.simplefilter("ignore")
    with hermetic.sandbox(replay=sys.argv[1]) as sb: time.time(); print("ZONE", time.tzname[0])
    print("\\n".join(sb.replay_warnings))
    """

    def test_replay_warns_of_another_hash_seed_and_brings_the_recorded_zone(self, program, tmp_path):
        path = str(tmp_path / "kept.journal")
        recorded = program(self.RECORD, path, env={"TZ": "Pacific/Auckland", "PYTHONHASHSEED": "5"})
        assert recorded.code == 0, recorded.text
        replayed = program(self.REPLAY, path, env={"TZ": "UTC", "PYTHONHASHSEED": "6"})
        assert replayed.lines("ZONE") == ["ZONE NZST"], replayed.text
        assert "PYTHONHASHSEED" in replayed.text

    def test_replay_warns_of_another_zone_where_the_recording_names_none(self, program, tmp_path):
        path = str(tmp_path / "kept.journal")
        assert program(self.RECORD, path, env={"TZ": None}).code == 0
        replayed = program(self.REPLAY, path, env={"TZ": "Pacific/Auckland"})
        assert replayed.code == 0, replayed.text
        assert "time zone" in replayed.text

    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_a_journal_holds_names_of_variables_and_not_their_values(self, tmp_path, monkeypatch):
        monkeypatch.setenv("SHOP_TOKEN", "plum-secret-value")
        path = tmp_path / "kept.json"
        with hermetic.sandbox(record=str(path)):
            time.time()
        text = path.read_text()
        assert "SHOP_TOKEN" in text
        assert "plum-secret-value" not in text


class TestRecipes:
    def test_numpy_from_the_sandboxs_seed(self):
        numpy = pytest.importorskip("numpy")
        with hermetic.sandbox(seed=42) as sb:
            drawn = numpy.random.default_rng(sb.seed).random()
        assert drawn == numpy.random.default_rng(42).random()

    def test_pyfakefs_beside_a_sandbox(self, project):
        pytest.importorskip("pyfakefs")
        project.write(
            test_fake="""
            import os, time, pytest
            @pytest.mark.hermetic(fs="off")
            def test_fake(fs):
                fs.create_file("/shop/note", contents="plum")
                assert open("/shop/note").read() == "plum" and os.listdir("/shop") == ["note"]
                assert time.time() == 1577836800
            """
        )
        ran = project.pytest("-q")
        assert ran.outcomes() == {"passed": 1}, ran.text

    def test_coming_from_freezegun(self):
        with hermetic.sandbox(now="2021-06-01T12:00:00+00:00", tick=15) as sb:
            time.monotonic()
            assert time.time() == 1622548800, "tick moves the monotonic clocks only"
            sb.clock.move_to("2021-06-02T12:00:00+00:00")
            assert datetime.datetime.now(UTC) == datetime.datetime(2021, 6, 2, 12, tzinfo=UTC)
            assert datetime.datetime.now() == datetime.datetime.now(UTC).astimezone().replace(tzinfo=None)


class TestSummary:
    DEFAULTS = {
        "seed": None,
        "now": "2020-01-01T00:00:00+00:00",
        "tick": 1e-6,
        "clock": "virtual",
        "rng": "all",
        "network": "block",
        "allow_loopback": True,
        "allow_unix": True,
        "fs": "off",
        "chdir": True,
        "env": None,
        "scrub_env": False,
        "record": None,
        "replay": None,
        "strict_replay": True,
        "deep_datetime": True,
        "spin_limit": 1_000_000,
    }

    def test_every_documented_option_can_be_given_its_default(self):
        with hermetic.sandbox(**self.DEFAULTS):
            assert time.time() == EPOCH_2020

    @pytest.mark.parametrize("option", DEFAULTS)
    def test_the_defaults_are_the_documented_ones(self, option):
        parameter = inspect.signature(hermetic.sandbox).parameters[option]
        assert parameter.default == self.DEFAULTS[option]
        assert parameter.kind is (parameter.POSITIONAL_OR_KEYWORD if option == "seed" else parameter.KEYWORD_ONLY)

    def test_record_and_replay_exclude_each_other(self, tmp_path):
        with pytest.raises(hermetic.SandboxError):
            hermetic.sandbox(record=str(tmp_path / "a"), replay=str(tmp_path / "b"))

    def test_there_is_one_sandbox_at_a_time(self):
        with hermetic.sandbox(), pytest.raises(hermetic.SandboxActiveError):
            with hermetic.sandbox():
                pass
        with hermetic.sandbox():
            pass

    def test_the_tree_of_errors(self):
        assert issubclass(hermetic.SandboxActiveError, hermetic.SandboxError)
        assert issubclass(hermetic.NetworkBlockedError, (hermetic.SandboxError, ConnectionRefusedError))
        assert issubclass(hermetic.NetworkBlockedError, ConnectionRefusedError)
        assert issubclass(hermetic.ReplayError, hermetic.SandboxError)
        assert issubclass(hermetic.ReplayExhausted, hermetic.ReplayError)
        assert issubclass(hermetic.ReplayMismatch, hermetic.ReplayError)
        assert issubclass(hermetic.SandboxError, Exception)

    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_lenient_replay_continues_from_the_virtual_clock(self, tmp_path):
        path = str(tmp_path / "kept.journal")
        with hermetic.sandbox(record=path):
            time.time()
        with pytest.warns(UserWarning):
            with hermetic.sandbox(replay=path, strict_replay=False):
                readings = [time.time() for _ in range(3)]
        assert len(readings) == 3

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("now", "yesterday"),
            ("now", True),
            ("tick", -1),
            ("tick", float("nan")),
            ("clock", "frozen"),
            ("rng", "some"),
            ("network", "closed"),
            ("network", ["https://api.example.com"]),
            ("network", ["api.example.com:70000"]),
            ("fs", "fake"),
            ("seed", "seven"),
            ("seed", True),
            ("spin_limit", -1),
        ],
    )
    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_an_impossible_value_is_named_and_nothing_is_entered(self, option, value):
        shown = value[0] if isinstance(value, list) else value
        with pytest.raises((hermetic.SandboxError, ValueError, TypeError)) as caught:
            with hermetic.sandbox(**{option: value}):
                pass
        assert str(shown) in str(caught.value)
        assert option in str(caught.value) or "allow" in str(caught.value)
        assert hermetic.current() is None
        assert abs(time.time() - hermetic.real.time()) < 60
        with hermetic.sandbox():
            pass

    def test_an_unknown_option_is_refused(self):
        with pytest.raises(TypeError, match="colour"):
            hermetic.sandbox(colour="red")
