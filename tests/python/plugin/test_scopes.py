"""Fixtures wider than a test: seeded from their own scope, in a sandbox of their own."""

from __future__ import annotations

WIDE = """
import os, time, uuid, pytest
@pytest.fixture(scope="session")
def wide(): return uuid.uuid4()
@pytest.fixture(scope="module")
def narrow(): return uuid.uuid4()
def test_1(): print("ONE", uuid.uuid4())
def test_2(wide, narrow): print("TWO", wide, narrow, uuid.uuid4())
def test_3(wide, narrow): print("THREE", wide, narrow, uuid.uuid4())
"""


def test_values_do_not_depend_on_the_test_that_asks_first(suite):
    suite.write({"test_a.py": WIDE})
    everything = suite.run("-s", "--hermetic-all", "--hermetic-seed=5")
    alone = suite.run("-s", "--hermetic-all", "--hermetic-seed=5", "test_a.py::test_3")
    assert everything.counts == {"passed": 3}
    assert everything.said("THREE") == alone.said("THREE")
    two, three = everything.said("TWO")[0].split(), everything.said("THREE")[0].split()
    assert two[:2] == three[:2]
    assert len({*two, *three}) == 4


def test_asking_does_not_change_what_the_test_draws(suite):
    suite.write(
        {"test_a.py": WIDE.replace("test_2(wide, narrow)", "test_2(request)").replace("wide, narrow, uuid", "uuid")}
    )
    suite.write(
        {
            "test_b.py": """
            import random, uuid, pytest
            @pytest.fixture(scope="session", params=[0, 1])
            def heavy(request):
                return [random.random() for _ in range(1000)][:1] if request.param else []
            @pytest.mark.parametrize("ask", [0, 1])
            @pytest.mark.hermetic(seed=3)
            def test_draw(ask, request):
                if ask: request.getfixturevalue("only")
                print("DRAWN", random.random(), uuid.uuid4())
            @pytest.fixture(scope="session")
            def only(): return [random.random() for _ in range(1000)]
            """
        }
    )
    drawn = suite.run("-s", "test_b.py").said("DRAWN")
    assert len(drawn) == 2 and drawn[0] == drawn[1]


def test_parameters_of_one_fixture_draw_different_values(suite):
    suite.write(
        {
            "test_a.py": """
            import uuid, pytest
            @pytest.fixture(scope="module", params=["a", "b"])
            def wide(request): return uuid.uuid4()
            def test_a(wide): print("WIDE", wide)
            """
        }
    )
    drawn = suite.run("-s", "--hermetic-all").said("WIDE")
    assert len(drawn) == len(set(drawn)) == 2


def test_environment_changes_stay_until_the_fixture_takes_them_back(suite):
    suite.write(
        {
            "test_a.py": """
            import os, pytest
            @pytest.fixture(scope="session")
            def server():
                os.environ["SERVER_URL"] = "http://127.0.0.1:1"
                old = os.environ.pop("OLD")
                yield
                del os.environ["SERVER_URL"]
                os.environ["OLD"] = old
            @pytest.fixture(scope="module")
            def narrow():
                os.environ["NARROW"] = "1"
                yield
                del os.environ["NARROW"]
            def test_1(request):
                request.getfixturevalue("server")
                assert os.environ["SERVER_URL"] and "OLD" not in os.environ
            def test_2(server, narrow):
                assert os.environ["SERVER_URL"] and os.environ["NARROW"] and "OLD" not in os.environ
                os.environ["NARROW"] = "2"
            def test_3(): assert os.environ["NARROW"] == "1"
            """,
            "test_b.py": "import os\ndef test_4(): assert 'SERVER_URL' in os.environ and 'NARROW' not in os.environ\n",
            "conftest.py": """
            import os
            def pytest_unconfigure(): print("END", os.environ.get("SERVER_URL"), os.environ.get("OLD"))
            """,
        }
    )
    for arguments in ((), ("--hermetic-all",)):
        outcome = suite.run("-s", *arguments, environment={"OLD": "old"})
        assert outcome.said("END") == ["None old"]
        if arguments:
            assert outcome.counts == {"passed": 4}


