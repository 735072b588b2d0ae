"""The language ring: refusals are Python errors that name host and port, and no look-up leaves."""

from __future__ import annotations

import errno
import gc
import socket
import sys
import threading
import warnings

import hermetic
import pytest

FAR = "203.0.113.7"
"""An address that is set aside for documentation."""
NAME = "example.invalid"
"""A name that never resolves."""


def tcp() -> socket.socket:
    return socket.socket()


def udp() -> socket.socket:
    return socket.socket(type=socket.SOCK_DGRAM)


ATTEMPTS = {
    "connect": (lambda: tcp().connect((FAR, 80)), (FAR, 80)),
    "connect_ex": (lambda: tcp().connect_ex((FAR, 80)), (FAR, 80)),
    "connect by name": (lambda: tcp().connect((NAME, 80)), (NAME, 80)),
    "connect by bytes": (lambda: tcp().connect((NAME.encode(), 80)), (NAME, 80)),
    "connect v6": (lambda: socket.socket(socket.AF_INET6).connect(("2001:db8::1", 80)), ("2001:db8::1", 80)),
    "create_connection": (lambda: socket.create_connection((FAR, 80)), (FAR, 80)),
    "sendto": (lambda: udp().sendto(b"x", (FAR, 53)), (FAR, 53)),
    "sendto with flags": (lambda: udp().sendto(b"x", 0, (FAR, 53)), (FAR, 53)),
    "sendmsg": (lambda: udp().sendmsg([b"x"], [], 0, (FAR, 53)), (FAR, 53)),
    "the C class": (lambda: __import__("_socket").socket().connect((FAR, 80)), (FAR, 80)),
}
LOOK_UPS = {
    "getaddrinfo": (lambda: socket.getaddrinfo(NAME, 443), (NAME, 443)),
    "getaddrinfo of bytes": (lambda: socket.getaddrinfo(NAME.encode(), 443), (NAME, 443)),
    "getaddrinfo with a service": (lambda: socket.getaddrinfo(NAME, "https"), (NAME, None)),
    "gethostbyname": (lambda: socket.gethostbyname(NAME), (NAME, None)),
    "gethostbyname_ex": (lambda: socket.gethostbyname_ex(NAME), (NAME, None)),
    "gethostbyaddr": (lambda: socket.gethostbyaddr(FAR), (FAR, None)),
    "getnameinfo": (lambda: socket.getnameinfo((FAR, 53), 0), (FAR, 53)),
    "create_connection by name": (lambda: socket.create_connection((NAME, 80)), (NAME, 80)),
    "bind by name": (lambda: tcp().bind((NAME, 80)), (NAME, 80)),
}


@pytest.mark.parametrize("attempt, address", ATTEMPTS.values(), ids=list(ATTEMPTS))
def test_refused(attempt, address):
    with hermetic.sandbox() as sb:
        with pytest.raises(hermetic.NetworkBlockedError) as caught:
            attempt()
        assert caught.value.address == address
        assert caught.value.errno == errno.ECONNREFUSED
        assert isinstance(caught.value, ConnectionRefusedError)
        assert f"{address[0]}]:{address[1]}" in str(caught.value) or f"{address[0]}:{address[1]}" in str(caught.value)
        assert [(f.kind, f.subject, f.port) for f in sb.findings] == [("refusal", *address)]


@pytest.mark.parametrize("attempt, address", LOOK_UPS.values(), ids=list(LOOK_UPS))
def test_look_up_refused(attempt, address):
    with hermetic.sandbox() as sb:
        with pytest.raises(socket.gaierror) as caught:
            attempt()
        assert isinstance(caught.value, hermetic.NameLookupBlockedError)
        assert isinstance(caught.value, hermetic.NetworkBlockedError)
        assert caught.value.address == address
        assert caught.value.errno == socket.EAI_NONAME
        assert address[0] in str(caught.value)
        assert len(sb.findings) == 1


def test_loopback_works_and_can_be_refused(listener):
    _, port = listener
    for host in ("127.0.0.1", "localhost", "127.1", "::ffff:127.0.0.1"):
        with hermetic.sandbox():
            socket.create_connection((host, port), timeout=5).close()
        with hermetic.sandbox(allow_loopback=False), pytest.raises(hermetic.NetworkBlockedError):
            socket.create_connection((host, port), timeout=5)


