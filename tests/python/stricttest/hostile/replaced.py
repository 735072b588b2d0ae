"""What pytest survives being replaced while a test runs, nobody else may stumble over."""

import datetime
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from unittest import mock

import pytest

TARGETS = [
    *((os, name) for name in ("getpid", "fork", "pread", "listdir", "chdir", "urandom", "makedirs", "rename", "kill")),
    *((os, name) for name in ("open", "close", "read", "write", "getuid", "unlink", "mkdir", "sep")),
    *((time, name) for name in ("time", "monotonic", "sleep", "time_ns", "monotonic_ns", "perf_counter_ns")),
    *((socket, name) for name in ("socket", "getaddrinfo", "create_connection")),
    *((subprocess, name) for name in ("Popen", "run", "call")),
    *((threading, name) for name in ("Thread", "enumerate", "active_count", "current_thread", "Lock", "Event")),
    *((random, name) for name in ("random", "seed", "getstate", "setstate")),
    (shutil, "rmtree"),
    (tempfile, "mkdtemp"),
]


def broken(*words, **options):
    raise AssertionError("it was replaced")


@pytest.fixture
def replaced(request):
    module, name = request.param
    real = getattr(module, name)
    setattr(module, name, broken)
    yield
    setattr(module, name, real)


@pytest.mark.parametrize("replaced", TARGETS, indirect=True, ids=lambda target: f"{target[0].__name__}-{target[1]}")
def test_by_a_fixture(replaced):
    pass


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: f"{target[0].__name__}-{target[1]}")
def test_by_a_mock(target):
    with mock.patch.object(*target):
        pass


def test_a_class_of_its_own(monkeypatch):
    class Frozen(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2000, 1, 1)

    monkeypatch.setattr(datetime, "datetime", Frozen)
    assert datetime.datetime.now().year == 2000


def test_no_streams(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    time.sleep(1)


def test_little_room():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(120)
    try:
        time.sleep(1)
    finally:
        sys.setrecursionlimit(before)


def test_traced():
    sys.settrace(lambda *words: None)
    sys.setprofile(lambda *words: None)
    time.sleep(1)
    sys.settrace(None)
    sys.setprofile(None)
