"""Small programs that go wrong without isolation (`zoo/`): under the floor each has its one right outcome, run after
run."""

from __future__ import annotations

from pathlib import Path

import pytest

ZOO = Path(__file__).parent / "zoo"
IDENTITY = {
    "GIT_AUTHOR_NAME": "Zoo",
    "GIT_AUTHOR_EMAIL": "zoo@example.invalid",
    "GIT_COMMITTER_NAME": "Zoo",
    "GIT_COMMITTER_EMAIL": "zoo@example.invalid",
}
SIGNING = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "commit.gpgsign",
    "GIT_CONFIG_VALUE_0": "true",
    "GIT_CONFIG_KEY_1": "gpg.program",
    "GIT_CONFIG_VALUE_1": "/bin/false",
}


def run(floored, name: str, *options: str, env: dict[str, str | None] | None = None):
    floored.file(f"test_{name}.py", (ZOO / f"{name}.py").read_text())
    return floored.pytest("-q", *options, env=env)


@pytest.mark.parametrize("name", ["py23_first_run_wizard", "py29_first_order_number"])
def test_the_second_run_is_like_the_first(floored, tmp_path, name):
    home = tmp_path / "home"
    home.mkdir()
    for _ in range(2):
        ran = run(floored, name, env={"HOME": str(home)})
        assert ran.code == 0, ran.text
    assert list(home.iterdir()) == []


def test_parallel_workers_do_not_meet(floored):
    ran = run(floored, "py22_shared_scratch", "-n", "2")
    assert ran.code == 0, ran.text


@pytest.mark.parametrize("order", [(), ("test_py24_theme_leak.py::test_theme_can_be_overridden",) * 1])
def test_every_order_passes_and_the_polluter_is_named(floored, order):
    rest = ("test_py24_theme_leak.py::test_theme_is_light_by_default",) if order else ()
    ran = run(floored, "py24_theme_leak", *order, *rest)
    assert ran.code == 0 and "2 passed" in ran.text, ran.text
    assert "test_theme_can_be_overridden: ZOO_THEME was set" in ran.text


def test_a_look_up_behind_a_fallback_fails_its_test(floored):
    ran = run(floored, "py27_rate_fallback")
    assert ran.code == 1 and "rates.example.invalid" in ran.text and "443" in ran.text, ran.text


@pytest.mark.parametrize("env", [{}, IDENTITY, {**IDENTITY, **SIGNING}], ids=["nobody", "identity", "signing"])
def test_a_commit_works_whatever_the_developer_has_configured(floored, env):
    ran = run(floored, "py30_scratch_commit", env=env)
    assert ran.code == 0, ran.text


def test_a_push_fails_its_test_and_names_the_host(floored):
    ran = run(floored, "py32_push_for_real", env=dict(IDENTITY))
    assert ran.code == 1 and "vault.example.invalid" in ran.text, ran.text


@pytest.mark.parametrize("env", [{}, {"AWS_ACCESS_KEY_ID": "ZOOFAKEZOOFAKE000000"}], ids=["clean", "exported"])
def test_an_ambient_key_is_not_seen(floored, env):
    floored.settings(stricttest_loopback="allow")
    ran = run(floored, "py33_ambient_key", env=env)
    assert ran.code == 0 and "ZOOFAKE" not in ran.text, ran.text
