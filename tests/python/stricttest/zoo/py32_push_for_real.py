# zoo-id: py-32
# category: isolation accident, a child process tries a real push
# source: sonichi/sutando pull 2440; supernovae-st/nika issue 1237
# decides: nothing visible: it passes because the push fails; with a reachable remote and an agent it would publish
# bare: silent-harm
# setting: identity | GIT_AUTHOR_NAME=Zoo GIT_AUTHOR_EMAIL=zoo@example.invalid GIT_COMMITTER_NAME=Zoo GIT_COMMITTER_EMAIL=zoo@example.invalid
# ideal: the test fails, naming vault.example.invalid, although the attempt happens in a child of a child (git, then ssh)
# replay: the refused transport is in the journal
import subprocess


def git(box, *words):
    return subprocess.run(
        ["git", "-C", str(box), *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=2.5
    )


def publish(box):
    return git(box, "push", "-q", "origin", "HEAD:refs/heads/main").returncode == 0


def test_publish_reports_failure_when_offline(tmp_path):
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", "ssh://git@vault.example.invalid/zoo/plum.git")
    (tmp_path / "note.txt").write_text("plum\n")
    git(tmp_path, "add", "note.txt")
    git(tmp_path, "commit", "-q", "-m", "note")
    assert publish(tmp_path) is False
