"""Forks, daemons and signals around children."""

import os
import signal
import threading
import time

import pytest


@pytest.fixture(scope="session", autouse=True)
def background():
    pid = os.fork()
    if pid == 0:
        os.setsid()
        signal.pause()
        os._exit(0)
    yield
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_many():
    pids = []
    for index in range(5):
        pid = os.fork()
        if pid == 0:
            time.sleep(index)
            os._exit(index)
        pids.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == list(range(5))


def test_a_daemon_that_closes_everything():
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(3, write)
            os.closerange(write + 1, 4096)
            for fd in (0, 1, 2):
                os.dup2(os.open(os.devnull, os.O_RDWR), fd)
            time.sleep(1)
            os.write(write, b"daemon")
        os._exit(0)
    os.wait()
    os.close(write)
    assert os.read(read, 10) == b"daemon"


def test_a_fork_in_a_thread():
    codes = []

    def fork():
        pid = os.fork()
        if pid == 0:
            os._exit(7)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    assert codes == [7]


def test_children_that_nobody_may_wait_for():
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, 0)
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_an_exec_in_a_fork():
    pid = os.fork()
    if pid == 0:
        os.execv("/bin/sh", ["sh", "-c", "sleep 1000; exit 9"])
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
