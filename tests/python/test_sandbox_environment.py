"""The environment comes back, whatever changed it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import hermetic
import pytest

libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p


@pytest.fixture(autouse=True)
def variables(monkeypatch):
    monkeypatch.setenv("H_OLD", "old")
    monkeypatch.setenv("H_GONE", "here")
    monkeypatch.delenv("H_NEW", raising=False)


def seen(name: str) -> list[str | None]:
    """Python's view, libc's view, and a child's."""
    native = libc.getenv(name.encode())
    code = f"import os; print(os.environ.get({name!r}))"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
    return [os.environ.get(name), native.decode() if native else None, None if child == "None" else child]


def check_restored():
    assert seen("H_OLD") == ["old"] * 3
    assert seen("H_GONE") == ["here"] * 3
    assert seen("H_NEW") == [None] * 3


def test_changes_by_python():
    with hermetic.sandbox():
        os.environ["H_OLD"] = "changed"
        os.environ["H_NEW"] = "new"
        del os.environ["H_GONE"]
    check_restored()


def test_changes_behind_python_s_back():
    with hermetic.sandbox():
        os.putenv("H_NEW", "new")
        libc.setenv(b"H_OLD", b"changed", 1)
        os.unsetenv("H_GONE")
    check_restored()


def test_changes_by_both():
    with hermetic.sandbox():
        os.environ["H_OLD"] = "one"
        libc.setenv(b"H_OLD", b"two", 1)
        os.environ.clear()
    check_restored()


def test_overrides():
    with hermetic.sandbox(env={"H_OLD": "changed", "H_NEW": "new", "H_GONE": None, "H_ABSENT": None}):
        assert os.environ["H_OLD"] == libc.getenv(b"H_OLD").decode() == "changed"
        assert os.environ["H_NEW"] == "new"
        assert "H_GONE" not in os.environ
        assert libc.getenv(b"H_GONE") is None
    check_restored()


def test_overrides_after_the_sandbox_was_made_do_not_count():
    changes = {"H_NEW": "new"}
    sandbox = hermetic.sandbox(env=changes)
    changes["H_NEW"] = "newer"
    with sandbox:
        assert os.environ["H_NEW"] == "new"


def test_scrub_keeps_a_short_list(monkeypatch):
    monkeypatch.setenv("H_TOKEN", "secret")
    monkeypatch.setenv("PYTEST_X", "kept")
    with hermetic.sandbox(scrub_env=True, env={"H_NEW": "new"}):
        assert "H_TOKEN" not in os.environ
        assert "PATH" in os.environ
        assert os.environ["PYTEST_X"] == "kept"
        assert os.environ["H_NEW"] == "new"
    assert os.environ["H_TOKEN"] == "secret"
    check_restored()


def test_an_environment_that_nobody_changed_is_not_touched():
    pointer = ctypes.c_void_p.in_dll(libc, "environ").value
    values = {id(value) for value in os.environ._data.values()}
    for _ in range(3):
        with hermetic.sandbox():
            pass
    assert ctypes.c_void_p.in_dll(libc, "environ").value == pointer
    assert {id(value) for value in os.environ._data.values()} == values


def test_bytes_that_are_no_text():
    os.environb[b"H_NEW"] = b"\xff\xfe"
    try:
        with hermetic.sandbox():
            os.environb[b"H_NEW"] = b"\xfd"
        assert os.environb[b"H_NEW"] == b"\xff\xfe"
    finally:
        del os.environb[b"H_NEW"]
