"""Nanoseconds that calls with an audit event take inside a test: `BENCH_EVENT` says which. Printed after `audit: `."""

import importlib
import os
import sys
import time

LOOPS = {"id": 20_000, "getframe": 20_000, "open": 500, "import": 300}
ROUNDS = 40


def acts(place):
    thing = object()
    getframe = sys._getframe
    path = place / "some.txt"
    path.write_text("text")
    (place / "empty_module.py").write_text("")
    sys.path.insert(0, str(place))
    importlib.invalidate_caches()

    def opened():
        os.close(os.open(path, os.O_RDONLY))

    def imported():
        importlib.import_module("empty_module")
        del sys.modules["empty_module"]

    return {"id": lambda: id(thing), "getframe": getframe, "open": opened, "import": imported}


def test_audit(tmp_path):
    name = os.environ["BENCH_EVENT"]
    act, count = acts(tmp_path)[name], LOOPS[name]
    best = []
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for _ in range(count):
            act()
        best.append((time.perf_counter_ns() - begin) / count)
    sys.path.remove(str(tmp_path))
    print(f"\naudit: {sorted(best)[ROUNDS // 4]}")
