"""`stricttest.socketguard` as a module, in a process without pytest."""

from __future__ import annotations

import sys
import textwrap

import pytest
from stricttest import socketguard
from stricttest.config import Settings
from stricttest.socketguard import NetworkBlocked, Policy, _check_resolution, is_loopback


def settings(**changes) -> Settings:
    base = {
        "sockets": "deny",
        "socket_allowlist": (),
        "unix_socket_allowlist": (),
        "loopback": "deny",
        "sandbox_required": False,
        "threshold": 50,
        "sandbox_env": "X",
        "runner_command": "r",
        "tmp_prefix": "p-",
        "git_user_name": "n",
        "git_user_email": "e",
        "preserve": (),
    }
    return Settings(**{**base, **changes})


ALLOWS = settings(sockets="allowlist", socket_allowlist=(("db.example", "5432"), ("::1", "9"), ("10.0.0.0/8", "1")))


def test_a_policy_comes_from_settings_and_describes_itself():
    policy = Policy.from_settings(ALLOWS)
    assert policy.allowlist_hosts() == {"db.example", "::1", "10.0.0.0/8"}
    for part in ("allowlist", "db.example:5432", "[::1]:9", "10.0.0.0/8:1", "loopback=deny"):
        assert part in policy.describe()
    assert Policy.from_settings(settings()).allowlist == frozenset()
    with pytest.raises(AttributeError):
        policy.sockets = "deny"  # type: ignore[misc]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "ip6-localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])
def test_loopback_hosts(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "example.com", "localhost.example.com", "192.0.2.1", "::2", "0.0.0.0"])
def test_other_hosts(host):
    assert not is_loopback(host)


def test_resolution_is_checked_by_name_and_port():
    policy = Policy.from_settings(ALLOWS)
    for host, port in [("db.example", 5432), ("DB.example", None), (b"db.example", "5432"), (None, 1), ("", None)]:
        _check_resolution(policy, host, port)
    for host, port in [("db.example", 80), ("other.example", None), ("localhost", None), ("203.0.113.9", 5432)]:
        with pytest.raises(NetworkBlocked):
            _check_resolution(policy, host, port)
    _check_resolution(Policy.from_settings(settings(loopback="allow")), "localhost")


def test_network_blocked_cannot_be_swallowed_by_accident():
    assert issubclass(NetworkBlocked, BaseException) and not issubclass(NetworkBlocked, Exception)


def test_the_guard_is_armed_replaced_and_not_disarmed(floored):
    program = floored.file(
        "main.py",
        """
        import importlib, pickle, socket
        from stricttest import socketguard
        from stricttest.config import Settings
        BASE = dict(sandbox_required=False, threshold=50, sandbox_env="X", runner_command="r", tmp_prefix="p-",
                    git_user_name="n", git_user_email="e", preserve=(), unix_socket_allowlist=())
        own = socket.socket(); own.bind(("127.0.0.1", 0)); own.listen(); port = own.getsockname()[1]
        def arm(**changes): socketguard.install(Settings(**{**BASE, **changes}))
        def attempt():
            try: socket.create_connection(("localhost", port), 2).close(); return "connected"
            except BaseException as error:
                assert type(pickle.loads(pickle.dumps(error))).__name__ == "NetworkBlocked"
                return type(error).__name__
        print("BEFORE", socketguard.current_policy(), attempt())
        arm(sockets="deny", loopback="deny", socket_allowlist=())
        print("ARMED", attempt())
        importlib.reload(socketguard); socketguard._policy = None
        print("RELOADED", attempt(), socketguard.current_policy().sockets)
        arm(sockets="allowlist", loopback="deny", socket_allowlist=(("localhost", str(port)),))
        print("ALLOWED", attempt())
        arm(sockets="deny", loopback="allow", socket_allowlist=())
        print("LOOPBACK", attempt())
        """,
    )
    text = floored.run([sys.executable, str(program)]).text
    want = """
    BEFORE None connected
    ARMED NetworkBlocked
    RELOADED NetworkBlocked deny
    ALLOWED connected
    LOOPBACK connected
    """
    assert text == textwrap.dedent(want).lstrip(), text


def test_every_documented_name_is_there():
    for name in (
        "NetworkBlocked",
        "Policy",
        "is_loopback",
        "_check_resolution",
        "install",
        "current_policy",
    ):
        assert callable(getattr(socketguard, name))
    import stricttest

    for name in ("PRESERVE_VARS", "REQUIRED_KEYS", "Settings", "NetworkBlocked", "Policy", "__version__"):
        assert getattr(stricttest, name)