def test_unix_sockets_work_and_can_be_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    server = socket.socket(socket.AF_UNIX)
    server.bind("s")
    server.listen()
    for path in ("s", b"s", str(tmp_path / "s") if len(str(tmp_path)) < 90 else "s"):
        with hermetic.sandbox():
            socket.socket(socket.AF_UNIX).connect(path)
        with hermetic.sandbox(allow_unix=False), pytest.raises(hermetic.NetworkBlockedError) as caught:
            socket.socket(socket.AF_UNIX).connect(path)
        assert caught.value.address == (path if isinstance(path, str) else path.decode())
    server.close()


def test_allowlist(listener):
    _, port = listener
    with hermetic.sandbox(allow_loopback=False, network=[f"127.0.0.1:{port}"], rng="seed"):
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        with pytest.raises(hermetic.NetworkBlockedError):
            socket.create_connection(("127.0.0.1", port + 1 if port < 65535 else 1), timeout=5)


def test_allowlist_by_name_allows_its_addresses(listener):
    _, port = listener
    with hermetic.sandbox(allow_loopback=False, network=[f"localhost:{port}"], rng="seed"):
        tried = tcp()
        tried.settimeout(5)
        tried.connect(("localhost", port))
        socket.create_connection(("localhost", port), timeout=5).close()


def test_the_handle_extends_the_allowlist(listener):
    _, port = listener
    with hermetic.sandbox(allow_loopback=False) as sb:
        with pytest.raises(hermetic.NetworkBlockedError):
            tcp().connect(("127.0.0.1", port))
        sb.allow_network(f"127.0.0.1:{port}")
        tcp().connect(("127.0.0.1", port))
        for bad in ("http://x/", "x:70000", "", 443):
            with pytest.raises(hermetic.SandboxError, match="accepted"):
                sb.allow_network(bad)


def test_nothing_to_allow_without_restrictions():
    for network in ("off", "allow"):
        with hermetic.sandbox(network=network) as sb, pytest.raises(hermetic.SandboxError, match="does not restrict"):
            sb.allow_network("x")


def test_an_allowlist_with_all_randomness_warns():
    with pytest.warns(UserWarning, match="rng='seed'"), hermetic.sandbox(network=["api.example.com:443"]):
        pass
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with hermetic.sandbox(network=["api.example.com:443"], rng="seed"):
            pass
        with hermetic.sandbox(network=[]):
            pass


def test_off_refuses_nothing():
    with hermetic.sandbox(network="off") as sb:
        with pytest.raises(OSError) as caught:
            tcp().connect(("127.0.0.1", 1))
        assert not isinstance(caught.value, hermetic.NetworkBlockedError)
        assert sb.findings == []


def test_other_families_pass():
    with hermetic.sandbox():
        netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
        netlink.bind((0, 0))
        netlink.close()


def test_a_swallowed_refusal_is_told_and_can_be_fatal():
    def swallow():
        for _ in range(3):
            try:
                tcp().connect((FAR, 80))
            except OSError:
                pass

    with hermetic.sandbox() as sb:
        swallow()
    assert [(f.subject, f.port, f.count, f.fatal) for f in sb.findings] == [(FAR, 80, 3, False)]
    assert "test_sandbox_network.py" in sb.findings[0].site
    with pytest.raises(hermetic.NetworkBlockedError, match=FAR), hermetic.sandbox(network_strict=True):
        swallow()


def test_a_fatal_refusal_goes_along_with_the_body_s_error():
    with pytest.raises(KeyError) as caught, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with hermetic.sandbox(network_strict=True):
            try:
                tcp().connect((FAR, 80))
            except OSError:
                raise KeyError("mine") from None
    notes = getattr(caught.value, "__notes__", []) if sys.version_info >= (3, 11) else [str(w.message) for w in told]
    assert any(FAR in note for note in notes)


def test_threads_are_refused_too():
    errors = []

    def attempt():
        try:
            tcp().connect((FAR, 80))
        except hermetic.NetworkBlockedError as error:
            errors.append(error.address)

    with hermetic.sandbox():
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
    assert errors == [(FAR, 80)]


def test_everything_is_open_afterwards(listener):
    _, port = listener
    with hermetic.sandbox(allow_loopback=False):
        pass
    tcp().connect(("127.0.0.1", port))
    gc.collect()
