"""The environment floor, through real runs."""

from __future__ import annotations

import json
import os
import pwd

import pytest

SHOW = """
import json, os, pathlib, pwd, subprocess, tempfile

def test_show():
    names = ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
             "XDG_RUNTIME_DIR", "TMPDIR", "APPDATA", "GH_TOKEN", "ACME_TOKEN", "GIT_DIR", "GIT_ALLOW_PROTOCOL",
             "GIT_AUTHOR_NAME", "GIT_COMMITTER_EMAIL", "GOMODCACHE")
    me = pwd.getpwuid(os.getuid())
    facts = {name: os.environ.get(name) for name in names}
    facts |= {"pwd": me.pw_dir, "tilde": os.path.expanduser("~" + me.pw_name), "tempdir": tempfile.gettempdir()}
    del os.environ["HOME"]
    facts["homeless"] = str(pathlib.Path.home())
    os.environ["HOME"] = facts["HOME"]
    facts["is_home"] = os.path.isdir(facts["HOME"])
    config = subprocess.run(["git", "config", "--list"], capture_output=True, text=True).stdout
    facts["git"] = config.splitlines()
    print("FACTS" + json.dumps(facts))
"""


def facts(ran) -> dict:
    return json.loads(ran.line("FACTS"))


def test_home_and_its_fellows_move(floored):
    floored.file("test_show.py", SHOW)
    told = facts(floored.pytest("-qs", env={"HOME": "/home/dev", "GOPATH": None}))
    root = os.path.dirname(told["HOME"])
    assert os.path.basename(root).startswith("stricttest-env-") and told["is_home"]
    assert not os.path.exists(root), "the throwaway directory outlives its session"
    for name in ("USERPROFILE", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "TMPDIR", "APPDATA", "pwd", "tilde", "homeless"):
        assert told[name].startswith(root + "/"), name
    assert told["tempdir"] == told["TMPDIR"]
    assert pwd.getpwuid(os.getuid()).pw_dir != told["pwd"]


def test_git_gets_a_throwaway_identity_and_no_transport(floored):
    floored.file("test_show.py", SHOW)
    floored.settings(stricttest_git_user_name='Zoë "Z" #1', stricttest_tmp_prefix="other-")
    told = facts(floored.pytest("-qs", env={"GIT_DIR": "/somewhere/.git"}))
    assert told["GIT_DIR"] is None and told["GIT_ALLOW_PROTOCOL"] == "file"
    assert told["GIT_AUTHOR_NAME"] == 'Zoë "Z" #1' and told["GIT_COMMITTER_EMAIL"] == "stricttest@example.invalid"
    assert "/other-" in told["HOME"]
    for line in (
        'user.name=Zoë "Z" #1',
        "protocol.ssh.allow=never",
        "init.defaultbranch=main",
        "maintenance.auto=false",
    ):
        assert line in told["git"]


def test_credentials_are_removed_and_named_without_their_values(floored):
    floored.file("test_show.py", SHOW)
    ran = floored.pytest("-s", env={"GH_TOKEN": "s3cret", "ACME_TOKEN": "t0ken"})
    told = facts(ran)
    assert told["GH_TOKEN"] is None and told["ACME_TOKEN"] is None
    closing = ran.line("credentials removed:")
    assert "GH_TOKEN" in closing and "ACME_TOKEN" in closing
    assert "s3cret" not in ran.text and "t0ken" not in ran.text


def test_what_only_a_pattern_takes_may_be_kept(floored):
    floored.file("test_show.py", SHOW)
    floored.settings(stricttest_keep=["ACME_TOKEN"])
    told = facts(floored.pytest("-qs", env={"GH_TOKEN": "a", "ACME_TOKEN": "b"}))
    assert told["ACME_TOKEN"] == "b" and told["GH_TOKEN"] is None


def test_a_preserved_cache_stays_where_it_is(floored):
    floored.file("test_show.py", SHOW)
    floored.settings(stricttest_preserve=["go_mod_cache"])
    told = facts(floored.pytest("-qs", env={"HOME": "/home/dev", "GOPATH": "", "GOMODCACHE": None}))
    assert told["GOMODCACHE"] == "/home/dev/go/pkg/mod"


