"""An hour at the market: asyncio, threads and a child process wait, in code that knows nothing of Hermetic."""

import asyncio
import queue
import subprocess
import threading
import time

HOUR = 3600


async def stall(name: str, minutes: int, sold: list[str]) -> None:
    for _ in range(60 // minutes):
        await asyncio.sleep(minutes * 60)
        sold.append(name)


def test_stalls_sell_for_an_hour():
    """asyncio: two stalls, and a customer who gives up after half an hour."""
    sold: list[str] = []

    async def market() -> str:
        async def customer() -> str:
            try:
                await asyncio.wait_for(asyncio.Event().wait(), HOUR / 2)
            except asyncio.TimeoutError:
                return "went home"
            return "was served"

        told, *_ = await asyncio.gather(customer(), stall("bread", 20, sold), stall("fish", 30, sold))
        return told

    begin = time.monotonic()
    assert asyncio.run(market()) == "went home"
    assert sold.count("bread") == 3
    assert sold.count("fish") == 2
    assert HOUR <= time.monotonic() - begin < HOUR + 1


def test_a_queue_runs_dry():
    """Threads: a baker brings a loaf every quarter of an hour; the shop waits for twenty minutes at most."""
    loaves: queue.Queue[int] = queue.Queue()

    def bake() -> None:
        for number in range(4):
            time.sleep(HOUR / 4)
            loaves.put(number)

    baker = threading.Thread(target=bake)
    baker.start()
    got = []
    try:
        while True:
            got.append(loaves.get(timeout=HOUR / 3))
    except queue.Empty:
        baker.join()
    assert got == [0, 1, 2, 3]


def test_the_cart_is_late():
    """A child process sleeps for an hour."""
    begin = time.monotonic()
    subprocess.run(["sleep", str(HOUR)], check=True)
    assert time.monotonic() - begin >= HOUR
