"""Waits of threads, asyncio and child processes, where peers hang, wait really or move the clock at random."""

from __future__ import annotations

import json

import pytest


@pytest.mark.case("h15")
def test_asyncio_sleeps_an_exact_virtual_second(program):
    ran = program(
        """
        import asyncio, time, hermetic
        with hermetic.sandbox(seed=1):
            begin = time.time()
            asyncio.run(asyncio.wait_for(asyncio.sleep(1.0), 2))
            print(round(time.time() - begin, 3))
        """
    )
    assert ran.text.split() == ["1.0"]


@pytest.mark.case("h16")
def test_an_event_and_a_queue_wait_in_virtual_time(program):
    ran = program(
        """
        import queue, threading, time, hermetic
        with hermetic.sandbox(seed=1) as sandbox:
            real, begin = sandbox.real.monotonic(), time.time()
            threading.Event().wait(500)
            try:
                queue.Queue().get(timeout=500)
            except queue.Empty:
                pass
            print(round(time.time() - begin, 3), sandbox.real.monotonic() - real < 5)
        """
    )
    assert ran.text.split() == ["1000.0", "True"]


@pytest.mark.case("h17")
def test_waiting_for_a_child_takes_as_long_as_the_child_naps(program):
    ran = program(
        """
        import json, subprocess, time, hermetic
        def run():
            with hermetic.sandbox(seed=1):
                begin = time.time()
                subprocess.Popen(["sleep", "400"]).wait(timeout=3000)
                return time.time() - begin
        print(json.dumps([run() for _ in range(3)]))
        """
    )
    took = json.loads(ran.text)
    # While the program starts, time is real. Then the interpreter polls for it, at most a twentieth of a second apart.
    assert all(400 <= one < 403 for one in took), took


@pytest.mark.case("h19")
def test_children_and_spawned_workers_have_the_sandboxs_clock(project):
    path = project.file(
        "years.py",
        """
        import multiprocessing, subprocess, sys, time
        import hermetic

        def year():
            return time.gmtime().tm_year

        if __name__ == "__main__":
            with hermetic.sandbox(seed=1):
                code = "import time; print(time.gmtime().tm_year)"
                print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip())
                for method in ("fork", "spawn", "forkserver"):
                    with multiprocessing.get_context(method).Pool(1) as pool:
                        print(pool.apply(year))
                print(year())
        """,
    )
    ran = project.python(path)
    assert len(ran.text.split()) == 5, ran.text
    assert len(set(ran.text.split())) == 1, ran.text


@pytest.mark.case("h47")
def test_a_test_of_pytest_asyncio_naps_in_virtual_time(project):
    pytest.importorskip("pytest_asyncio")
    project.write(
        test_naps="""
        import asyncio, time
        import pytest

        @pytest.mark.asyncio
        async def test_nap():
            begin = time.monotonic()
            await asyncio.sleep(3600)
            assert 3600 <= time.monotonic() - begin < 3601
        """
    )
    ran = project.pytest("--hermetic-all", timeout=30)
    assert ran.outcomes() == {"passed": 1}, ran.text
