"""The process guard: pushes to other machines are refused however they are spelled, and nothing else is."""

from __future__ import annotations

import pytest

HEAD = """
import asyncio, os, subprocess, sys
import pytest
URL = "ssh://git@vault.example.invalid/zoo/plum.git"

def git(box, *words, **options):
    return subprocess.run(["git", *words], cwd=box, capture_output=True, text=True, **options)

@pytest.fixture
def box(tmp_path):
    git(tmp_path, "init", "-q", "box"); box = tmp_path / "box"
    git(box, "remote", "add", "origin", URL); git(box, "commit", "-q", "--allow-empty", "-m", "one")
    return box
"""

REFUSED = {
    "run": "git(box, 'push', 'origin', 'HEAD')",
    "folder": "git('/', '-C', str(box), 'push')",
    "popen": "subprocess.Popen(['git', 'push'], cwd=box).wait()",
    "shell": "subprocess.run('git push origin', shell=True, cwd=box)",
    "env": "subprocess.run(['env', 'git', 'push'], cwd=box)",
    "environment": "subprocess.run(['git', 'push'], env={**os.environ, 'GIT_DIR': str(box / '.git')})",
    "system": "os.system(f'cd {box} && git push')",
    "spawn": "os.posix_spawn('/usr/bin/git', ['git', '-C', str(box), 'push'], os.environ)",
    "spawnv": "os.spawnvp(os.P_WAIT, 'git', ['git', '-C', str(box), 'push'])",
    "asyncio": "asyncio.run(start(box))",
    "alias": "git(box, '-c', 'alias.ship=push', 'ship')",
    "send-pack": "git(box, 'send-pack', 'vault.example.invalid:plum.git', 'HEAD')",
    "pushurl": "git(box, '-c', 'remote.origin.pushurl=https://vault.example.invalid/x', 'push')",
}

BODY = """
async def start(box):
    own = await asyncio.create_subprocess_exec("git", "push", cwd=box)
    await own.wait()

def test_x(box):
    {call}
"""


@pytest.mark.parametrize("how", REFUSED)
def test_each_spelling_is_refused_and_named(floored, how):
    floored.file("test_push.py", HEAD + BODY.format(call=REFUSED[how]))
    ran = floored.pytest("-q")
    assert ran.code == 1 and "git push to another machine" in ran.text, ran.text
    assert "vault.example.invalid" in ran.text


def test_a_swallowed_push_fails_its_test(floored):
    floored.file("test_push.py", HEAD + BODY.format(call="\n    try: git(box, 'push')\n    except BaseException: pass"))
    ran = floored.pytest("-q")
    assert ran.code == 1 and "every such attempt fails it" in ran.text, ran.text


def test_a_push_may_be_expected_by_name(floored):
    floored.file(
        "test_push.py",
        HEAD
        + """
from stricttest._errors import PushBlocked
def test_x(box):
    with pytest.raises(PushBlocked, match="vault.example.invalid"): git(box, "push")
""",
    )
    assert floored.pytest("-q").code == 0


def test_passwords_are_not_repeated(floored):
    call = "git(box, 'push', 'https://dev:s3cret@vault.example.invalid/x', 'HEAD')"
    floored.file("test_push.py", HEAD + BODY.format(call=call))
    ran = floored.pytest("-q", "--tb=line")
    assert ran.code == 1 and "dev:***@vault.example.invalid" in ran.text
    assert "s3cret" not in ran.text.replace(call, "")


def test_what_is_no_push_or_stays_here_runs(floored):
    floored.file(
        "test_push.py",
        """
        import subprocess, typing, pytest
        def run(*words, cwd):
            done = subprocess.run(["git", *words], cwd=cwd, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        @pytest.fixture
        def repo(tmp_path):
            run("init", "-q", "--bare", "b.git", cwd=tmp_path); run("clone", "-q", "b.git", "w", cwd=tmp_path)
            w = tmp_path / "w"; (w / "f").write_text("1"); run("add", "f", cwd=w); run("commit", "-qm", "1", cwd=w)
            run("push", "-q", "-u", "origin", "HEAD", cwd=w)
            return w
        def test_message(repo): run("commit", "--allow-empty", "-m", "push", cwd=repo)
        def test_stash(repo): (repo / "f").write_text("2"); run("stash", "push", "-m", "wip", cwd=repo)
        def test_branch(repo): run("branch", "push", cwd=repo)
        def test_upstream(repo): run("push", cwd=repo)
        def test_option(repo): run("push", "--repo", "origin", cwd=repo)
        def test_folder(repo, tmp_path): run("-C", str(repo), "push", "origin", "HEAD", cwd=tmp_path)
        def test_log(repo): run("log", "--grep", "push", cwd=repo)
        def test_popen_is_a_class():
            own = subprocess.Popen(["true"]); own.wait()
            assert isinstance(own, subprocess.Popen) and typing.get_origin(subprocess.Popen[bytes]) is subprocess.Popen
        """,
    )
    ran = floored.pytest("-q")
    assert ran.code == 0 and "8 passed" in ran.text, ran.text
