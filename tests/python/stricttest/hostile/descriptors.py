"""Programs that close descriptors they do not know, or may have few."""

import os
import resource
import select
import signal
import socket
import subprocess
import threading
import time

SHELL = ["sh", "-c", "sleep 1000; exit 4"]


def test_closes_everything():
    os.closerange(30, 65536)
    time.sleep(50)
    assert subprocess.run(SHELL).returncode == 4


def test_waits_afterwards():
    threading.Event().wait(10)
    one, other = socket.socketpair()
    assert select.select([one], [], [], 5)[0] == []
    timer = threading.Timer(3, lambda: other.send(b"x"))
    timer.start()
    assert select.select([one], [], [], 5)[0] == [one]
    timer.join()


def test_closes_everything_again():
    os.closerange(30, 65536)
    assert subprocess.run(SHELL).returncode == 4


def test_closes_one_by_one():
    for fd in range(30, 1024):
        try:
            os.close(fd)
        except OSError:
            pass
    assert subprocess.run(SHELL).returncode == 4


def test_may_have_few():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        time.sleep(5)
        assert subprocess.run(SHELL).returncode == 4
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_child_may_have_few():
    assert subprocess.run(["sh", "-c", "ulimit -n 20; sleep 1000; exit 3"]).returncode == 3


def test_files_may_not_grow():
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        threading.Event().wait(2)
        assert subprocess.run(SHELL).returncode == 4
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_mask_that_takes_every_right():
    before = os.umask(0o777)
    try:
        time.sleep(1)
        assert subprocess.run(SHELL).returncode == 4
    finally:
        os.umask(before)
