"""The marker: which options hold for a test that several markers reach."""

from __future__ import annotations


def test_marker_sandboxes_only_the_marked_test(suite):
    suite.write(
        {
            "test_a.py": """
            import time, pytest
            @pytest.mark.hermetic
            def test_frozen(): assert time.gmtime().tm_year == 2020
            def test_real(): assert time.gmtime().tm_year > 2020
            """
        }
    )
    assert suite.run().counts == {"passed": 2}


def test_marker_takes_sandbox_options(suite):
    suite.write(
        {
            "test_a.py": """
            import datetime, random, pytest
            @pytest.mark.hermetic(now="2021-06-01T12:00:00+00:00", seed=7)
            def test_pinned():
                assert datetime.datetime.now(datetime.timezone.utc).year == 2021
                assert random.random() == random.Random(7).random()
            """
        }
    )
    assert suite.run().counts == {"passed": 1}


def test_nearest_marker_wins_for_each_option_and_outer_ones_fill_in(suite):
    suite.write(
        {
            "test_a.py": """
            import random, time, pytest
            pytestmark = pytest.mark.hermetic(now="2021-01-01", seed=1, clock="virtual")
            def facts(): return time.gmtime().tm_year, random.random()
            def drawn(seed): return random.Random(seed).random()

            def test_module(): assert facts() == (2021, drawn(1))

            @pytest.mark.hermetic(seed=2)
            class TestClass:
                def test_class(self): assert facts() == (2021, drawn(2))
                @pytest.mark.hermetic(now="2023-01-01")
                def test_method(self): assert facts() == (2023, drawn(2))
                @pytest.mark.hermetic(clock="off")
                def test_off_clock(self): assert time.gmtime().tm_year > 2023

            @pytest.mark.hermetic(seed=3)
            @pytest.mark.hermetic(seed=4, now="2024-01-01")
            def test_two_on_one(): assert facts() == (2024, drawn(4))
            """
        }
    )
    assert suite.run().counts == {"passed": 5}


def test_mapping_of_a_shared_marker_is_read_for_each_test(suite):
    suite.write(
        {
            "test_a.py": """
            import os, pytest
            VARIABLES = {"COUNT": "1"}
            pytestmark = pytest.mark.hermetic(env=VARIABLES)
            def test_first():
                assert os.environ["COUNT"] == "1"
                VARIABLES["COUNT"] = "2"
            def test_second(): assert os.environ["COUNT"] == "2"
            """
        }
    )
    assert suite.run().counts == {"passed": 2}


def test_network_option_of_the_module_holds_below_a_function_marker(suite):
    suite.write(
        {
            "test_a.py": """
            import socket, pytest
            pytestmark = pytest.mark.hermetic(network="off")
            @pytest.mark.hermetic(seed=3)
            def test_numeric_lookup(): assert socket.getaddrinfo("203.0.113.9", 80)
            """
        }
    )
    assert suite.run().counts == {"passed": 1}


def test_parameter_set_is_nearer_than_its_function(suite):
    suite.write(
        {
            "test_a.py": """
            import random, pytest
            @pytest.mark.hermetic(seed=1)
            @pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.hermetic(seed=2))])
            def test_drawn(seed): assert random.random() == random.Random(seed).random()
            """
        }
    )
    assert suite.run().counts == {"passed": 2}


def test_class_is_nearer_than_the_class_it_inherits_from(suite):
    suite.write(
        {
            "test_a.py": """
            import random, pytest
            @pytest.mark.hermetic(seed=1)
            class TestBase:
                seed = 1
                def test_drawn(self): assert random.random() == random.Random(self.seed).random()
            class TestSame(TestBase): pass
            @pytest.mark.hermetic(seed=2)
            class TestDerived(TestBase): seed = 2
            """
        }
    )
    assert suite.run().counts == {"passed": 3}


def test_marker_added_while_collecting(suite):
    suite.write(
        {
            "test_b.py": "import time\ndef test_added(): assert time.gmtime().tm_year == 2024\n",
            "conftest.py": """
            import pytest
            def pytest_collection_modifyitems(items):
                for item in items:
                    if item.name == "test_added":
                        item.add_marker(pytest.mark.hermetic(now="2024-01-01"))
            """,
        }
    )
    assert suite.run().counts == {"passed": 1}


def test_off_leaves_the_sandbox_and_can_be_taken_back(suite):
    suite.write(
        {
            "test_a.py": """
            import time, pytest
            pytestmark = pytest.mark.hermetic(off=True)
            def test_off(): assert time.gmtime().tm_year > 2020
            @pytest.mark.hermetic(off=False)
            def test_on(): assert time.gmtime().tm_year == 2020
            """,
            "test_b.py": "import time\ndef test_all(): assert time.gmtime().tm_year == 2020\n",
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 3}


def test_unusable_markers_fail_their_tests_only(suite):
    suite.write(
        {
            "test_a.py": """
            import pytest
            @pytest.mark.hermetic(7)
            def test_positional(): pass
            @pytest.mark.hermetic(record="x.journal")
            def test_record(): pass
            @pytest.mark.hermetic(replay="x.journal")
            def test_replay(): pass
            @pytest.mark.hermetic(test_id="x")
            def test_id(): pass
            @pytest.mark.hermetic(sed=7)
            def test_unknown(): pass
            @pytest.mark.hermetic(now="yesterday")
            def test_value(): pass
            @pytest.mark.hermetic(off="yes")
            def test_off(): pass
            @pytest.mark.hermetic
            def test_good(): pass
            def test_plain(): pass
            """
        }
    )
    outcome = suite.run()
    assert outcome.counts == {"passed": 2, "error": 7}
    for clue in (
        "hermetic(7)",
        "record='x.journal'",
        "replay='x.journal'",
        "test_id='x'",
        "sed",
        "yesterday",
        "off='yes'",
    ):
        assert clue in outcome.text


def test_marker_is_registered(suite):
    suite.write({"test_a.py": "import pytest\n@pytest.mark.hermetic\ndef test_a(): pass\n"})
    assert suite.run("--strict-markers").counts == {"passed": 1}
    assert "@pytest.mark.hermetic(seed=" in suite.run("--markers").text
