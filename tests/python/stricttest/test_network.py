"""The socket guard through real runs: allowlists, refusals that nothing hides, the order of floor and sandbox."""

from __future__ import annotations

import re

import pytest

HEAD = """
import asyncio, contextlib, ctypes, os, socket, sys, threading
import concurrent.futures as futures
import re

import pytest
from stricttest import NetworkBlocked

@contextlib.contextmanager
def server(family=socket.AF_INET, address=("127.0.0.1", 0)):
    with socket.socket(family) as own:
        own.bind(address)
        own.listen()
        yield own.getsockname()
"""


def run(floored, body: str, *options: str, **settings):
    floored.settings(**settings)
    floored.file("test_net.py", HEAD + body)
    return floored.pytest("-q", *options)


REFUSED = {
    "connect": "socket.socket().connect(('203.0.113.9', 443))",
    "connect-ex": "socket.socket().connect_ex(('203.0.113.9', 443))",
    "create-connection": "socket.create_connection(('203.0.113.9', 443))",
    "sendto": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('203.0.113.9', 443))",
    "sendmsg": "socket.socket(type=socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, ('203.0.113.9', 443))",
    "connect-by-name": "socket.socket().connect(('db.example.invalid', 443))",
    "sendto-by-name": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('db.example.invalid', 443))",
    "getaddrinfo": "socket.getaddrinfo('db.example.invalid', 443)",
    "gethostbyname": "socket.gethostbyname('db.example.invalid')",
    "gethostbyname-ex": "socket.gethostbyname_ex('db.example.invalid')",
    "gethostbyaddr": "socket.gethostbyaddr('203.0.113.9')",
    "getfqdn": "socket.getfqdn('203.0.113.9')",
    "getnameinfo": "socket.getnameinfo(('203.0.113.9', 443), 0)",
    "loopback": "socket.create_connection(('127.0.0.1', 9))",
    "loopback-name": "socket.create_connection(('localhost', 9))",
    "mapped": "socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', 9))",
    "unix": "socket.socket(socket.AF_UNIX).connect('/run/no.sock')",
    "unix-dots": "socket.socket(socket.AF_UNIX).connect(os.environ['HOME'] + '/../../no.sock')",
}


@pytest.mark.parametrize("how", REFUSED)
def test_each_way_out_is_refused(floored, how):
    ran = run(floored, f"def test_x():\n    with pytest.raises(NetworkBlocked):\n        {REFUSED[how]}\n")
    assert ran.code == 0, ran.text


def test_calls_below_python_are_refused_by_libc_and_fail_the_test(floored):
    body = """
def test_ctypes():
    libc = ctypes.CDLL(None, use_errno=True)
    address = (2).to_bytes(2, sys.byteorder) + (443).to_bytes(2, "big") + bytes([203, 0, 113, 9]) + bytes(8)
    own = socket.socket()
    assert libc.connect(own.fileno(), address, len(address)) == -1

def test_raw_module():
    import _socket
    try:
        _socket.socket().connect(("203.0.113.9", 444))
    except BaseException:
        pass
"""
    ran = run(floored, body)
    assert ran.code == 1 and "2 failed" in ran.text, ran.text
    assert "203.0.113.9:443" in ran.text and "203.0.113.9:444" in ran.text and "test_net.py:" in ran.text


def test_libpq_is_refused_and_named(floored):
    pytest.importorskip("psycopg")
    body = """
import psycopg
def test_libpq():
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect("host=127.0.0.1 port=5999 connect_timeout=5")
"""
    ran = run(floored, body)
    assert ran.code == 1 and "127.0.0.1:5999" in ran.text, ran.text


SWALLOWED = {
    "bare-except": "    try: go()\n    except: pass\n",
    "thread": "    own = threading.Thread(target=go); own.start(); own.join()\n",
    "future": "    futures.ThreadPoolExecutor(1).submit(go)\n",
    "gather": (
        "    async def one(): go()\n"
        "    async def main(): return await asyncio.gather(one(), return_exceptions=True)\n"
        "    asyncio.run(main())\n"
    ),
    "fork": (
        "    pid = os.fork()\n    if pid == 0:\n        try: go()\n"
        "        except BaseException: pass\n        os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
    ),
}


