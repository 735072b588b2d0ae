"""`fs="isolate"`: directories of one's own, at one path per seed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import hermetic
import pytest


def test_everything_points_inside():
    with hermetic.sandbox(seed=1, fs="isolate") as sb:
        fs = sb.fs
        assert Path.cwd() == fs.cwd
        assert Path.home() == fs.home == Path(os.path.expanduser("~")) == Path(os.environ["HOME"])
        assert Path(tempfile.gettempdir()) == fs.tmp == Path(os.environ["TMPDIR"])
        assert tempfile.mkdtemp().startswith(str(fs.tmp))
        assert fs.root in fs.cwd.parents and fs.root in fs.home.parents and fs.root in fs.tmp.parents
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            assert os.environ[name].startswith(str(fs.home))


def test_everything_comes_back_and_goes_away():
    before = os.getcwd(), os.environ.get("HOME"), tempfile.gettempdir(), tempfile.tempdir
    with hermetic.sandbox(seed=1, fs="isolate") as sb:
        Path("made").write_text("x")
        root = sb.fs.root
        assert root.is_dir()
    assert (os.getcwd(), os.environ.get("HOME"), tempfile.gettempdir(), tempfile.tempdir) == before
    assert not root.exists()


def test_off_has_none():
    with hermetic.sandbox() as sb:
        assert sb.fs is None


def test_one_path_per_seed():
    def root(seed):
        with hermetic.sandbox(seed=seed, fs="isolate") as sb:
            return sb.fs.root

    assert root(1) == root(1)
    assert root(1) != root(2)


def test_two_processes_with_one_seed_do_not_share():
    code = "import hermetic\nwith hermetic.sandbox(seed=1, fs='isolate') as sb: print(sb.fs.root)"
    with hermetic.sandbox(seed=1, fs="isolate", env={"TMPDIR": None}) as sb:
        with hermetic.real.world():
            env = {**os.environ, "TMPDIR": str(sb.fs.root.parent.parent)}
            other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
        assert other.stdout.strip() == f"{sb.fs.root}-1"
        assert sb.fs.root.is_dir()


def test_what_a_dead_process_left_is_cleared():
    code = "import hermetic, os\nwith hermetic.sandbox(seed=77, fs='isolate') as sb:\n open('left', 'w'); os._exit(0)"
    subprocess.run([sys.executable, "-c", code], check=True)
    with hermetic.sandbox(seed=77, fs="isolate") as sb:
        assert os.listdir(sb.fs.cwd) == []


def test_chdir_false_stays():
    folder = os.getcwd()
    with hermetic.sandbox(seed=1, fs="isolate", chdir=False) as sb:
        assert os.getcwd() == folder
        assert Path.home() == sb.fs.home


def test_the_caller_s_home_is_honoured(tmp_path):
    with hermetic.sandbox(seed=1, fs="isolate", env={"HOME": str(tmp_path)}):
        assert Path.home() == tmp_path
        assert os.environ["XDG_CONFIG_HOME"] == str(tmp_path / ".config")


def test_writes_outside_are_reported(tmp_path):
    with hermetic.sandbox(seed=1, fs="isolate") as sb:
        Path("inside").write_text("x")
        Path("inside").read_text()
        (tmp_path / "outside").write_text("x")
        (tmp_path / "folder").mkdir()
        open(tmp_path / "outside").close()
        assert sb.fs.outside == [str(tmp_path / "outside"), str(tmp_path / "folder")]
    assert [(f.kind, f.subject, f.fatal) for f in sb.findings] == [
        ("outside-write", str(tmp_path / "outside"), False),
        ("outside-write", str(tmp_path / "folder"), False),
    ]


def test_a_working_directory_that_is_gone(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    with hermetic.sandbox(seed=1, fs="isolate"):
        gone.rmdir()
    assert os.path.isdir(os.getcwd())


def test_a_test_that_changes_directory_inside(tmp_path):
    folder = os.getcwd()
    with hermetic.sandbox(seed=1, fs="isolate") as sb:
        (sb.fs.cwd / "sub").mkdir()
        os.chdir("sub")
    assert os.getcwd() == folder


def test_suspension_goes_out_and_back(tmp_path):
    folder, home = os.getcwd(), os.environ.get("HOME")
    sandbox = hermetic.Sandbox(seed=1, fs="isolate", automatic=True)
    with sandbox as sb:
        (sb.fs.cwd / "sub").mkdir()
        os.chdir("sub")
        sandbox.suspend()
        assert os.getcwd() == folder
        assert os.environ.get("HOME") == home
        assert tempfile.gettempdir() != str(sb.fs.tmp)
        sandbox.resume()
        assert Path.cwd() == sb.fs.cwd / "sub"
        assert Path.home() == sb.fs.home
        assert tempfile.gettempdir() == str(sb.fs.tmp)
    assert os.getcwd() == folder
    assert os.environ.get("HOME") == home


@pytest.mark.skipif(os.getuid() == 0, reason="nothing belongs to somebody else for root")
def test_a_base_of_somebody_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"hermetic-{os.getuid()}").symlink_to("/")
    with pytest.raises(hermetic.SandboxError, match="belongs to somebody else"), hermetic.sandbox(fs="isolate"):
        pass
