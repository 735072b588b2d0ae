"""The sandbox holds set-up, call and tear-down of a test, and nothing between or after them."""

from __future__ import annotations


def test_function_fixtures_are_inside(suite):
    suite.write(
        {
            "test_a.py": """
            import time, uuid, pytest
            @pytest.fixture
            def order():
                made = time.time(), uuid.uuid4()
                yield made
                assert time.time() == made[0] + 60
            @pytest.mark.hermetic
            def test_age(order):
                assert time.time() - order[0] == 0
                time.sleep(60)
                print("ORDER", order[1])
            """
        }
    )
    first, second = (suite.run("-s", "--hermetic-seed=1") for _ in range(2))
    assert first.counts == {"passed": 1}
    assert first.said("ORDER") == second.said("ORDER") != suite.run("-s", "--hermetic-seed=2").said("ORDER")


def test_values_differ_between_fixture_and_test(suite):
    suite.write(
        {
            "test_a.py": """
            import uuid, pytest
            @pytest.fixture
            def one(): return uuid.uuid4()
            def test_a(one): assert one != uuid.uuid4()
            """
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 1}


def test_monkeypatch_of_controlled_functions_leaves_nothing_behind(suite):
    suite.write(
        {
            "test_a.py": """
            import time, socket, os
            def test_patches(monkeypatch):
                monkeypatch.setattr(time, "time", lambda: 5.0)
                monkeypatch.setattr(os, "urandom", lambda n: b"x" * n)
                monkeypatch.setattr(socket.socket, "connect", lambda *a: None)
                monkeypatch.setenv("LEFT_BEHIND", "1")
                assert time.time() == 5.0
            """,
            "test_b.py": """
            import os, time, socket, pytest
            @pytest.mark.hermetic(off=True)
            def test_real():
                assert time.time() > 1.6e9 and time.time.__module__ == "time"
                assert os.urandom(4) != b"xxxx" and "LEFT_BEHIND" not in os.environ
                assert "connect" not in vars(socket.socket)
            """,
        }
    )
    assert suite.run("--hermetic-all", "test_a.py", "test_b.py").counts == {"passed": 2}


def test_classic_and_unittest_setup_are_inside(suite):
    suite.write(
        {
            "test_a.py": """
            import time, unittest
            def year(): return time.gmtime().tm_year
            class TestClassic:
                def setup_method(self): assert year() == 2020
                def teardown_method(self): assert year() == 2020
                @classmethod
                def setup_class(cls): assert year() == 2020
                @classmethod
                def teardown_class(cls): assert year() == 2020
                def test_a(self): assert year() == 2020
            class Case(unittest.TestCase):
                @classmethod
                def setUpClass(cls): assert year() == 2020
                @classmethod
                def tearDownClass(cls): assert year() == 2020
                def setUp(self):
                    self.addCleanup(lambda: self.assertEqual(year(), 2020))
                    self.assertEqual(year(), 2020)
                def tearDown(self): self.assertEqual(year(), 2020)
                def test_b(self): self.assertEqual(year(), 2020)
            class Async(unittest.IsolatedAsyncioTestCase):
                async def test_c(self): self.assertEqual(year(), 2020)
            """
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 3}


def test_doctests_are_inside(suite):
    suite.write({"notes.txt": ">>> import time\n>>> time.gmtime().tm_year\n2020\n"})
    assert suite.run("--hermetic-all", "--doctest-glob=*.txt").counts == {"passed": 1}


def test_hooks_of_other_plugins_between_phases_are_in_real_time(suite):
    suite.write(
        {
            "conftest.py": """
            import time, pytest
            def pytest_runtest_logreport(report):
                assert time.gmtime().tm_year > 2020, report.when
            @pytest.hookimpl(hookwrapper=True)
            def pytest_runtest_call(item):
                assert time.gmtime().tm_year > 2020
                yield
                assert time.gmtime().tm_year > 2020
            """,
            "test_a.py": "import time\ndef test_a(): assert time.gmtime().tm_year == 2020\ndef test_b(): assert 0\n",
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 1, "failed": 1}


def test_clock_stands_still_between_phases(suite):
    suite.write(
        {
            "conftest.py": """
            import time
            def pytest_runtest_logreport(report): time.sleep(0.01)
            """,
            "test_a.py": """
            import time, pytest
            @pytest.fixture
            def start(): return time.monotonic()
            def test_a(start): assert 0 < time.monotonic() - start < 0.001
            """,
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 1}


def test_environment_comes_back_after_each_test(suite):
    suite.write(
        {
            "test_a.py": """
            import os
            def test_1():
                os.environ["LEAK"] = "1"; os.environ.pop("KEPT")
            def test_2():
                assert "LEAK" not in os.environ and os.environ["KEPT"] == "yes"
            """
        }
    )
    assert suite.run("--hermetic-all", environment={"KEPT": "yes"}).counts == {"passed": 2}


def test_isolated_file_system_with_other_fixtures(suite):
    suite.write(
        {
            "test_a.py": """
            import os, pathlib, pytest, tempfile
            @pytest.mark.hermetic(fs="isolate")
            def test_x(monkeypatch, tmp_path, hermetic_sandbox):
                assert not tmp_path.is_relative_to(hermetic_sandbox.fs.root)
                monkeypatch.chdir(tmp_path)
            @pytest.mark.hermetic(fs="isolate")
            def test_y(tmp_path): (tmp_path / "a").write_text("x")
            def test_z(tmp_path): (tmp_path / "a").write_text("x")
            """
        }
    )
    assert suite.run("-p", "no:randomly").counts == {"passed": 3}


def test_interrupt_leaves_no_sandbox_open(suite):
    suite.write(
        {
            "conftest.py": """
            import time
            def pytest_sessionfinish(): print("YEAR", time.gmtime().tm_year)
            """,
            "test_a.py": """
            import time, pytest
            @pytest.fixture(scope="session")
            def wide():
                yield
                print("WIDE", time.gmtime().tm_year)
            def test_a(wide): raise KeyboardInterrupt
            """,
        }
    )
    outcome = suite.run("-s", "--hermetic-all")
    assert outcome.code == 2
    assert outcome.said("WIDE") == ["2020"] and outcome.said("YEAR") != ["2020"]


def test_failed_setup_and_skips(suite):
    suite.write(
        {
            "test_a.py": """
            import time, pytest
            @pytest.fixture
            def broken(): raise RuntimeError("no")
            def test_broken(broken): pass
            @pytest.mark.skip
            def test_skipped(): pass
            def test_skips(): pytest.skip("now")
            @pytest.mark.xfail(strict=True)
            def test_xfail(): assert time.gmtime().tm_year == 1999
            def test_good(): assert time.gmtime().tm_year == 2020
            """
        }
    )
    assert suite.run("--hermetic-all").counts == {"passed": 1, "error": 1, "skipped": 2, "xfailed": 1}
