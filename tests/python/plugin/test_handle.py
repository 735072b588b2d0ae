"""The fixture `hermetic_sandbox`: asking for it is enough, and it gives the handle."""

from __future__ import annotations


def test_fixture_alone_sandboxes_the_test(suite):
    suite.write(
        {
            "test_a.py": """
            import time
            def test_travel(hermetic_sandbox):
                before = time.time()
                hermetic_sandbox.clock.advance(86400)
                assert time.time() - before == 86400
            def test_other(): assert time.gmtime().tm_year > 2020
            """
        }
    )
    assert suite.run().counts == {"passed": 2}


def test_fixture_and_marker_together(suite):
    suite.write(
        {
            "test_a.py": """
            import hermetic, pytest
            @pytest.mark.hermetic(seed=9)
            def test_seed(hermetic_sandbox):
                assert hermetic_sandbox.seed == 9
                assert hermetic.current() is hermetic_sandbox
            """
        }
    )
    assert suite.run().counts == {"passed": 1}


def test_fixture_through_another_fixture_covers_that_fixture_from_its_start(suite):
    suite.write(
        {
            "test_a.py": """
            import time, pytest
            @pytest.fixture
            def early(): return time.gmtime().tm_year
            @pytest.fixture
            def clock(hermetic_sandbox): return hermetic_sandbox.clock
            def test_a(early, clock): assert early == 2020
            """
        }
    )
    assert suite.run().counts == {"passed": 1}


def test_fixture_is_none_where_the_marker_says_off(suite):
    suite.write(
        {
            "test_a.py": """
            import time, pytest
            @pytest.mark.hermetic(off=True)
            def test_off(hermetic_sandbox):
                assert hermetic_sandbox is None
                assert time.gmtime().tm_year > 2020
            """
        }
    )
    assert suite.run().counts == {"passed": 1}
    assert suite.run("--hermetic-all").counts == {"passed": 1}


def test_fixture_asked_for_while_the_test_runs(suite):
    suite.write(
        {
            "test_a.py": """
            import time
            def test_late(request):
                assert time.gmtime().tm_year > 2020
                request.getfixturevalue("hermetic_sandbox").clock.advance(5)
                assert time.gmtime().tm_year == 2020
            def test_after(): assert time.gmtime().tm_year > 2020
            """
        }
    )
    assert suite.run().counts == {"passed": 2}
