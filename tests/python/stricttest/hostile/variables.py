"""Environments that are emptied, or say nonsense."""

import os
import subprocess
import sys
import tempfile

import pytest

NAP = [sys.executable, "-c", "import time, os; time.sleep(1000); os.urandom(4)"]


@pytest.fixture(autouse=True)
def emptied():
    before = dict(os.environ)
    os.environ.clear()
    yield
    os.environ.clear()
    os.environ.update(before)


def test_children():
    assert subprocess.run(NAP).returncode == 0
    assert subprocess.run(NAP, env={}).returncode == 0


def test_temporary_files(tmp_path):
    tempfile.mkdtemp()
    assert os.path.expanduser("~")


def test_nonsense_of_ours():
    os.environ.update(LD_PRELOAD="", HERMETIC_FLOOR="junk", HERMETIC_CHILD="1:2:3:4:5", HERMETIC_CLOCKS="/nowhere")
    assert subprocess.run(NAP).returncode == 0


def test_nonsense_of_others():
    os.environ.update(TMPDIR="/nonexistent", PYTHONHASHSEED="7")
    tempfile.tempdir = None
    tempfile.mkdtemp()
