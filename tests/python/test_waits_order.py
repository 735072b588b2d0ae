"""The order in which threads go on: drawn from the seed, the same every time.

Each program runs in a process of its own.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap

import pytest


def test_the_seed_decides_before_the_interpreters_lock_was_ever_contended(program):
    """Hashing gives the lock away without waiting; who is next is the seed's choice from the first time on."""
    code = """
    import hashlib, json, threading, hermetic

    def hashed_by(names, seed):
        order = []
        def work(name):
            for _ in range(20):
                hashlib.sha256(b"x" * 5000).digest()
                order.append(name)
        with hermetic.sandbox(seed=seed):
            threads = [threading.Thread(target=work, args=(name,)) for name in names]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return "".join(order)

    print(json.dumps([hashed_by("ab", seed) for seed in (1, 1, 2, 1)]))
    """
    ran = program(code)
    assert ran.code == 0, ran.text
    first, second, other, last = json.loads(ran.text)
    assert first == second == last
    assert first != other
    assert "ab" in first and "ba" in first, "they take turns"


RACE = """
import collections, json, sys, threading
import hermetic

SCHEDULE = "seeded"

def together(seed, *works, schedule=None):
    with hermetic.sandbox(seed=seed, schedule=schedule or SCHEDULE):
        threads = [threading.Thread(target=work) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

counter = 0

def add():
    global counter
    for _ in range(5):
        x = counter
        counter = x + 1

def lost(seed, schedule=None):
    global counter
    counter = 0
    together(seed, add, add, schedule=schedule)
    return counter
"""


def told(program, code: str, **options):
    return program(RACE + textwrap.dedent(code), **options).told()


def test_a_lost_update_has_outcomes_that_differ_by_seed_and_repeat(program):
    outcomes = told(program, "print(json.dumps([[lost(seed) for _ in range(3)] for seed in range(50)]))")
    assert all(len(set(repeats)) == 1 for repeats in outcomes), outcomes
    assert len({repeats[0] for repeats in outcomes}) >= 2, outcomes


def test_another_process_finds_the_same(program):
    code = "print(json.dumps([lost(seed) for seed in range(20)]))"
    assert told(program, code) == told(program, code)


def test_without_it_a_thread_runs_until_it_waits(program):
    outcomes = told(program, "print(json.dumps([lost(seed, 'cooperative') for seed in range(50)]))")
    assert set(outcomes) == {10}


def test_a_step_may_lie_inside_a_line(program):
    """What a call of C code told may be old by the time that the line uses it."""
    code = """
    counts = {}

    def count():
        for _ in range(5):
            counts["n"] = counts.get("n", 0) + 1

    def outcome(seed):
        counts.clear()
        together(seed, count, count)
        return counts["n"]

    print(json.dumps([[outcome(seed) for _ in range(3)] for seed in range(50)]))
    """
    outcomes = told(program, code)
    assert all(len(set(repeats)) == 1 for repeats in outcomes), outcomes
    assert len({repeats[0] for repeats in outcomes}) >= 2, outcomes


def test_what_an_import_runs_makes_no_difference(project):
    """The first time it runs the module, later it only finds it."""
    project.file(
        "lazy.py", "names = []\nfor number in range(9):\n    names.append(number)\n\ndef one():\n    return 1\n"
    )
    path = project.file(
        "imports.py",
        RACE
        + """
def order(seed, is_first):
    if is_first:
        sys.modules.pop("lazy", None)
    told = []
    def work(name):
        import lazy
        for _ in range(10):
            told.append(name * lazy.one())
    together(seed, lambda: work("a"), lambda: work("b"))
    return "".join(told)

print(json.dumps([[order(seed, is_first) for is_first in (True, False, False, True)] for seed in range(20)]))
""",
    )
    ran = project.python(path)
    assert ran.code == 0, ran.text
    orders = json.loads(ran.text.splitlines()[-1])
    assert all(len(set(repeats)) == 1 for repeats in orders), orders
    assert len({repeats[0] for repeats in orders}) > 5, orders


def test_a_loop_that_looks_until_somebody_else_is_done_ends(program):
    """Without steps it would have to be noticed that it does not get anywhere, which takes a second."""
    code = """
    def look():
        while not done: pass

    def work():
        done.append(1)

    took = []
    for seed in range(5):
        done = []
        begin = hermetic.real.monotonic()
        together(seed, look, work)
        took.append(hermetic.real.monotonic() - begin)
    print(json.dumps(took))
    """
    took = told(program, code)
    assert min(took) < 0.9, took


def test_tracers_and_profilers_see_what_they_always_see(program):
    """Those that are there before, those that come inside, and those that only come with new threads."""
    code = """
    def traced(schedule, when):
        lines, calls = [], []

        def trace(frame, event, argument):
            if frame.f_code.co_name == "add" and event == "line":
                lines.append(frame.f_lineno)
            return trace

        def profile(frame, event, argument):
            if frame.f_code.co_name == "add":
                calls.append(event)

        def set_both():
            threading.settrace(trace), threading.setprofile(profile)
            sys.settrace(trace), sys.setprofile(profile)

        def set_none():
            threading.settrace(None), threading.setprofile(None)
            sys.settrace(None), sys.setprofile(None)

        if when == "before":
            set_both()
        with hermetic.sandbox(seed=4, schedule=schedule):
            if when == "inside":
                set_both()
            threads = [threading.Thread(target=add) for _ in range(2)]
            for thread in threads:
                thread.start()
            add()
            for thread in threads:
                thread.join()
            is_told = sys.gettrace() is trace and sys.getprofile() is profile
            if when == "inside":
                set_none()
        is_kept = sys.gettrace() is (trace if when == "before" else None)
        is_kept = is_kept and sys.getprofile() is (profile if when == "before" else None)
        set_none()
        return [len(lines), sorted(set(calls)), is_told, is_kept]

    schedules = ("cooperative", "seeded")
    print(json.dumps([[traced(schedule, when) for schedule in schedules] for when in ("before", "inside")]))
    """
    for cooperative, seeded in told(program, code):
        assert seeded == cooperative
        assert seeded[0] > 3 * 10 and seeded[1] and seeded[2:] == [True, True]


