"""Takes one sample inside one environment and prints it as a number: `python probe.py NAME [ARGUMENT…]`.

A probe imports only what it measures, so the same file runs in the environment of every peer. Times are taken with
the clock as it is outside every sandbox, because inside it is the thing under test. Rounds, medians and targets are
left to `bench.py`.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import sys
import time
import types
from contextlib import nullcontext
from datetime import datetime

EPOCH_2020 = 1_577_836_800
clock_ns = time.perf_counter_ns


def fill_modules(count: int) -> None:
    """Brings `sys.modules` to `count` entries; each new one holds what modules hold, names of the clock included."""
    body = "import time, datetime\nfrom datetime import datetime as moment\ndef work(): pass\nclass Thing: pass\n"
    code = compile(body + "".join(f"name_{n} = {n}\n" for n in range(20)), "<filler>", "exec")
    for number in itertools.count():
        if len(sys.modules) >= count:
            return
        module = types.ModuleType(f"filler_{number}")
        exec(code, module.__dict__)
        sys.modules[module.__name__] = module


def tool(name: str):
    """A function that makes a fresh context of the tool under test."""
    if name == "defaults":
        import hermetic

        return lambda: hermetic.sandbox(seed=1)
    if name == "clock":
        import hermetic

        return lambda: hermetic.sandbox(seed=1, rng="off", network="off")
    if name == "entropy":
        import hermetic

        return lambda: hermetic.sandbox(seed=1, clock="off", network="off")
    if name == "time-machine":
        import time_machine

        return lambda: time_machine.travel(EPOCH_2020, tick=False)
    if name == "freezegun":
        import freezegun

        return lambda: freezegun.freeze_time("2020-01-01")
    raise SystemExit(f"unknown tool {name!r}")


def enter_exit(name: str, modules: str, repeats: str) -> float:
    """Microseconds for one enter and exit: the median over `repeats`."""
    make = tool(name)
    fill_modules(int(modules))
    gc.disable()
    spent = []
    for _ in range(int(repeats) + 20):
        context = make()
        begin = clock_ns()
        context.__enter__()
        context.__exit__(None, None, None)
        spent.append(clock_ns() - begin)
    return sorted(spent[20:])[int(repeats) // 2] / 1000


def look_up(reading: str):
    """The function that the reading names, as it is found now: some peers replace the attribute."""
    if reading == "urandom":
        urandom = os.urandom
        return lambda: urandom(16)
    return {"time": time.time, "monotonic": time.monotonic, "now": sys.modules["datetime"].datetime.now}[reading]


def spend(make, reading: str, count: int) -> int:
    begin = clock_ns()
    with make():
        call = look_up(reading)
        for _ in itertools.repeat(None, count):
            call()
    return clock_ns() - begin


def inside(name: str, reading: str, count: str) -> float:
    """How many times as long as natively the reading takes inside. Entering is measured apart and taken off."""
    make, readings = tool(name), int(count)
    spend(make, reading, 1000)
    ratios = []
    for _ in range(9):
        native = spend(nullcontext, reading, readings)
        virtual = spend(make, reading, readings) - min(spend(make, reading, 0) for _ in range(3))
        ratios.append(virtual / native)
    return sorted(ratios)[len(ratios) // 2]


def recording_ns(count: str) -> float:
    """Nanoseconds that one recorded reading of the wall clock takes over a native one."""
    import tempfile

    import hermetic

    readings, over = int(count), []
    read = time.time
    for _ in range(7):
        begin = clock_ns()
        for _ in itertools.repeat(None, readings):
            read()
        native = clock_ns() - begin
        with tempfile.TemporaryDirectory() as box, hermetic.sandbox(record=f"{box}/kept.json.gz") as sb:
            call, real = time.time, sb.real.perf_counter
            begin_s = real()
            for _ in itertools.repeat(None, readings):
                call()
            recorded = (real() - begin_s) * 1e9
        over.append((recorded - native) / readings)
    return sorted(over)[len(over) // 2]


def recording_bytes(suffix: str, few: str, many: str) -> float:
    """Bytes of a kept journal for each further reading of the wall clock."""
    import tempfile

    import hermetic

    sizes = []
    with tempfile.TemporaryDirectory() as box:
        for number in (int(few), int(many)):
            path = f"{box}/{number}{suffix}"
            with hermetic.sandbox(record=path):
                for _ in itertools.repeat(None, number):
                    time.time()
            sizes.append(os.path.getsize(path))
    return (sizes[1] - sizes[0]) / (int(many) - int(few))


def in_threads(work, count: int) -> float:
    """Real seconds that so many threads take to do the work."""
    import threading

    import hermetic

    threads = [threading.Thread(target=work) for _ in range(count)]
    begin = hermetic.real.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return hermetic.real.monotonic() - begin


def computing_threads(rounds: str) -> float:
    """How much longer three threads compute inside a sandbox than outside."""

    def work() -> int:
        return sum(number & 7 for number in range(int(rounds)))

    ratios = []
    for _ in range(5):
        outside = in_threads(work, 3)
        with tool("defaults")():
            ratios.append(in_threads(work, 3) / outside)
    return sorted(ratios)[len(ratios) // 2]


def alternating_naps(count: str) -> float:
    """Real milliseconds in which two threads nap for a second in turn, so many times together."""

    def work() -> None:
        for _ in range(int(count) // 2):
            time.sleep(1)

    with tool("defaults")():
        return in_threads(work, 2) * 1000


PROBES = {
    probe.__name__: probe
    for probe in (enter_exit, inside, recording_ns, recording_bytes, computing_threads, alternating_naps)
}

if __name__ == "__main__":
    assert datetime is not None  # Imported first, so that a peer finds it in the modules that it scans.
    print(json.dumps(PROBES[sys.argv[1]](*sys.argv[2:])))
