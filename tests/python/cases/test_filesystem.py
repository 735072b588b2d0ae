"""The isolated file system: the peer's defects h14, h30 and h49, absent here."""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path

import hermetic
import pytest


@pytest.mark.case("h14")
def test_one_seed_has_one_folder(program):
    def paths(seed: int) -> tuple[str, str, str]:
        with hermetic.sandbox(seed=seed, fs="isolate"):
            return os.getcwd(), os.path.expanduser("~"), tempfile.gettempdir()

    code = "import os, hermetic\nwith hermetic.sandbox(seed=1, fs='isolate'): print(os.getcwd())"
    assert paths(1) == paths(1)
    assert paths(1) != paths(2)
    assert program(code).text.strip() == program(code, env={"PYTHONHASHSEED": "7"}).text.strip() == paths(1)[0]


@pytest.mark.case("h14")
def test_two_runs_of_one_seed_at_once_do_not_share(program):
    code = "import os, hermetic\nwith hermetic.sandbox(seed=1, fs='isolate'): print(os.getcwd())"
    with hermetic.sandbox(seed=1, fs="isolate", clock="off") as sb:
        here = os.getcwd()
        Path("kept").write_text("x")
        there = program(code, env={"TMPDIR": None}).text.strip()
        assert there != here
        assert Path("kept").read_text() == "x"
        assert sb.fs.cwd == Path(here)


@pytest.mark.case("h30")
def test_isolation_and_monkeypatch_chdir_go_together(project):
    project.write(
        test_both="""
        import pytest, os
        @pytest.mark.hermetic(fs="isolate")
        def test_moves(monkeypatch, tmp_path): monkeypatch.chdir(tmp_path)

        @pytest.mark.hermetic(fs="isolate")
        def test_moves_by_itself(tmp_path): os.chdir(tmp_path)
        """
    )
    ran = project.pytest("-q")
    assert (ran.code, ran.outcomes()) == (0, {"passed": 2}), ran.text


@pytest.mark.case("h49")
def test_every_road_home_leads_inside(monkeypatch):
    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", f"/dev/shm/real-{name.lower()}")
    user = pwd.getpwuid(os.getuid()).pw_name
    with hermetic.sandbox(seed=1, fs="isolate") as sb:
        root = str(sb.fs.root)
        for name in ("CONFIG", "DATA", "CACHE", "STATE"):
            assert os.environ[f"XDG_{name}_HOME"].startswith(root)
        for road in ("~", f"~{user}"):
            assert os.path.expanduser(road) == str(sb.fs.home)
        assert Path.home() == sb.fs.home
        assert tempfile.gettempdir() == str(sb.fs.tmp)
    assert os.environ["XDG_CONFIG_HOME"] == "/dev/shm/real-config"


@pytest.mark.case("h49")
def test_the_callers_own_home_is_honoured(tmp_path):
    with hermetic.sandbox(seed=1, fs="isolate", env={"HOME": str(tmp_path)}):
        assert os.environ["HOME"] == os.path.expanduser("~") == str(tmp_path)


@pytest.mark.case("h49")
def test_a_write_outside_is_reported(project):
    outside = project.file("outside/readme", "x").parent
    project.write(
        test_escape=f"""
        import pytest
        @pytest.mark.hermetic(fs="isolate")
        def test_escapes():
            open({str(outside / "escaped.txt")!r}, "w").close()
            assert False
        """
    )
    ran = project.pytest("-q")
    assert ran.code == 1
    told = [line for line in ran.text.splitlines() if "outside the isolated directories" in line]
    assert len(told) == 1 and told[0].endswith("escaped.txt"), ran.text