def test_setup_of_the_asking_test_is_hidden_from_the_fixture(suite):
    suite.write(
        {
            "test_a.py": """
            import os, pytest
            @pytest.fixture(scope="session")
            def wide():
                os.environ["MADE"] = "1"
                return os.environ.get("COLOUR"), os.getcwd()
            @pytest.mark.hermetic(env={"COLOUR": "red"}, fs="isolate")
            def test_1(wide):
                assert os.environ["COLOUR"] == "red" and os.environ["MADE"] == "1"
                assert wide[0] is None and wide[1] != os.getcwd()
            def test_2(wide):
                assert "COLOUR" not in os.environ and os.environ["MADE"] == "1"
                assert wide[1] == os.getcwd()
            """
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 2}


def test_time_goes_on_between_setup_and_teardown(suite):
    suite.write(
        {
            "test_a.py": """
            import time, uuid, pytest
            @pytest.fixture(scope="module")
            def timed():
                start, wall, name = time.monotonic(), time.time(), uuid.uuid4()
                time.sleep(10)
                yield
                assert 10 < time.monotonic() - start < 11
                assert time.time() - wall == 10
                assert name != uuid.uuid4()
            def test_a(timed): assert time.gmtime()[:6] == (2020, 1, 1, 0, 0, 0)
            def test_b(timed): time.sleep(5)
            """
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 2}


def test_markers_of_the_scope_decide(suite):
    suite.write(
        {
            "test_a.py": """
            import time, pytest
            pytestmark = pytest.mark.hermetic(now="2021-01-01", seed=4)
            @pytest.fixture(scope="module")
            def year(): return time.gmtime().tm_year
            @pytest.mark.hermetic(now="2025-01-01")
            def test_a(year): assert (year, time.gmtime().tm_year) == (2021, 2025)
            """,
            "test_b.py": """
            import time, pytest
            pytestmark = pytest.mark.hermetic(off=True)
            @pytest.fixture(scope="module")
            def year(): return time.gmtime().tm_year
            @pytest.mark.hermetic(off=False)
            def test_a(year): assert year > 2020 and time.gmtime().tm_year == 2020
            """,
            "test_c.py": """
            import time, pytest
            @pytest.fixture(scope="module")
            def year(): return time.gmtime().tm_year
            @pytest.mark.hermetic
            def test_a(year): assert year == 2020
            def test_b(year): assert time.gmtime().tm_year > 2020
            """,
        }
    )
    assert suite.run().counts == {"passed": 4}


def test_wide_setup_that_fails_and_one_that_asks_for_another(suite):
    suite.write(
        {
            "test_a.py": """
            import time, pytest
            @pytest.fixture(scope="session")
            def inner(): return time.gmtime().tm_year
            @pytest.fixture(scope="module")
            def outer(request):
                time.sleep(7)
                assert request.getfixturevalue("inner") == 2020
                assert time.gmtime()[:6] == (2020, 1, 1, 0, 0, 7)
                request.addfinalizer(lambda: print("FINAL", time.gmtime()[:6]))
                raise RuntimeError("broken")
            def test_a(outer): pass
            def test_b(): assert time.gmtime()[:6] == (2020, 1, 1, 0, 0, 0)
            """
        }
    )
    outcome = suite.run("-s", "--hermetic-all")
    assert outcome.counts == {"passed": 1, "error": 1}
    assert outcome.said("FINAL") == ["(2020, 1, 1, 0, 0, 7)"]


def test_user_sandbox_held_by_a_session_fixture_stays(suite):
    suite.write(
        {
            "conftest.py": """
            import hermetic, pytest
            @pytest.fixture(scope="session", autouse=True)
            def held():
                with hermetic.sandbox(seed=1, now="2033-01-01") as sb:
                    yield sb
            """,
            "test_a.py": """
            import time, hermetic
            def test_a(held): assert hermetic.current() is held and time.gmtime().tm_year == 2033
            def test_b(held): assert hermetic.current() is held and time.gmtime().tm_year == 2033
            """,
        }
    )
    assert suite.run().counts == {"passed": 2}
    assert suite.run("--hermetic-all").counts == {"passed": 2}


def test_server_thread_of_a_session_fixture_answers_every_test(suite):
    suite.write(
        {
            "test_a.py": """
            import http.server, threading, urllib.request, pytest
            class Handler(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    self.send_response(200); self.end_headers(); self.wfile.write(b"hello")
                def log_message(self, *arguments): pass
            @pytest.fixture(scope="session")
            def url():
                server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
                thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
                thread.start()
                yield f"http://127.0.0.1:{server.server_port}/"
                server.shutdown(); thread.join(); server.server_close()
            @pytest.mark.parametrize("number", range(3))
            def test_get(url, number): assert urllib.request.urlopen(url, timeout=20).read() == b"hello"
            """
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 3}


SERVERS = """
import os, queue, threading, pytest
class Server:
    # A thread that draws bytes when it is asked for some.
    def __init__(self):
        self.asked, self.told = queue.Queue(), queue.Queue()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
    def serve(self):
        while self.asked.get():
            self.told.put(os.urandom(8).hex())
    def draw(self):
        self.asked.put(True)
        return self.told.get()
    def end(self):
        self.asked.put(None)
        self.thread.join()
def served():
    server = Server()
    yield server
    server.end()
whole = pytest.fixture(scope="session")(lambda: (yield from served()))
wide = pytest.fixture(scope="module")(lambda: (yield from served()))
narrow = pytest.fixture(lambda: (yield from served()))
@pytest.mark.parametrize("number", range(2))
def test_draw(whole, wide, narrow, number):
    print("DREW", *(one.draw() for one in (whole, wide, narrow)), os.urandom(8).hex())
    assert not os.environ.get("FAIL")
"""


def test_the_first_thread_of_a_test_draws_other_bytes_than_those_of_its_fixtures(suite):
    suite.write({"test_a.py": SERVERS})
    first, second = (suite.run("-s", "--hermetic-all", "--hermetic-seed=7").said("DREW") for _ in range(2))
    assert first == second
    drawn = " ".join(first).split()
    assert len(drawn) == len(set(drawn)) == 8, first

    fails = {"FAIL": "1"}
    recording = ["-s", "--hermetic-all", "--hermetic-record=journals", "-k", "0"]
    recorded = suite.run(*recording, environment=fails).said("DREW")
    (journal,) = suite.journals()
    replayed = suite.run("-s", f"--hermetic-replay={journal}", environment=fails)
    assert replayed.counts["failed"] == 1
    assert replayed.said("DREW") == recorded


def test_a_program_that_a_session_fixture_has_started_does_not_hold_the_time_of_the_test_that_asked_first(suite):
    suite.write(
        {
            "test_a.py": """
            import subprocess, time, hermetic, pytest
            @pytest.fixture(scope="session")
            def program():
                child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
                yield child
                child.communicate()
            def test_wait(program):
                begin = hermetic.real.monotonic()
                time.sleep(3600)
                assert hermetic.real.monotonic() - begin < 30
            """
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 1}