def test_conftest_modules_and_later_plugins_see_the_throwaway_world(floored):
    floored.file("conftest.py", "import os\nHOME, TOKEN = os.environ['HOME'], os.environ.get('GH_TOKEN')\n")
    floored.file("late.py", "import os\nHOME, TOKEN = os.environ['HOME'], os.environ.get('GH_TOKEN')\n")
    floored.file(
        "test_show.py",
        """
        import late, sys
        def test_show(request):
            for plugin in request.config.pluginmanager.get_plugins():
                if getattr(plugin, "__file__", "").endswith("conftest.py") and hasattr(plugin, "TOKEN"):
                    print("CONFTEST", plugin.TOKEN, "stricttest-env-" in plugin.HOME)
            print("LATE", late.TOKEN, "stricttest-env-" in late.HOME)
        """,
    )
    env = {"GH_TOKEN": "x", "PYTEST_PLUGINS": "late", "PYTHONPATH": str(floored.root)}
    ran = floored.pytest("-qs", env=env)
    assert ran.line("CONFTEST") == "None True" and ran.line("LATE") == "None True"


def test_the_floor_comes_first_where_the_project_says_so(floored):
    floored.settings(addopts="-p stricttest")
    floored.file("early.py", "import os\nHOME, TOKEN = os.environ['HOME'], os.environ.get('GH_TOKEN')\n")
    floored.file(
        "test_a.py", "import early\ndef test_a(): print('EARLY', early.TOKEN, 'stricttest-env-' in early.HOME)\n"
    )
    ran = floored.pytest("-qs", "-p", "early", env={"GH_TOKEN": "x", "PYTHONPATH": str(floored.root)})
    assert ran.line("EARLY") == "None True", ran.text


def test_everything_is_restored_when_the_session_ends(floored):
    floored.file("test_a.py", "import os\ndef test_a(): os.environ['LEFT_BEHIND'] = '1'\n")
    program = """
        import os, pwd, sys, tempfile, pytest
        os.environ["GH_TOKEN"] = "t"
        before = dict(os.environ), os.getcwd(), tempfile.gettempdir(), pwd.getpwuid(os.getuid()).pw_dir, sys.path[:]
        for _ in range(2):
            assert pytest.main(["-q", "-p", "no:cacheprovider"]) == 0
            after = dict(os.environ), os.getcwd(), tempfile.gettempdir(), pwd.getpwuid(os.getuid()).pw_dir, sys.path[:]
            print("SAME", [old == new for old, new in zip(before, after)][:4])
    """
    path = floored.file("main.py", program)
    ran = floored.run([__import__("sys").executable, str(path)])
    assert ran.text.count("SAME [True, True, True, True]") == 2, ran.text


def test_pytest_inside_pytest_leaves_the_outer_floor_as_it_is(floored):
    floored.file("conftest.py", "pytest_plugins = ['pytester']\n")
    floored.file(
        "test_a.py",
        """
        import os, socket
        import pytest
        from stricttest import socketguard
        INI = "[pytest]\\n" + "".join(f"stricttest_{line}\\n" for line in (
            "sockets = deny", "socket_allowlist =", "unix_socket_allowlist =", "loopback = allow",
            "sandbox_required = false"))

        def test_1(pytester):
            home = os.environ["HOME"]
            pytester.makepyfile('''
                import os, socket, pytest
                from stricttest import NetworkBlocked, socketguard
                def test_in():
                    assert socketguard.current_policy().loopback == "allow"
                    with pytest.raises(NetworkBlocked):
                        socket.create_connection(("127.0.0.1", 9))
                    print("INNER", os.environ["HOME"])
            ''')
            (pytester.path / "pytest.ini").write_text(INI)
            result = pytester.runpytest_inprocess("-s", "-p", "no:cacheprovider")
            result.assert_outcomes(passed=1)
            assert os.environ["HOME"] == home and os.path.isdir(home)

        def test_2():
            assert os.path.isdir(os.environ["HOME"])
            assert socketguard.current_policy().loopback == "deny"
            with pytest.raises(socketguard.NetworkBlocked):
                socket.create_connection(("127.0.0.1", 9))
        """,
    )
    ran = floored.pytest("-q")
    assert ran.code == 0, ran.text


