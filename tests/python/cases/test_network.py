"""The network refusal: the peer's defects h20 to h23 and h25, absent here. Nothing here leaves the machine."""

from __future__ import annotations

import _socket
import ctypes
import errno
import socket
import struct

import hermetic
import pytest

# From the range for documentation: nobody is there, and the refusal comes before any packet.
NOBODY = "203.0.113.9"


@pytest.fixture
def mailbox():
    """A datagram socket on the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.setblocking(False)
        yield server


def received(server: socket.socket) -> list[bytes]:
    found = []
    while True:
        try:
            found.append(server.recv(100))
        except BlockingIOError:
            return found


SENDS = {
    "sendto": lambda client, address: client.sendto(b"x", address),
    "sendmsg": lambda client, address: client.sendmsg([b"x"], [], 0, address),
    "connect and send": lambda client, address: (client.connect(address), client.send(b"x")),
    "connect_ex": lambda client, address: client.connect_ex(address),
}


@pytest.mark.case("h20")
@pytest.mark.parametrize("kind", [socket.socket, _socket.socket], ids=["socket", "_socket"])
@pytest.mark.parametrize("send", SENDS)
def test_no_way_of_sending_gets_through(mailbox, kind, send):
    with hermetic.sandbox(seed=1, allow_loopback=False):
        client = kind(socket.AF_INET, socket.SOCK_DGRAM)
        with pytest.raises(hermetic.NetworkBlockedError, match=r"127\.0\.0\.1"):
            SENDS[send](client, mailbox.getsockname())
        client.close()
    assert received(mailbox) == []


LOOKUPS = {
    "getaddrinfo": lambda host: socket.getaddrinfo(host, 80),
    "gethostbyname": socket.gethostbyname,
    "gethostbyname_ex": socket.gethostbyname_ex,
    "create_connection": lambda host: socket.create_connection((host, 443), timeout=1),
    "connect": lambda host: socket.socket().connect((host, 443)),
}


@pytest.mark.case("h20")
@pytest.mark.case("h23")
@pytest.mark.parametrize("look_up", LOOKUPS)
def test_no_look_up_leaves(look_up):
    with hermetic.sandbox(seed=1):
        with pytest.raises(hermetic.NetworkBlockedError, match=r"rates\.example\.invalid") as caught:
            LOOKUPS[look_up]("rates.example.invalid")
    if look_up in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
        assert isinstance(caught.value, socket.gaierror)
        assert caught.value.errno == socket.EAI_NONAME


@pytest.mark.case("h20")
@pytest.mark.parametrize(
    "look_up",
    [
        lambda: socket.gethostbyname("localhost"),
        lambda: socket.gethostbyname_ex("localhost"),
        lambda: socket.gethostbyaddr("127.0.0.1"),
        lambda: socket.getnameinfo(("127.0.0.1", 80), 0),
        lambda: socket.getaddrinfo("localhost", 80),
    ],
    ids=["gethostbyname", "gethostbyname_ex", "gethostbyaddr", "getnameinfo", "getaddrinfo"],
)
def test_without_loopback_its_names_are_refused_too(look_up):
    with hermetic.sandbox(seed=1, allow_loopback=False):
        with pytest.raises(hermetic.NetworkBlockedError):
            look_up()
    look_up()


@pytest.mark.case("h21")
def test_a_c_client_is_refused(listener):
    server, port = listener
    server.settimeout(0.2)
    address = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(port), bytes([127, 0, 0, 1]))
    libc = ctypes.CDLL(None, use_errno=True)
    with hermetic.sandbox(seed=1, allow_loopback=False, clock="off"):
        handle = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
        assert libc.connect(handle, address, len(address)) == -1
        assert ctypes.get_errno() == errno.ECONNREFUSED
        libc.close(handle)
    with pytest.raises(TimeoutError):
        server.accept()


@pytest.mark.case("h21")
def test_a_database_driver_is_refused(listener):
    psycopg = pytest.importorskip("psycopg")
    server, port = listener
    server.settimeout(0.2)
    with hermetic.sandbox(seed=1, allow_loopback=False, clock="off"):
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(f"host=127.0.0.1 port={port} user=u dbname=d connect_timeout=3")
    with pytest.raises(TimeoutError):
        server.accept()


@pytest.mark.case("h22")
@pytest.mark.parametrize("send", ["sendall", "send", "sendmsg"])
def test_a_connection_made_before_is_refused(listener, send):
    server, port = listener
    with socket.create_connection(("127.0.0.1", port)) as client:
        peer, _ = server.accept()
        peer.setblocking(False)
        with hermetic.sandbox(seed=1, allow_loopback=False):
            with pytest.raises(OSError, match=r"127\.0\.0\.1|refused"):
                getattr(client, send)([b"pooled"] if send == "sendmsg" else b"pooled")
        assert received(peer) == []
        client.sendall(b"afterwards")
        peer.setblocking(True)
        peer.settimeout(5)
        assert peer.recv(20) == b"afterwards"
        peer.close()


@pytest.mark.case("h22")
def test_a_connection_made_before_is_kept_where_it_is_allowed(listener):
    server, port = listener
    with socket.create_connection(("127.0.0.1", port)) as client:
        peer, _ = server.accept()
        with hermetic.sandbox(seed=1):
            client.sendall(b"pooled")
            assert peer.recv(20) == b"pooled"
        peer.close()


def offline_mode() -> str:
    try:
        socket.create_connection((NOBODY, 443), timeout=1)
    except OSError:
        return "offline mode"
    return "online"


@pytest.mark.case("h23")
def test_connect_ex_raises_and_errors_carry_their_number():
    with hermetic.sandbox(seed=1):
        client = socket.socket()
        with pytest.raises(hermetic.NetworkBlockedError) as caught:
            client.connect_ex((NOBODY, 443))
        assert caught.value.errno == errno.ECONNREFUSED
        assert isinstance(caught.value, ConnectionRefusedError)
        assert f"{NOBODY}:443" in str(caught.value)
        client.close()


@pytest.mark.case("h23")
def test_a_swallowed_refusal_fails_the_sandbox_that_is_strict():
    with hermetic.sandbox(seed=1):
        assert offline_mode() == "offline mode"
    with pytest.raises(hermetic.NetworkBlockedError, match=rf"{NOBODY}:443"):
        with hermetic.sandbox(seed=1, network_strict=True):
            assert offline_mode() == "offline mode"


@pytest.mark.case("h23")
def test_a_swallowed_refusal_is_in_the_report(project):
    project.write(
        test_rates="""
        import socket
        def test_falls_back():
            try: socket.create_connection(("rates.example.invalid", 443), timeout=1)
            except Exception: pass
        """
    )
    lenient = project.pytest("-q", "--hermetic-all")
    assert (lenient.code, "rates.example.invalid:443" in lenient.text) == (0, True), lenient.text
    strict = project.pytest("-q", "--hermetic-all", "--hermetic-strict-network")
    assert (strict.code, "rates.example.invalid:443" in strict.text) == (1, True), strict.text


HERE = {
    "127.1": (socket.AF_INET, ("127.1", 9)),
    "0.0.0.0": (socket.AF_INET, ("0.0.0.0", 9)),
    "any": (socket.AF_INET, ("", 9)),
    "mapped": (socket.AF_INET6, ("::ffff:127.0.0.1", 9)),
    "::1": (socket.AF_INET6, ("::1", 9)),
    "127.0.0.53": (socket.AF_INET, ("127.0.0.53", 9)),
}


@pytest.mark.case("h25")
@pytest.mark.parametrize("name", HERE)
def test_this_machine_is_known_in_every_spelling(name):
    family, address = HERE[name]
    try:
        client = socket.socket(family)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with hermetic.sandbox(seed=1), client:
        # Datagrams need no listener, so an answer of the system's own would be a surprise, not a refusal.
        try:
            client.connect(address)
        except hermetic.NetworkBlockedError:
            raise
        except OSError as error:
            assert error.errno in (errno.ECONNREFUSED, errno.EADDRNOTAVAIL, errno.ENETUNREACH)


@pytest.mark.case("h25")
@pytest.mark.parametrize("name", HERE)
def test_this_machine_is_refused_in_every_spelling_without_loopback(name):
    family, address = HERE[name]
    try:
        client = socket.socket(family)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with hermetic.sandbox(seed=1, allow_loopback=False), client:
        with pytest.raises(hermetic.NetworkBlockedError):
            client.connect(address)


@pytest.mark.case("h25")
@pytest.mark.skipif(not hasattr(socket, "AF_NETLINK"), reason="only Linux has AF_NETLINK")
def test_families_that_are_no_network_pass():
    with hermetic.sandbox(seed=1), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as client:
        client.connect((0, 0))
