"""Small programs that go wrong without isolation (`zoo/`): under a sandbox, one outcome per seed in every world.

A world is what differs between machines and days: zone, temporary folder, home, what earlier runs left. Those whose
bare failure can be recorded must also fail again from the journal, in another world, with the same words. Those about
the order of threads are swept over many seeds. What waits for the runner stands in `README.md`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ZOO = Path(__file__).with_name("zoo")
SEEDS = (1, 2)
RECORDED_RUNS_MAX = 80

MARKING = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.hermetic(**{options!r}))
"""


@dataclass(frozen=True)
class Animal:
    """One program of the zoo: how it is sandboxed, the worlds it is put in, and what must come of it."""

    file: str
    options: tuple[str, ...] = ()
    marker: dict[str, object] = field(default_factory=dict)
    worlds: tuple[dict[str, str], ...] = ({"TZ": "UTC"}, {"TZ": "Pacific/Auckland"})
    # The outcome for every seed, or None where the seed decides.
    passes: bool | None = True


SHM = {"TMPDIR": "/dev/shm"}
ANIMALS = {
    animal.file[:4]: animal
    for animal in (
        Animal("py01_shift_boundary"),
        Animal("py02_expired_coupon"),
        Animal("py04_naive_label", ("--hermetic-tz=UTC",)),
        Animal("py06_speed_budget"),
        Animal("py07_nap_then_look"),
        Animal("py09_gather_order", passes=None),
        Animal("py10_wait_for_edge"),
        Animal("py12_lost_deposit"),
        Animal("py13_mean_tolerance", passes=None),
        Animal("py15_uuid_rows", passes=None),
        Animal("py20_listing_order", worlds=({}, SHM), passes=None),
        Animal("py23_first_run_wizard", marker={"fs": "isolate"}),
        Animal("py24_theme_leak"),
        Animal("py27_rate_fallback", ("--hermetic-strict-network",), passes=False),
        Animal("py29_first_order_number", marker={"fs": "isolate"}),
        Animal(
            "py33_ambient_key", marker={"scrub_env": True}, worlds=({}, {"AWS_ACCESS_KEY_ID": "ZOOFAKEZOOFAKE000000"})
        ),
    )
}


def put(project, animal: Animal) -> None:
    (project.root / f"test_{animal.file}.py").write_text((ZOO / f"{animal.file}.py").read_text())
    (project.root / "conftest.py").write_text(MARKING.format(options=animal.marker) if animal.marker else "")
    (project.root / "home").mkdir()
    (project.root / "tmp").mkdir()


def run(project, *options: str, world: dict[str, str] | None = None):
    """A run on a machine with a home and a temporary folder of its own, which keep what runs leave in them."""
    home = {"HOME": str(project.root / "home"), "TMPDIR": str(project.root / "tmp"), "AWS_ACCESS_KEY_ID": None}
    return project.pytest("-q", *options, env={**home, **(world or {})})


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith((".zoo", "zoo")))


@pytest.mark.parametrize("name", ANIMALS)
def test_one_outcome_for_a_seed_in_every_world(project, name):
    animal = ANIMALS[name]
    put(project, animal)
    for seed in SEEDS:
        runs = [
            run(project, "--hermetic-all", f"--hermetic-seed={seed}", *animal.options, world=world)
            for world in animal.worlds
        ]
        assert len({(ran.code, *ran.errors()) for ran in runs}) == 1, "\n".join(ran.text for ran in runs)
        assert runs[0].code in (0, 1)
        if animal.passes is not None:
            assert (runs[0].code == 0) is animal.passes, runs[0].text
    assert left_in(project.root / "home") == left_in(project.root / "tmp") == []


@pytest.mark.parametrize("name", ["py13", "py15", "py20"])
def test_seeds_show_both_outcomes(project, name):
    """Different seeds are different runs: a sweep finds the failure that one seed hides."""
    put(project, ANIMALS[name])
    codes = set()
    for seed in range(40):
        codes.add(run(project, "--hermetic-all", f"--hermetic-seed={seed}").code)
        if codes == {0, 1}:
            return
    pytest.fail(f"40 seeds of {name} all ended with {codes}")


SWEEP = """
import importlib, json, sys
import hermetic

module = importlib.import_module(sys.argv[1])
[test] = [function for name, function in vars(module).items() if name.startswith("test_")]

def outcome(seed):
    with hermetic.sandbox(seed=seed):
        try:
            test()
        except (AssertionError, TimeoutError, module_timeout) as error:
            return repr(error)
    return "passed"

module_timeout = getattr(getattr(module, "asyncio", None), "TimeoutError", AssertionError)
print(json.dumps([sorted({outcome(seed) for _ in range(3)}) for seed in range(50)]))
"""


