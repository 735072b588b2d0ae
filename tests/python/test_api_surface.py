"""The names that the package promises, and what importing it costs."""

from __future__ import annotations

import ast
import importlib.metadata
import pickle
import re
import socket
import subprocess
import sys
from pathlib import Path

import hermetic
import pytest
from hermetic import _native

PROMISED = """sandbox current Sandbox SandboxHandle SandboxError SandboxActiveError NetworkBlockedError ReplayError
ReplayExhausted ReplayMismatch NameLookupBlockedError real __version__""".split()


@pytest.mark.parametrize("name", PROMISED)
def test_name(name):
    assert getattr(hermetic, name) is not None
    assert name in dir(hermetic)
    assert name in hermetic.__all__


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'sandbocks'"):
        hermetic.sandbocks  # noqa: B018


def test_version_is_that_of_the_distribution():
    assert hermetic.__version__ == _native.__version__ == importlib.metadata.version("hermetic-sandbox")


def test_error_tree():
    assert issubclass(hermetic.SandboxActiveError, hermetic.SandboxError)
    assert issubclass(hermetic.NetworkBlockedError, (hermetic.SandboxError, ConnectionRefusedError))
    assert issubclass(hermetic.NetworkBlockedError, ConnectionRefusedError)
    assert issubclass(hermetic.NameLookupBlockedError, hermetic.NetworkBlockedError)
    assert issubclass(hermetic.NameLookupBlockedError, socket.gaierror)
    assert issubclass(hermetic.ReplayExhausted, hermetic.ReplayError)
    assert issubclass(hermetic.ReplayMismatch, hermetic.ReplayError)
    assert issubclass(hermetic.ReplayError, hermetic.SandboxError)
    assert issubclass(hermetic.SpinError, hermetic.SandboxError)
    assert not issubclass(hermetic.SandboxError, OSError)


@pytest.mark.parametrize("name", ["NetworkBlockedError", "NameLookupBlockedError", "SandboxError", "SpinError"])
def test_errors_survive_pickling(name):
    made = getattr(hermetic, name)("why")
    back = pickle.loads(pickle.dumps(made))
    assert type(back) is type(made)
    assert str(back) == "why"
    assert getattr(back, "errno", None) == getattr(made, "errno", None)


def test_import_loads_nothing_before_it_is_asked_for():
    code = "import sys; before = set(sys.modules); import hermetic; print(sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert set(ast.literal_eval(loaded)) <= {"hermetic", "__future__"}


def stub_names(body: list[ast.stmt]) -> set[str]:
    names = set()
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def public(names) -> set[str]:
    return {name for name in names if not name.startswith("_") or name == "__version__"}


def stub() -> ast.Module:
    return ast.parse(Path(hermetic.__file__).with_name("_native.pyi").read_text())


def test_stub_names_are_those_of_the_binary():
    assert public(stub_names(stub().body)) == public(dir(_native))


@pytest.mark.parametrize("name", ["Door", "Finding", "Handle", "Plan", "Session"])
def test_stub_members_are_those_of_the_binary(name):
    body = next(node.body for node in stub().body if isinstance(node, ast.ClassDef) and node.name == name)
    assert public(stub_names(body)) == public(dir(getattr(_native, name)))


def test_stub_signatures_are_those_of_the_binary():
    for node in stub().body:
        if isinstance(node, ast.FunctionDef):
            told = getattr(_native, node.name).__text_signature__
            assert re.findall(r"\w+", told.partition("=")[0])[: len(node.args.args)] == [a.arg for a in node.args.args]


def test_package_is_typed():
    assert Path(hermetic.__file__).with_name("py.typed").exists()


def test_frames_and_generator_are_read_directly():
    """On the versions that are tested here; elsewhere the public API is used, which is slower and gives the same."""
    if sys.version_info < (3, 14):
        assert _native.is_frame_direct()
    assert _native.is_generator_direct()


def test_place_names_file_function_and_line():
    def here():
        return _native.current_place()

    file, function, line = here()
    assert file.endswith("test_api_surface.py")
    assert function.endswith("here")
    assert line == here.__code__.co_firstlineno + 1


def test_import_works_where_the_native_library_does_not(tmp_path):
    """As on another operating system: a clear error at entry, and none before."""
    code = """
import sys
sys.modules["hermetic._native"] = None
import hermetic
from hermetic import real
assert real.time() > 1e9 and real.monotonic() > 0 and len(real.urandom(3)) == 3 and real.uuid4().version == 4
try:
    with hermetic.sandbox(): print("entered")
except hermetic.SandboxError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith("SandboxError Hermetic's native library cannot be loaded here: "), done