def test_a_tracer_inside_does_not_end_the_counting(program):
    """Up to 3.11 a thread has one tracer: ours goes in front of it, and back there when somebody sets another one."""
    code = """
    def trace(frame, event, argument):
        return trace

    def outcome(seed):
        global counter
        counter = 0
        def work():
            sys.settrace(trace)
            try:
                add()
            finally:
                sys.settrace(None)
        together(seed, work, work)
        return counter

    print(json.dumps([[outcome(seed) for _ in range(3)] for seed in range(50)]))
    """
    outcomes = told(program, code)
    assert all(len(set(repeats)) == 1 for repeats in outcomes), outcomes
    assert len({repeats[0] for repeats in outcomes}) >= 2, outcomes


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is there from 3.12 on")
def test_a_number_of_sys_monitoring_is_taken_that_is_free_and_given_back(program):
    code = """
    monitoring = sys.monitoring
    free = [tool for tool in range(6) if monitoring.get_tool(tool) is None]
    for tool in (4, 1):
        monitoring.use_tool_id(tool, "somebody")
    outcomes = {lost(seed) for seed in range(50)}
    names = [monitoring.get_tool(tool) for tool in range(6)]
    for tool in range(6):
        if monitoring.get_tool(tool) is None:
            monitoring.use_tool_id(tool, "another")
    try:
        lost(1)
    except hermetic.SandboxError as error:
        text = str(error)
    left = hermetic.current()
    print(json.dumps([len(outcomes), names.count("hermetic"), text, left]))
    """
    outcomes, count, text, left = told(program, code)
    assert outcomes >= 2
    assert count == 0
    assert "schedule='seeded'" in text and "sys.monitoring" in text
    assert left is None


def test_a_recording_is_real_and_its_replay_accepts_the_option(project):
    project.write(
        test_race="""
        import threading

        def test_race():
            done = []
            threads = [threading.Thread(target=done.append, args=(number,)) for number in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(done) == 4
        """
    )
    options = ("-q", "--hermetic-all", "--hermetic-schedule=seeded")
    assert project.pytest(*options, "--hermetic-record=journals").outcomes()["failed"] == 1
    [journal] = project.journals()
    shown = project.python("-m", "hermetic", "journal", "show", journal)
    assert "seeded" in shown.text, shown.text
    replayed = project.pytest("-q", "--hermetic-all", f"--hermetic-replay={journal}")
    assert replayed.outcomes()["failed"] == 1, replayed.text
    assert "assert 3 == 4" in replayed.text


def test_marker_flag_and_ini_key(project):
    project.write(
        test_flags="""
        import hermetic, pytest

        def schedule():
            return hermetic.current()._sandbox._settings_now.config["schedule"]

        def test_default(): print("SCHEDULE", schedule())

        @pytest.mark.hermetic(schedule="cooperative")
        def test_marked(): print("MARKED", schedule())
        """
    )
    bare = project.pytest("-s", "--hermetic-all")
    flag = project.pytest("-s", "--hermetic-all", "--hermetic-schedule=seeded")
    key = project.pytest("-s", "--hermetic-all", "-o", "hermetic_schedule=seeded")
    chosen = [re.search(r"SCHEDULE (\w+)", ran.text) for ran in (bare, flag, key)]
    assert [found and found[1] for found in chosen] == ["cooperative", "seeded", "seeded"]
    assert all("MARKED cooperative" in ran.text for ran in (bare, flag, key))


def test_a_thread_that_computes_for_too_long_is_told_of(program):
    """Nobody shall starve, but who goes on beside it does so in no order of the seed's."""
    code = """
    def compute():
        end = hermetic.real.monotonic() + 1.6
        while hermetic.real.monotonic() < end:
            pass

    sandbox = hermetic.sandbox(seed=1)
    with sandbox:
        thread = threading.Thread(target=compute)
        thread.start()
        compute()
        thread.join()
    print(json.dumps([(found.kind, found.fatal, found.message) for found in sandbox.findings]))
    """
    [(kind, is_fatal, message)] = told(program, code)
    assert (kind, is_fatal) == ("turn-lost", False)
    assert "thread 0 computed" in message or "thread 1 computed" in message


def test_coverage_measures_beside_it_and_changes_nothing(project):
    pytest.importorskip("pytest_cov")
    project.write(
        test_race="""
        import threading

        counter = 0

        def add():
            global counter
            for _ in range(5):
                x = counter
                counter = x + 1
            if counter > 1000:
                print("never")

        def test_race():
            threads = [threading.Thread(target=add) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            print("COUNTED", counter)
        """
    )

    def counted(seed: int, *options: str) -> str:
        ran = project.pytest("-s", "--hermetic-all", "--hermetic-schedule=seeded", f"--hermetic-seed={seed}", *options)
        found = re.search(r"COUNTED \d+", ran.text)
        assert found is not None, ran.text
        if options:
            assert re.search(r"test_race\.py +\d+ +1 +\d+% +12$", ran.text, re.MULTILINE), ran.text
        return found[0]

    for seed in range(1, 5):
        assert counted(seed) == counted(seed, "--cov=test_race", "--cov-report=term-missing")
