"""The declared stance: what is required, what is refused, in which words."""

from __future__ import annotations

import pytest

BLOCK_KEYS = ("sockets", "socket_allowlist", "unix_socket_allowlist", "loopback", "sandbox_required")


@pytest.fixture
def one(floored):
    floored.file("test_one.py", "def test_one(): pass\n")
    return floored


def test_a_declared_stance_runs(one):
    ran = one.pytest("-q")
    assert ran.code == 0, ran.text


def test_missing_keys_are_listed_at_once_with_a_block_to_paste(one):
    one.settings({})
    ran = one.pytest()
    assert ran.code == 4
    for key in BLOCK_KEYS:
        assert f"stricttest_{key} =" in ran.text
    assert "[pytest]\n" in ran.text


@pytest.mark.parametrize(
    ("name", "head", "section", "empty"),
    [
        ("pytest.ini", "[pytest]\n", "[pytest]", "stricttest_socket_allowlist =\n"),
        ("tox.ini", "[pytest]\n", "[pytest]", "stricttest_socket_allowlist =\n"),
        ("setup.cfg", "[tool:pytest]\n", "[tool:pytest]", "stricttest_socket_allowlist =\n"),
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\n",
            "[tool.pytest.ini_options]",
            "stricttest_socket_allowlist = []\n",
        ),
    ],
)
def test_the_block_has_the_syntax_of_the_file(one, name, head, section, empty):
    (one.root / "pytest.ini").unlink()
    quote = '"' if name.endswith("toml") else ""
    one.file(name, f"{head}stricttest_sockets = {quote}deny{quote}\n")
    ran = one.pytest()
    assert ran.code == 4
    block = ran.text[ran.text.index(f"\n{section}\n") :]
    assert empty in block and "stricttest_sockets" not in block


def test_a_pasted_block_is_accepted(one):
    one.settings({})
    # pytest 7 prints the error twice: once as a warning of its hooks.
    text = one.pytest().text.rpartition("the most restrictive stance is:")[2]
    block = "".join(line + "\n" for line in text.splitlines() if line.startswith(("[pytest]", "stricttest_")))
    (one.root / "pytest.ini").write_text(block)
    assert one.pytest("-q").code == 0


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"stricttest_sockets": "maybe"}, '"deny" or "allowlist"'),
        ({"stricttest_loopback": "sometimes"}, '"deny" or "allow"'),
        ({"stricttest_socket_allowlist": ["a.example:1"]}, 'stricttest_sockets is "deny"'),
        ({"stricttest_sockets": "allowlist", "stricttest_socket_allowlist": ["a.example"]}, "has no port"),
        ({"stricttest_sockets": "allowlist", "stricttest_socket_allowlist": ["https://a.example/"]}, "URL"),
        ({"stricttest_unix_socket_allowlist": ["run/x.sock"]}, "no absolute path"),
        ({"stricttest_threshold": "0"}, "whole number from 1"),
        ({"stricttest_preserve": ["AWS_PROFILE"]}, "go_mod_cache"),
        ({"stricttest_keep": ["GITHUB_TOKEN"]}, "cannot be kept"),
        ({"stricttest_sokets": "deny"}, "did you mean stricttest_sockets?"),
    ],
)
def test_bad_values_name_value_and_what_is_accepted(one, changes, part):
    one.settings(**changes)
    ran = one.pytest()
    assert ran.code == 4 and part in ran.text, ran.text


def test_every_problem_is_told_in_one_error(one):
    one.settings({"stricttest_sockets": "maybe", "stricttest_loopback": "x", "stricttest_threshold": "none"})
    ran = one.pytest()
    assert ran.code == 4
    for part in ("stricttest_sockets:", "stricttest_loopback:", "stricttest_threshold:", "stricttest_sandbox_required"):
        assert part in ran.text


@pytest.mark.parametrize("option", ["--help", "--version", "--markers", "--fixtures", "--collect-only"])
def test_informational_commands_work_without_any_key(one, option):
    one.settings({})
    assert one.pytest(option).code == 0


def test_command_line_overrides_are_refused(one):
    ran = one.pytest("-o", "stricttest_loopback=allow")
    assert ran.code == 4 and "stricttest_loopback" in ran.text
    assert one.pytest("-q", env={"PYTEST_ADDOPTS": "-o stricttest_loopback=allow"}).code == 4


def test_the_plugin_cannot_be_switched_off_by_name(one):
    for env, options in (({}, ["-p", "no:stricttest"]), ({"PYTEST_ADDOPTS": "-p no:stricttest"}, [])):
        ran = one.pytest(*options, env=env)
        assert ran.code == 4 and "no:stricttest" in ran.text, ran.text


def test_pytest_itself_refuses_where_the_plugin_is_required_and_not_loaded(one):
    one.settings(required_plugins="stricttest")
    assert one.pytest("-q").code == 0
    ran = one.pytest("-q", env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    assert ran.code == 4 and "stricttest" in ran.text


def test_a_large_bare_run_is_refused_and_a_small_one_is_not(one):
    one.file("test_many.py", "import pytest\n@pytest.mark.parametrize('n', range(5))\ndef test_many(n): pass\n")
    one.settings(stricttest_sandbox_required="true", stricttest_threshold="3", stricttest_runner_command="make check")
    ran = one.pytest()
    assert ran.code == 4 and "make check" in ran.text and "6 tests" in ran.text
    assert one.pytest("-q", "-k", "test_one").code == 0
    assert one.pytest("--collect-only", "-q").code == 0
    assert one.pytest("-q", env={"STRICTTEST_SANDBOX": "1"}).code == 0
    assert one.pytest("-q", env={"STRICTTEST_SANDBOX": "yes"}).code == 4
    distributed = one.pytest("-q", "-n", "2", "-p", "no:rerunfailures")
    assert distributed.code != 0 and "make check" in distributed.text
