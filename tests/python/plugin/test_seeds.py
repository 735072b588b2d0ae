"""Seeds: one base seed repeats the run, whatever the order, the selection, the worker or the directory."""

from __future__ import annotations

import hashlib

DRAWS = """
import random, uuid
def test_1(hermetic_sandbox): print("ONE", hermetic_sandbox.seed, random.random(), uuid.uuid4())
def test_2(): print("TWO", random.random(), uuid.uuid4())
"""


def test_base_seed_repeats_every_test(suite):
    suite.write({"test_a.py": DRAWS})
    first = suite.run("-s", "--hermetic-all", "--hermetic-seed=11")
    second = suite.run("-s", "--hermetic-all", "--hermetic-seed=11", "test_a.py::test_2", "test_a.py::test_1")
    other = suite.run("-s", "--hermetic-all", "--hermetic-seed=12")
    assert first.said("ONE") == second.said("ONE") != other.said("ONE")
    assert first.said("TWO") == second.said("TWO") != other.said("TWO")
    assert first.said("ONE")[0].split()[1:] != first.said("TWO")[0].split()


def test_seed_is_the_hash_of_the_node_id_with_the_base_seed(suite):
    suite.write({"sub/test_a.py": DRAWS})
    said = suite.run("-s", "--hermetic-all", "--hermetic-seed=11").said("ONE")[0]
    digest = hashlib.sha256(b"sub/test_a.py::test_1").digest()
    assert int(said.split()[0]) == int.from_bytes(digest[:8], "big") ^ 11


def test_fresh_base_seed_differs_between_runs_and_is_printed(suite):
    suite.write({"test_a.py": DRAWS})
    outcomes = [suite.run("-s", "--hermetic-all") for _ in range(2)]
    seeds = [outcome.said("hermetic: base seed")[0].split(",")[0] for outcome in outcomes]
    assert seeds[0] != seeds[1]
    assert suite.run("-s", "--hermetic-all", f"--hermetic-seed={seeds[0]}").said("ONE") == outcomes[0].said("ONE")


def test_ini_seed_and_option_over_it(suite):
    suite.write({"test_a.py": DRAWS, "pytest.ini": "[pytest]\nhermetic_seed = 11\nhermetic_all = true\n"})
    by_ini = suite.run("-s")
    assert "base seed 11" in by_ini.text
    assert by_ini.said("ONE") == suite.run("-s", "--hermetic-seed=11").said("ONE")
    assert "base seed 12" in suite.run("--hermetic-seed=12").text


def test_without_ini_file_the_start_directory_does_not_matter(bare_suite):
    bare_suite.write({"tests/deep/test_a.py": DRAWS})
    arguments = ("-s", "--hermetic-all", "--hermetic-seed=5")
    said = [bare_suite.run(*arguments, directory=directory).said("TWO") for directory in (".", "tests", "tests/deep")]
    assert said[0] and said[0] == said[1] == said[2]


def test_without_ini_file_equal_names_in_one_project_have_their_own_seeds(bare_suite):
    bare_suite.write({"setup.py": "", "one/test_a.py": DRAWS, "two/test_b.py": DRAWS, "three/test_a.py": DRAWS})
    arguments = ("-s", "--hermetic-all", "--hermetic-seed=5", "--import-mode=importlib")
    above = bare_suite.run(*arguments).said("TWO")
    assert len(set(above)) == 3
    assert bare_suite.run(*arguments, directory="one").said("TWO")[0] in above


def test_workers_have_the_controllers_seed(suite):
    suite.write(
        {"test_a.py": DRAWS.replace("print(", "log(") + LOG, "test_b.py": DRAWS.replace("print(", "log(") + LOG}
    )
    said = []
    for workers in ((), ("-n2",)):
        outcome = suite.run("--hermetic-all", "--hermetic-seed=9", *workers, plugins=("xdist",))
        assert outcome.counts == {"passed": 4}
        assert "hermetic: base seed 9" in outcome.text
        said.append(sorted((suite.root / "log").read_text().splitlines()))
        (suite.root / "log").unlink()
    assert said[0] == said[1] and len(said[0]) == 4


LOG = """
import pathlib
def log(*words):
    with open(pathlib.Path(__file__).with_name("log"), "a") as file:
        file.write(" ".join(map(str, (__name__, *words))) + chr(10))
"""


def test_rerun_has_the_same_seed(suite):
    suite.write(
        {
            "test_a.py": """
            import random
            def test_a(): print("DRAWN", random.random()); assert 0
            """
        }
    )
    drawn = suite.run("-s", "--hermetic-all", "--reruns=2", plugins=("rerunfailures",)).said("DRAWN")
    assert len(drawn) == 3 and len(set(drawn)) == 1


def test_silent_when_unused(suite):
    suite.write({"test_a.py": "def test_a(): pass\ndef test_b(): assert 0\n"})
    for arguments in ((), ("-q",), ("-v",)):
        text = suite.run(*arguments).text.replace("hermetic.pytest_plugin", "")
        assert "hermetic" not in text.lower()


def test_headline_names_what_applies(suite):
    suite.write({"test_a.py": "import pytest\n@pytest.mark.hermetic\ndef test_a(): pass\n"})
    assert "hermetic: base seed 3\n" in suite.run("--hermetic-seed=3").text
    assert "hermetic: base seed 3\n" in suite.run("-q", "--hermetic-seed=3").text
    assert "hermetic" not in suite.run("-qq", "--hermetic-seed=3").text
    full = suite.run("--hermetic-seed=3", "--hermetic-all", "--hermetic-record=journals").text
    assert "hermetic: base seed 3, sandboxing all tests, recording journals to journals\n" in full


def test_seed_is_shown_for_a_failure_however_quiet(suite):
    suite.write({"test_a.py": "def test_a(): assert 0\n"})
    assert "--hermetic-seed=3" in suite.run("-qq", "--hermetic-seed=3", "--hermetic-all").text