@pytest.mark.parametrize("how", SWALLOWED)
@pytest.mark.filterwarnings("ignore")
def test_a_swallowed_refusal_fails_its_test_with_host_port_and_site(floored, how):
    body = f"def go(): socket.getaddrinfo('203.0.113.9', 80)\ndef test_x():\n{SWALLOWED[how]}"
    ran = run(floored, body, "-W", "ignore")
    # A future that nobody waits for may be late, and then it is the teardown that fails.
    assert ran.code == 1 and ("1 failed" in ran.text or (how == "future" and "1 error" in ran.text)), ran.text
    assert "203.0.113.9:80" in ran.text and re.search(r"test_net\.py:\d+ in go", ran.text), ran.text


def test_a_test_that_asks_for_the_refusal_by_name_passes(floored):
    body = """
import unittest
def test_raises():
    with pytest.raises(NetworkBlocked, match="203.0.113.9:80"):
        socket.getaddrinfo("203.0.113.9", 80)
class TestCase(unittest.TestCase):
    def test_assert_raises(self):
        with self.assertRaises(NetworkBlocked):
            socket.getaddrinfo("203.0.113.9", 80)
def test_only_what_was_asked_for():
    with pytest.raises(NetworkBlocked):
        socket.getaddrinfo("203.0.113.9", 80)
    with pytest.raises(BaseException):
        socket.getaddrinfo("203.0.113.9", 81)
"""
    ran = run(floored, body)
    assert "1 failed, 2 passed" in ran.text and "203.0.113.9:81" in ran.text, ran.text


def test_a_refusal_outside_of_any_test_fails_the_run(floored):
    floored.file(
        "conftest.py",
        "import socket\ntry: socket.getaddrinfo('203.0.113.9', 80)\nexcept BaseException: pass\n",
    )
    floored.file("test_a.py", "def test_a(): pass\n")
    for options in ([], ["-n", "2"]):
        ran = floored.pytest(*options)
        assert ran.code == 1 and "outside of any test" in ran.text and "conftest.py:2" in ran.text, ran.text


@pytest.mark.parametrize("entry", ["localhost:{port}", "127.0.0.1:{port}", "127.0.0.0/8:{port}", "localhost:*"])
def test_an_allowed_host_is_reached_by_ordinary_clients(floored, entry):
    body = """
import urllib.request, http.server
def test_client():
    class Quiet(http.server.BaseHTTPRequestHandler):
        def do_GET(self): self.send_response(204); self.end_headers()
        def log_message(self, *args): pass
        def address_string(self): return "-"
    class Plain(http.server.HTTPServer):
        def server_bind(self): self.socket.bind(self.server_address); self.server_name, self.server_port = "x", PORT
    own = Plain(("127.0.0.1", PORT), Quiet)
    threading.Thread(target=own.handle_request).start()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    assert opener.open(f"http://HOST:{PORT}/", timeout=5).status == 204
    own.server_close()
    with pytest.raises(NetworkBlocked):
        socket.create_connection(("127.0.0.1", PORT + 1 if "*" not in ENTRY else 1), 2) if "*" not in ENTRY else go()
def go(): socket.getaddrinfo("203.0.113.9", 80)
"""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    entry = entry.format(port=port)
    host = "localhost" if entry.startswith("localhost") else "127.0.0.1"
    text = body.replace("HOST", host).replace("PORT", str(port)).replace("ENTRY", repr(entry))
    ran = run(floored, text, stricttest_sockets="allowlist", stricttest_socket_allowlist=[entry])
    assert ran.code == 0, ran.text


def test_unix_sockets_are_reached_where_they_are_listed(floored, tmp_path):
    body = f"""
def test_listed():
    path = {str(tmp_path / "s")!r}
    with socket.socket(socket.AF_UNIX) as own, socket.socket(socket.AF_UNIX) as client:
        own.bind(path); own.listen()
        client.connect(path)
    with pytest.raises(NetworkBlocked):
        socket.socket(socket.AF_UNIX).connect({str(tmp_path.parent / "other")!r})
"""
    ran = run(floored, body, stricttest_unix_socket_allowlist=[f"{tmp_path}/"])
    assert ran.code == 0, ran.text


def test_loopback_may_be_allowed_as_a_whole(floored):
    body = """
def test_a():
    with server() as address:
        socket.create_connection(address, 2).close()
    with pytest.raises(NetworkBlocked):
        socket.getaddrinfo("db.example.invalid", 5432)
"""
    assert run(floored, body, stricttest_loopback="allow").code == 0


