"""Programs that a test starts lie on its floor: what they are refused fails the test, with host and port."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from machine import lacking

HERE = Path(__file__).parent
HEAD = """
import multiprocessing, os, socket, subprocess, sys

PROGRAM = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"
WORDS = [sys.executable, "-c", PROGRAM]

def connect(host, port):
    try:
        socket.create_connection((host, port), 5)
    except BaseException as error:
        os._exit(3)

def quietly(words, **options):
    return subprocess.run([*map(str, words)], stderr=subprocess.DEVNULL, **options).returncode
"""

STARTED = {
    "run": "assert quietly([*WORDS, HOST, 443]) == 1",
    "own-variables": "assert quietly([*WORDS, HOST, 443], env={'A': 'b'}) == 1",
    "shell": "assert quietly(['sh', '-c', 'cd / && env -i \"$0\" -c \"$1\" \"$2\" 443', *WORDS[::2], HOST]) == 1",
    "child-of-a-child": (
        "own = 'import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:], env={}))'\n"
        "    assert quietly([sys.executable, '-c', own, *WORDS, HOST, 443]) == 1"
    ),
    "system": "assert os.system(f'{sys.executable} -c \"{PROGRAM}\" {HOST} 443 2>/dev/null') != 0",
    "popen": "os.popen(f'{sys.executable} -c \"{PROGRAM}\" {HOST} 443 2>/dev/null').read()",
    "posix_spawn": (
        "pid = os.posix_spawn(sys.executable, [*WORDS, HOST, '443'], {}, "
        "file_actions=[(os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1"
    ),
    "exec": (
        "pid = os.fork()\n    if pid == 0:\n        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)\n"
        "        os.execve(sys.executable, [*WORDS, HOST, '443'], {})\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1"
    ),
    "spawn": (
        "own = multiprocessing.get_context('spawn').Process(target=connect, args=(HOST, 443))\n"
        "    own.start(); own.join(); assert own.exitcode == 3"
    ),
    "forkserver": (
        "own = multiprocessing.get_context('forkserver').Process(target=connect, args=(HOST, 443))\n"
        "    own.start(); own.join(); assert own.exitcode == 3"
    ),
}


@pytest.mark.parametrize("host", ["203.0.113.9", "db.example.invalid"])
@pytest.mark.parametrize("how", STARTED)
def test_a_started_program_is_refused_and_its_test_fails(floored, how, host):
    floored.file("test_net.py", f"{HEAD}\nHOST = {host!r}\ndef test_x():\n    {STARTED[how]}\n")
    ran = floored.pytest("-q", "test_net.py")
    assert ran.code == 1 and "1 failed" in ran.text, ran.text
    assert f"{host}:443" in ran.text and "in a program that was started" in ran.text, ran.text


def test_what_the_floor_allows_a_program_may_reach(floored):
    floored.settings(stricttest_loopback="allow")
    floored.file(
        "test_net.py",
        f"""{HEAD}
def test_loopback():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert quietly([*WORDS, "127.0.0.1", server.getsockname()[1]]) == 0
        assert quietly([*WORDS, "localhost", server.getsockname()[1]]) == 0
""",
    )
    ran = floored.pytest("-q", "test_net.py")
    assert ran.code == 0, ran.text


def test_the_program_s_own_variables_and_libraries_stay(floored):
    floored.file(
        "test_net.py",
        f"""{HEAD}
def test_variables():
    own = {{"A": "1", "LD_PRELOAD": "/nowhere/own.so"}}
    done = subprocess.run(["env"], env=own, capture_output=True, text=True)
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert seen["A"] == "1" and seen["LD_PRELOAD"].endswith(":/nowhere/own.so")
    assert "LD_PRELOAD" not in os.environ and "HERMETIC_FLOOR" not in os.environ
""",
    )
    ran = floored.pytest("-q", "test_net.py")
    assert ran.code == 0, ran.text


def test_a_sandbox_narrows_what_a_program_may_reach(floored):
    """Both are handed on: the floor's refusal fails the test, also where the sandbox allows the host."""
    floored.file(
        "test_net.py",
        f"""{HEAD}
import hermetic
def test_x():
    with hermetic.sandbox(network=["203.0.113.9:443"], rng="seed"):
        assert quietly([*WORDS, "203.0.113.9", 443]) == 1
""",
    )
    ran = floored.pytest("-q", "test_net.py")
    assert ran.code == 1 and "203.0.113.9:443" in ran.text and "stricttest refused" in ran.text, ran.text


def test_a_run_inside_a_run_answers_for_itself(floored):
    """Its own floor refuses first, and its own test fails; what only the outer one forbids is told to the outer one."""
    floored.settings(stricttest_loopback="allow")
    inner = """
import socket, pytest
from stricttest import NetworkBlocked
def test_expected():
    with pytest.raises(NetworkBlocked):
        socket.create_connection(("203.0.113.9", 443))
"""
    floored.file("inner/pytest.ini", (floored.root / "pytest.ini").read_text())
    floored.file("inner/test_in.py", inner)
    floored.file(
        "test_net.py",
        f"""{HEAD}
def test_inner(pytestconfig):
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"],
        cwd=pytestconfig.rootpath / "inner", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
""",
    )
    ran = floored.pytest("-q", "test_net.py")
    assert ran.code == 0, ran.text


def test_a_program_that_cannot_read_its_floor_reaches_nothing(tmp_path):
    import hermetic

    library = Path(hermetic.__file__).parent / "libhermetic.so"
    variables = {"LD_PRELOAD": str(library), "HERMETIC_FLOOR": str(tmp_path / "gone")}
    code = "import socket; socket.create_connection(('127.0.0.1', 9), 5)"
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True)
    assert done.returncode == 1 and "Name or service not known" in done.stderr, done.stderr


@pytest.fixture(scope="module")
def reach(tmp_path_factory) -> str:
    """The client in C, built against libpq."""
    compiler, config = shutil.which("cc"), shutil.which("pg_config")
    program = tmp_path_factory.mktemp("native") / "reach"
    reason = "needs a C compiler and libpq's headers (Debian: gcc, libpq-dev)"
    if compiler and config:
        folders = [
            subprocess.run([config, word], capture_output=True, text=True, check=True).stdout.strip()
            for word in ("--includedir", "--libdir")
        ]
        words = [compiler, HERE / "native" / "reach.c", f"-I{folders[0]}", f"-L{folders[1]}", "-lpq", "-o", program]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode == 0:
            return str(program)
        reason = f"{reason}: {done.stderr}"
    lacking("libpq", reason)


def test_libpq_from_c_reaches_the_cluster_and_nothing_else(floored, reach):
    floored.settings(stricttest_pg_dsn_env="APP_URL")
    floored.file(
        "test_reach.py",
        f"""
import os, subprocess

def ask(*urls):
    done = subprocess.run([{reach!r}, *urls], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()

def test_the_cluster(pg_database):
    assert ask(pg_database) == ["answer 42"]

def test_elsewhere(pg_database):
    lines = ask("host=203.0.113.9 port=5432 connect_timeout=5", "host=/run/elsewhere port=5432", pg_database)
    assert [line.split()[0] for line in lines] == ["error", "error", "answer"]
""",
    )
    ran = floored.pytest("-q", "test_reach.py")
    if "skipped" in ran.text:
        lacking("postgres", ran.text)
    assert ran.code == 1 and "1 failed, 1 passed" in ran.text, ran.text
    assert "test_elsewhere" in ran.text and "203.0.113.9:5432" in ran.text and "/run/elsewhere" in ran.text, ran.text
