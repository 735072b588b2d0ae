"""Working directories: a test's own, the session's, the project's."""

from __future__ import annotations


def test_a_test_works_in_its_tmp_path_or_in_an_empty_directory_of_its_own(floored):
    floored.file(
        "conftest.py",
        "import pytest, pathlib\n@pytest.fixture(autouse=True)\ndef early(): pathlib.Path('made').touch()\n",
    )
    floored.file(
        "test_a.py",
        """
        import os, pathlib, pytest
        def test_tmp_path(tmp_path):
            assert pathlib.Path.cwd() == tmp_path and (tmp_path / "made").exists(), "fixtures work there too"
        def test_asked_for_later(request):
            os.unlink("made")
            later = request.getfixturevalue("tmp_path")
            assert pathlib.Path.cwd() == later
        def test_writes(): assert os.listdir() == ["made"]; pathlib.Path("more").touch()
        def test_finds_nothing(): assert os.listdir() == ["made"]
        def test_monkeypatch(monkeypatch, tmp_path): monkeypatch.chdir(tmp_path)
        def test_leaves_by_itself(): os.chdir("/")
        def test_is_back(): assert os.getcwd() != "/"
        @pytest.mark.repo_cwd
        def test_project(request):
            os.unlink("made")
            assert pathlib.Path.cwd() == request.config.rootpath
        """,
    )
    ran = floored.pytest("-q")
    assert ran.code == 0 and "8 passed" in ran.text, ran.text


def test_an_unused_directory_is_used_again(floored):
    floored.file(
        "test_a.py",
        """
        import os, pytest
        SEEN = set()
        @pytest.mark.parametrize("n", range(5))
        def test_n(n): SEEN.add(os.getcwd()); assert len(SEEN) == 1
        """,
    )
    assert floored.pytest("-q").code == 0


def test_imports_and_wider_fixtures_work_outside_of_the_project(floored):
    floored.file(
        "conftest.py",
        """
        import os, pathlib, pytest
        pathlib.Path("at_import.txt").touch()
        @pytest.fixture(scope="module")
        def built():
            pathlib.Path("built.txt").touch()
            yield os.getcwd()
            os.unlink("built.txt")
        """,
    )
    floored.file("sub/conftest.py", "import pathlib\npathlib.Path('sub_import.txt').touch()\n")
    text = "import os, pathlib\npathlib.Path('module.txt').touch()\ndef test_x(built): assert built != os.getcwd()\n"
    floored.file("sub/test_b.py", text)
    ran = floored.pytest("-q")
    assert ran.code == 0, ran.text
    assert not list(floored.root.rglob("*.txt"))
    floored.settings(stricttest_import_cwd="project")
    assert floored.pytest("-q").code == 0
    assert {path.name for path in floored.root.glob("*.txt")} == {"at_import.txt", "sub_import.txt", "module.txt"}


def test_the_harness_stays_where_it_was_started(floored):
    floored.file("sub/test_a.py", "def test_a(): pass\n")
    ran = floored.pytest("test_a.py", "--junitxml=report.xml", "-v", cwd=floored.root / "sub")
    assert ran.code == 0 and (floored.root / "sub" / "report.xml").exists(), ran.text
    assert "test_a.py::test_a PASSED" in ran.text


def test_a_rerun_begins_with_an_empty_directory(floored):
    floored.file(
        "test_a.py",
        """
        import os, pathlib
        def test_a():
            assert os.listdir() == []
            pathlib.Path("x").touch()
            first = pathlib.Path(os.environ["HOME"], "ran")
            if not first.exists():
                first.touch()
                raise AssertionError
        """,
    )
    ran = floored.pytest("-q", "--reruns", "1")
    assert ran.code == 0 and "1 rerun" in ran.text, ran.text