def test_listening_beyond_the_loopback_and_raw_frames_are_refused(floored):
    body = """
def test_loopback():
    with server(), server(address=("localhost", 0)):
        pass
def test_wildcard():
    own = socket.socket(); own.bind(("0.0.0.0", 0))
    with pytest.raises(OSError): own.listen()
@pytest.mark.skipif(os.getuid() != 0, reason="raw frames need root")
def test_frames():
    with pytest.raises(NetworkBlocked): socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
"""
    ran = run(floored, body)
    assert "test_wildcard" in ran.text and "1 failed" in ran.text and "listen on 0.0.0.0" in ran.text, ran.text


def test_a_sandbox_narrows_the_floor_and_never_widens_it(floored):
    body = """
import hermetic
def test_floor_refuses_what_the_sandbox_allows():
    with hermetic.sandbox(network=["203.0.113.9:443"]):
        with pytest.raises(NetworkBlocked, match="stricttest refused"):
            socket.create_connection(("203.0.113.9", 443))
def test_sandbox_refuses_what_the_floor_allows():
    with hermetic.sandbox(network="block", allow_loopback=False):
        with pytest.raises(hermetic.NetworkBlockedError, match="the sandbox allows"):
            socket.create_connection(("127.0.0.1", 9))
def test_off_is_not_off():
    with hermetic.sandbox(network="off"):
        with pytest.raises(NetworkBlocked):
            socket.getaddrinfo("db.example.invalid", 80)
def test_real_is_not_open():
    from hermetic import real
    with hermetic.sandbox(), real.world():
        with pytest.raises(NetworkBlocked):
            socket.getaddrinfo("db.example.invalid", 80)
"""
    ran = run(floored, body, stricttest_loopback="allow")
    assert ran.code == 0, ran.text
    assert run(floored, body, "--hermetic-all", stricttest_loopback="allow").code == 0


def test_nothing_disarms_the_guard(floored):
    body = """
import importlib
def test_a():
    from stricttest import socketguard
    from stricttest.config import Settings
    importlib.reload(socketguard)
    socketguard._policy = None
    entries = (("127.0.0.1", "9"),)
    socketguard.install(Settings("allowlist", entries, (), "allow", False, 50, "X", "r", "p-", "n", "e", ()))
    assert socketguard.current_policy().loopback == "allow"
    with pytest.raises(NetworkBlocked):
        socket.create_connection(("127.0.0.1", 9))
"""
    assert run(floored, body).code == 0


def test_helpers_of_the_harness_work(floored):
    floored.file(
        "test_a.py",
        """
        import multiprocessing as mp
        def square(x): return x * x
        def test_manager():
            with mp.Manager() as own: own.dict()["a"] = 1
        def test_forkserver():
            with mp.get_context("forkserver").Pool(1) as pool: assert pool.map(square, [2]) == [4]
        """,
    )
    assert floored.pytest("-q").code == 0
    ran = floored.pytest("-n", "2")
    assert ran.code == 0 and "INTERNALERROR" not in ran.text, ran.text
    assert "pytest-rerunfailures at localhost:" in ran.text


def test_a_debugger_is_reached_when_it_is_asked_for(floored):
    body = """
def test_a():
    with server(address=("127.0.0.1", PORT)):
        socket.create_connection(("127.0.0.1", PORT), 2).close()
"""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ran = run(floored, body.replace("PORT", str(port)), f"--stricttest-debugger={port}", "-v")
    assert ran.code == 0 and f"a debugger at localhost:{port}" in ran.text, ran.text


def test_a_running_cluster_needs_no_entry(floored):
    pytest.importorskip("psycopg")
    floored.file(
        "test_a.py",
        """
        import psycopg, pytest
        from stricttest.pgcluster import PostgresUnavailable, ephemeral_cluster
        @pytest.fixture(scope="session")
        def cluster():
            try:
                with ephemeral_cluster(dsn_env="MYAPP_DATABASE_URL") as own:
                    yield own
            except PostgresUnavailable as error:
                pytest.skip(str(error))
        def test_a(cluster):
            with cluster.database() as url, psycopg.connect(url) as connection:
                assert connection.execute("select 1").fetchone() == (1,)
        """,
    )
    assert floored.pytest("-q").code == 0