def test_each_worker_has_its_own_home(floored):
    floored.file(
        "test_a.py",
        """
        import os, pathlib, pytest
        @pytest.mark.parametrize("n", range(4))
        def test_home(n):
            pathlib.Path(os.environ["HOME"], os.environ["PYTEST_XDIST_WORKER"]).touch()
            assert len(os.listdir(os.environ["HOME"])) == 1
        """,
    )
    ran = floored.pytest("-q", "-n", "2")
    assert ran.code == 0 and "4 passed" in ran.text, ran.text


@pytest.mark.parametrize("name", ["TMPDIR", "TEMP", "TMP", "--basetemp"])
def test_temporary_files_inside_a_work_tree_are_refused(floored, git, name):
    floored.file("test_a.py", "def test_a(): pass\n")
    git(floored.root, "init", "-q")
    place = floored.root / "build" / "tmp"
    place.mkdir(parents=True)
    options, env = ([f"--basetemp={place}"], {}) if name == "--basetemp" else ([], {name: str(place)})
    ran = floored.pytest(*options, env=env)
    assert ran.code == 4 and name in ran.text and "an unanchored git command" in ran.text, ran.text
    ran = floored.pytest("--collect-only", "-q", *options, env=env)
    assert ran.code == 0, ran.text


def test_a_work_tree_above_the_project_counts_as_well(floored, git, tmp_path):
    git(tmp_path, "init", "-q")
    floored.file("test_a.py", "def test_a(): pass\n")
    place = tmp_path / "elsewhere"
    place.mkdir()
    ran = floored.pytest(env={"TMPDIR": str(place)})
    assert ran.code == 4 and str(tmp_path) in ran.text


def test_a_plugin_that_came_before_the_floor_is_loaded_again_without_having_seen_anything(floored):
    floored.file("early.py", "import os\nHOME, TOKEN = os.environ['HOME'], os.environ.get('GH_TOKEN')\n")
    floored.file(
        "test_a.py", "import early\ndef test_a(): print('EARLY', early.TOKEN, 'stricttest-env-' in early.HOME)\n"
    )
    env = {"GH_TOKEN": "x", "PYTHONPATH": str(floored.root)}
    ran = floored.pytest("-s", "-p", "early", env=env)
    assert ran.code == 0 and ran.line("EARLY") == "None True", ran.text
    assert "GH_TOKEN" in ran.line("credentials removed:")
    assert floored.pytest("-q", "-p", "early", "-n", "2", env=env).code == 0


def test_what_a_killed_session_has_left_is_swept_by_the_next(floored, tmp_path):
    floored.settings(stricttest_tmp_prefix="swept-")
    floored.file("test_a.py", "import os\ndef test_a(): os._exit(3)\n")
    place = tmp_path / "t"
    place.mkdir()
    floored.pytest("-q", env={"TMPDIR": str(place)})
    assert len(list(place.glob("swept-*"))) == 1
    floored.file("test_a.py", "def test_a(): pass\n")
    assert floored.pytest("-q", env={"TMPDIR": str(place)}).code == 0
    assert not list(place.glob("swept-*"))


def test_an_isolated_sandbox_has_one_path_for_one_seed_under_the_floor_too(floored):
    floored.file(
        "test_a.py",
        """
        import os, pathlib, pwd
        import hermetic
        def test_a():
            floor = os.environ["HOME"]
            with hermetic.sandbox(seed=7, fs="isolate") as sb:
                pathlib.Path("x").touch()
                assert pathlib.Path.home() == sb.fs.home
                assert pwd.getpwuid(os.getuid()).pw_dir == str(sb.fs.home)
                print("ROOT", sb.fs.root)
            assert os.environ["HOME"] == floor == pwd.getpwuid(os.getuid()).pw_dir
        """,
    )
    floored.settings(stricttest_leaks="fail")
    first, second = floored.pytest("-qs"), floored.pytest("-qs")
    assert first.code == 0, first.text
    assert first.line("ROOT") == second.line("ROOT")
