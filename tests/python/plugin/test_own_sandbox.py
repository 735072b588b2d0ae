"""A sandbox that the test enters itself: it holds in its block, and the automatic one comes back after it."""

from __future__ import annotations


def test_own_sandbox_under_all(suite):
    suite.write(
        {
            "test_a.py": """
            import time, random, hermetic, pytest
            def test_block():
                assert time.gmtime().tm_year == 2020
                outer = random.getstate()
                with hermetic.sandbox(seed=4, now="2031-01-01") as sb:
                    assert hermetic.current() is sb and time.gmtime().tm_year == 2031
                    assert random.random() == random.Random(4).random()
                    with pytest.raises(hermetic.SandboxActiveError):
                        hermetic.sandbox().__enter__()
                assert time.gmtime().tm_year == 2020 and random.getstate() == outer
            @hermetic.sandbox(now="2032-01-01")
            def test_decorated(): assert time.gmtime().tm_year == 2032
            @pytest.fixture
            def held():
                with hermetic.sandbox(now="2033-01-01") as sb: yield sb
            def test_fixture(held):
                assert hermetic.current() is held and time.gmtime().tm_year == 2033
            def test_after(): assert time.gmtime().tm_year == 2020
            """
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 4}
    assert suite.run("--hermetic-all", "--hermetic-record=journals").counts == {"passed": 2, "failed": 2}


def test_forgotten_sandbox_is_an_error_of_its_test_only(suite):
    suite.write(
        {
            "test_a.py": """
            import hermetic, time
            def test_forgets(): hermetic.sandbox(seed=1).__enter__()
            def test_after(): assert time.gmtime().tm_year == 2020
            """
        }
    )
    outcome = suite.run("--hermetic-all")
    assert outcome.counts == {"passed": 2, "error": 1} and "did not leave it" in outcome.text


def test_two_own_sandboxes_on_one_seed_agree(suite):
    suite.write(
        {
            "test_a.py": """
            import uuid, hermetic
            def test_a():
                drawn = []
                for _ in range(2):
                    with hermetic.sandbox(seed=1): drawn.append(uuid.uuid4())
                assert drawn[0] == drawn[1]
            """
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 1}


def test_inner_pytest_run(suite):
    suite.write(
        {
            "conftest.py": "pytest_plugins = ['pytester']\n",
            "test_a.py": """
            import time
            def test_outer(pytester):
                pytester.makepyfile("import time\\ndef test_inner(): assert time.gmtime().tm_year == 2020")
                result = pytester.inline_run("-p", "hermetic.pytest_plugin", "--hermetic-all")
                assert [len(found) for found in result.listoutcomes()] == [1, 0, 0]
                assert time.gmtime().tm_year == 2020
            def test_after(): assert time.gmtime().tm_year == 2020
            """,
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 2}
