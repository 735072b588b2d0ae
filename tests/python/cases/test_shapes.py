"""What a sandbox can wrap and what can run inside one: the peer's defects h27 and h44, absent here."""

from __future__ import annotations

import asyncio
import datetime
import time

import hermetic
import pytest

EPOCH_2020 = 1_577_836_800


@pytest.mark.case("h27")
def test_a_generators_body_runs_inside():
    @hermetic.sandbox(seed=1)
    def years():
        yield time.gmtime().tm_year
        time.sleep(400 * 86400)
        yield time.gmtime().tm_year

    assert list(years()) == [2020, 2021]
    assert list(years()) == [2020, 2021]
    assert time.gmtime().tm_year > 2020


@pytest.mark.case("h27")
def test_an_async_generators_body_runs_inside():
    @hermetic.sandbox(seed=1)
    async def years():
        yield time.gmtime().tm_year

    async def collect():
        return [year async for year in years()]

    assert asyncio.run(collect()) == [2020]
    assert time.gmtime().tm_year > 2020


@pytest.mark.case("h27")
def test_a_class_is_refused_or_stays_a_class():
    class Shop:
        def open(self):
            return time.gmtime().tm_year

    try:
        decorated = hermetic.sandbox(seed=1)(Shop)
    except (TypeError, hermetic.SandboxError) as error:
        assert "class" in str(error)
    else:
        assert isinstance(decorated, type)
        assert decorated.__name__ == "Shop"


def years() -> tuple[int, int]:
    return time.gmtime().tm_year, datetime.datetime.now().year


@pytest.mark.case("h44")
@pytest.mark.parametrize("order", ["inside", "around"])
def test_time_machine_goes_with_a_sandbox(order):
    time_machine = pytest.importorskip("time_machine")
    outside = time.time, datetime.datetime
    if order == "inside":
        with hermetic.sandbox(seed=1):
            with time_machine.travel("2030-01-01 12:00", tick=False):
                assert years() == (2030, 2030)
            assert time.time() == EPOCH_2020
    else:
        with time_machine.travel("2030-01-01 12:00", tick=False):
            refused_or_2020("time_machine")
    assert (time.time, datetime.datetime) == outside
    assert abs(time.time() - hermetic.real.time()) < 60


@pytest.mark.case("h44")
@pytest.mark.parametrize("order", ["inside", "around"])
def test_freezegun_goes_with_a_sandbox(order):
    freezegun = pytest.importorskip("freezegun")
    outside = time.time, datetime.datetime
    if order == "inside":
        with hermetic.sandbox(seed=1):
            with freezegun.freeze_time("2031-01-01 12:00"):
                assert years() == (2031, 2031)
            assert time.time() == EPOCH_2020
    else:
        with freezegun.freeze_time("2031-01-01 12:00"):
            refused_or_2020("freezegun")
    assert (time.time, datetime.datetime) == outside
    assert abs(time.time() - hermetic.real.time()) < 60


def refused_or_2020(other: str) -> None:
    """A sandbox inside another tool's block wins there, or says who else holds the clock."""
    try:
        with hermetic.sandbox(seed=1, now="2020-06-01"):
            assert years() == (2020, 2020)
    except hermetic.SandboxError as error:
        assert other.replace("_", "-") in str(error).replace("_", "-")