@pytest.mark.parametrize("name", ["py07", "py09", "py10", "py12"])
def test_fifty_seeds_have_one_outcome_each(project, program, name):
    """Three times each, in one process: what earlier runs left in it does not matter either."""
    animal = ANIMALS[name]
    put(project, animal)
    ran = program(SWEEP, f"test_{animal.file}", env={"PYTHONPATH": str(project.root)}, timeout=180)
    assert ran.code == 0, ran.text
    outcomes = json.loads(ran.text.splitlines()[-1])
    assert [len(seen) for seen in outcomes] == [1] * 50, outcomes
    passed = sum(seen == ["passed"] for seen in outcomes)
    assert passed == 50 or not animal.passes, outcomes


def test_a_sweep_of_schedules_finds_the_lost_deposit(project):
    put(project, ANIMALS["py12"])
    codes = []
    for seed in range(3):
        options = ("--hermetic-all", f"--hermetic-seed={seed}", "--hermetic-schedule=seeded")
        runs = [run(project, *options) for _ in range(2)]
        assert runs[0].errors() == runs[1].errors()
        codes.append(runs[0].code)
    assert 1 in codes


@pytest.mark.parametrize("name", ["py23", "py29"])
def test_what_earlier_runs_left_does_not_matter(project, name):
    put(project, ANIMALS[name])
    (project.root / "conftest.py").rename(project.root / "kept.py")
    assert [run(project).code for _ in range(2)] == [0, 1], "bare, the second run fails"
    (project.root / "kept.py").rename(project.root / "conftest.py")
    ran = run(project, "--hermetic-all")
    assert ran.code == 0, ran.text


@pytest.mark.parametrize("order", [("default", "overridden"), ("overridden", "default")], ids="-".join)
def test_a_variable_never_leaks_into_the_next_test(project, order):
    put(project, ANIMALS["py24"])
    tests = {
        "default": "test_theme_is_light_by_default",
        "overridden": "test_theme_can_be_overridden",
    }
    ran = run(project, "--hermetic-all", *(f"test_py24_theme_leak.py::{tests[name]}" for name in order))
    assert ran.outcomes() == {"passed": 2}, ran.text


@pytest.mark.parametrize(("after_edge_s", "code"), [(0.15, 0), (0.02, 1)])
def test_the_start_instant_decides_and_nothing_else(project, after_edge_s, code):
    animal = Animal("py01_shift_boundary", marker={"now": 1_600_000_000 + after_edge_s})
    put(project, animal)
    assert [run(project).code for _ in range(3)] == [code] * 3


@pytest.mark.parametrize(("now", "code"), [("2025-03-31T12:00:00+00:00", 0), ("2025-04-02T12:00:00+00:00", 1)])
def test_a_time_bomb_goes_off_on_its_date_only(project, now, code):
    put(project, Animal("py02_expired_coupon", marker={"now": now}))
    assert run(project).code == code


@pytest.mark.parametrize(("zone", "code"), [("UTC", 0), ("Africa/Abidjan", 0), ("Pacific/Auckland", 1)])
def test_the_pinned_zone_decides_and_not_the_machines(project, zone, code):
    put(project, ANIMALS["py04"])
    for world in ({"TZ": "UTC"}, {"TZ": "Pacific/Auckland"}, {"TZ": ""}):
        ran = run(project, "--hermetic-all", f"--hermetic-tz={zone}", world=world)
        assert ran.code == code, ran.text


def test_a_hidden_look_up_is_named(project):
    put(project, ANIMALS["py27"])
    ran = run(project, "--hermetic-all", "--hermetic-strict-network")
    assert (ran.code, "rates.example.invalid:443" in ran.text) == (1, True), ran.text


# name: the world in which it is recorded, and the world in which it is replayed.
RECORDED = {
    "py01": ({}, {"TZ": "Pacific/Auckland"}),
    "py02": ({}, {}),
    "py04": ({"TZ": "Pacific/Auckland"}, {"TZ": "UTC"}),
    "py06": ({}, {}),
    "py13": ({}, {}),
    "py15": ({}, {}),
    "py20": ({}, SHM),
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_failure_fails_again_in_the_same_words(project, name):
    animal = ANIMALS[name]
    put(project, animal)
    here, elsewhere = RECORDED[name]
    for _ in range(RECORDED_RUNS_MAX):
        recorded = run(project, "--hermetic-all", "--hermetic-record=journals", world=here)
        assert recorded.code in (0, 1), recorded.text
        if recorded.code == 1:
            break
    [journal] = project.journals()
    for _ in range(2):
        replayed = run(project, f"--hermetic-replay={journal}", world=elsewhere)
        assert replayed.code == 1, replayed.text
        assert replayed.errors() == recorded.errors(), replayed.text
