"""Five accidents that have happened to people, staged again from one end to the other."""

from __future__ import annotations

import sys

COMMIT = """
import pathlib, subprocess
def test_unanchored():
    pathlib.Path("junk.txt").write_text("x")
    subprocess.run(["git", "add", "junk.txt"]); subprocess.run(["git", "commit", "-qm", "junk from a test"])
"""


def log(git, folder) -> list[str]:
    return git(folder, "log", "--format=%s|%an").splitlines()


def test_a_hook_s_git_dir_does_not_lead_to_the_developer_s_branch(floored, git, tmp_path):
    """git runs a hook of a linked worktree with an absolute GIT_DIR; pytest in that hook must not hand it on."""
    root, tree, bare = floored.root, tmp_path / "tree", tmp_path / "bare.git"
    floored.file("test_a.py", COMMIT)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "dev work")
    git(tmp_path, "init", "-q", "--bare", str(bare))
    git(root, "remote", "add", "origin", str(bare))
    git(root, "worktree", "add", "-q", str(tree), "-b", "tree")
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider -p no:randomly"
    hook = floored.file(".git/hooks/pre-push", f"#!/bin/sh\nexec {command}\n")
    hook.chmod(0o755)
    told = git(tree, "push", "-q", "origin", "HEAD")
    assert "1 passed" in told, told
    assert log(git, tree) == ["dev work|dev"]


def test_a_tmpdir_inside_a_checkout_is_refused_before_anything_is_written(floored, git):
    floored.file("test_a.py", COMMIT)
    git(floored.root, "init", "-q")
    git(floored.root, "add", ".")
    git(floored.root, "commit", "-qm", "dev work")
    place = floored.root / ".tmp"
    place.mkdir()
    ran = floored.pytest(env={"TMPDIR": str(place)})
    assert ran.code == 4 and list(place.iterdir()) == [], ran.text
    assert log(git, floored.root) == ["dev work|dev"]


def test_a_commit_from_the_process_directory_lands_nowhere(floored, git):
    floored.file("conftest.py", COMMIT.replace("def test_unanchored():", "if True:"))
    floored.file("test_a.py", COMMIT)
    git(floored.root, "init", "-q")
    git(floored.root, "add", ".")
    git(floored.root, "commit", "-qm", "dev work")
    ran = floored.pytest("-q")
    assert ran.code == 0, ran.text
    assert log(git, floored.root) == ["dev work|dev"] and not (floored.root / "junk.txt").exists()


def test_a_push_by_a_child_of_a_child_fails_its_test(floored):
    floored.file("publish.sh", "cd $1 && sh -c 'exec git push -q origin HEAD:refs/heads/main'\n")
    floored.file(
        "test_a.py",
        f"""
        import pathlib, subprocess, sys
        URL = "ssh://git@vault.example.invalid/zoo/plum.git"
        HERE = pathlib.Path(__file__).parent
        def make(box):
            for words in ("init -q", "remote add origin " + URL, "commit -q --allow-empty -m 1"):
                subprocess.run(["git", *words.split()], cwd=box, check=True)
        def test_script(tmp_path):
            make(tmp_path)
            assert subprocess.run(["sh", str(HERE / "publish.sh"), str(tmp_path)]).returncode != 0
        def test_python(tmp_path):
            make(tmp_path)
            code = "import subprocess; subprocess.run(['git', 'push'])"
            subprocess.run([{sys.executable!r}, "-c", code], cwd=tmp_path)
        def test_alias(tmp_path):
            make(tmp_path)
            (tmp_path / "run.sh").write_text("git config alias.ship push; git ship origin HEAD")
            subprocess.run(["sh", "run.sh"], cwd=tmp_path)
        def test_local(tmp_path):
            make(tmp_path)
            subprocess.run(["git", "init", "-q", "--bare", "b.git"], cwd=tmp_path)
            (tmp_path / "run.sh").write_text("git push -q b.git HEAD:refs/heads/main")
            assert subprocess.run(["sh", "run.sh"], cwd=tmp_path).returncode == 0
        """,
    )
    ran = floored.pytest("-q")
    assert ran.code == 1 and "3 failed, 1 passed" in ran.text, ran.text
    assert ran.text.count("url: ssh://git@vault.example.invalid/zoo/plum.git") == 3


def test_a_second_run_is_like_the_first(floored, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    floored.file(
        "test_a.py",
        """
        import os, pathlib, pwd, tempfile
        def test_first_visit():
            user = pwd.getpwuid(os.getuid()).pw_name
            homes = pathlib.Path.home(), pathlib.Path(os.path.expanduser("~" + user))
            for number, place in enumerate((*homes, pathlib.Path(tempfile.gettempdir()), pathlib.Path.cwd())):
                visited = place / f"visited-{number}"
                assert not visited.exists()
                visited.touch()
        """,
    )
    for _ in range(2):
        ran = floored.pytest("-q", env={"HOME": str(home)})
        assert ran.code == 0, ran.text
    assert list(home.iterdir()) == []
