"""A pytest plugin that tells how long a test of the run took, from its begin to that of the next one.

Told is the median in microseconds: imports, the first test and whatever else the machine does now and then differ from
run to run by more than all tests together take.
"""

from __future__ import annotations

import itertools
import statistics
import time

import pytest

begun_s = []


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart() -> None:
    begun_s.append(time.perf_counter())


def pytest_unconfigure() -> None:
    taken_s = [after - before for before, after in itertools.pairwise(begun_s)]
    print(f"suite: {statistics.median(taken_s) * 1e6}")
