"""pytest in pytest, in every manner."""

import socket
import sys
import time

import hermetic
import pytest
from hermetic import NetworkBlockedError
from stricttest import NetworkBlocked

pytest_plugins = ["pytester"]

KEYS = """[pytest]
stricttest_sockets = deny
stricttest_socket_allowlist =
stricttest_unix_socket_allowlist =
stricttest_loopback = deny
stricttest_sandbox_required = false
addopts = -p no:asyncio
"""
INNER = (
    "import os, time\ndef test_x(): time.sleep(1000); os.environ['Q'] = '1'\ndef test_y(): assert 'Q' not in os.environ"
)


@pytest.mark.parametrize("manner", ["inprocess", "subprocess"])
def test_pytester(pytester, manner):
    pytester.makeini(KEYS)
    pytester.makepyfile(INNER)
    getattr(pytester, f"runpytest_{manner}")("-q", "--hermetic-all").assert_outcomes(passed=2)


def test_main(tmp_path):
    (tmp_path / "pytest.ini").write_text(KEYS)
    (tmp_path / "test_in.py").write_text(INNER + "\ndef test_fails(): assert False")
    assert pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]) == 1
    assert "test_in" in sys.modules


def test_the_outer_floor_still_lies():
    with pytest.raises(NetworkBlocked if hermetic.current() is None else NetworkBlockedError):
        socket.create_connection(("203.0.113.9", 80))
    time.sleep(1000)
