"""Modules that are loaded anew, or are not to be had."""

import importlib
import socket
import subprocess
import sys
import tempfile
import time

import hermetic
import pytest
from hermetic import NetworkBlockedError
from stricttest import NetworkBlocked

NAMES = ["os", "socket", "subprocess", "time", "random", "tempfile", "uuid", "shutil", "ssl", "logging", "contextlib"]
OURS = ["stricttest.socketguard", "stricttest", "stricttest._errors", "stricttest._guard", "hermetic", "hermetic.real"]


@pytest.mark.parametrize("name", NAMES)
def test_loaded_anew(name):
    importlib.reload(importlib.import_module(name))
    time.sleep(1000)
    tempfile.mkdtemp()
    subprocess.run(["sleep", "1000"], check=True)


@pytest.mark.parametrize("name", OURS)
def test_ours_loaded_anew(name):
    importlib.reload(importlib.import_module(name))
    with pytest.raises(NetworkBlocked if hermetic.current() is None else NetworkBlockedError):
        socket.create_connection(("203.0.113.9", 80))


def test_dropped(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] in ("json", "email", "http", "urllib")]:
        monkeypatch.delitem(sys.modules, name)
    import json

    assert json.loads("1") == 1


def test_not_to_be_had(monkeypatch):
    for name in ("subprocess", "json", "socket", "threading"):
        monkeypatch.setitem(sys.modules, name, None)
