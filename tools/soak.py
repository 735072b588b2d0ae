"""Runs random threads, waits, forks and kills inside sandboxes, for minutes, and looks for hangs and stray processes.

Each round is a process of its own, made of a seed: several sandboxes one after another, each with threads that do
random things with random limits, so that every round ends by itself. A round that does not is shown with all its
stacks. After each one no process may be left that it started. What the waits are worth one by one is tested in
`tests/python`.

    $ python3 tools/soak.py --minutes 10
    $ python3 tools/soak.py --round 4711        # one round again
"""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import faulthandler
import hashlib
import multiprocessing
import os
import queue
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROUND_S_MAX = 25.0
"""Real seconds for a round; one takes about a second on a machine with nothing else to do."""

MARK = "HERMETIC_SOAK"
"""Every process of a round carries its number in this variable."""

SANDBOXES = 4
THREADS_MAX = 6
STEPS_MAX = 12


class Yard:
    """What the threads of one sandbox share."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.lock = threading.Lock()
        self.condition = threading.Condition()
        self.event = threading.Event()
        self.queue: queue.Queue[int] = queue.Queue(3)
        self.semaphore = threading.Semaphore(1)
        self.sockets = socket.socketpair()
        for one in self.sockets:
            one.settimeout(300)

    def close(self) -> None:
        for one in self.sockets:
            one.close()


def nap(draw: random.Random, yard: Yard) -> None:
    time.sleep(draw.choice((0, 0.001, 1, 60, 3600)) * draw.random())


def hold(draw: random.Random, yard: Yard) -> None:
    if yard.lock.acquire(timeout=draw.random() * 100):
        try:
            time.sleep(draw.random() * 50)
        finally:
            yard.lock.release()


def notify(draw: random.Random, yard: Yard) -> None:
    with yard.condition:
        if draw.random() < 0.5:
            yard.condition.notify_all()
        else:
            yard.condition.wait(draw.random() * 1000)


def flag(draw: random.Random, yard: Yard) -> None:
    if draw.random() < 0.4:
        yard.event.set()
    elif yard.event.wait(draw.random() * 500):
        yard.event.clear()


def pass_on(draw: random.Random, yard: Yard) -> None:
    try:
        if draw.random() < 0.5:
            yard.queue.put(1, timeout=draw.random() * 200)
        else:
            yard.queue.get(timeout=draw.random() * 200)
    except (queue.Empty, queue.Full):
        pass


def talk(draw: random.Random, yard: Yard) -> None:
    here = yard.sockets[draw.randrange(2)]
    try:
        if draw.random() < 0.6:
            here.send(b"x")
        else:
            here.recv(10)
    except TimeoutError:
        pass


def compute(draw: random.Random, yard: Yard) -> None:
    hashlib.sha256(bytes(draw.randrange(3_000_000))).digest()


def loop(draw: random.Random, yard: Yard) -> None:
    async def job(seconds: float) -> None:
        try:
            await asyncio.wait_for(asyncio.sleep(seconds), draw.random() * 100)
        except asyncio.TimeoutError:
            pass

    async def main() -> None:
        executed = asyncio.get_running_loop().run_in_executor(None, compute, draw, yard)
        await asyncio.gather(executed, *(job(draw.random() * 200) for _ in range(3)))

    asyncio.run(main())


def pool(draw: random.Random, yard: Yard) -> None:
    with concurrent.futures.ThreadPoolExecutor(3) as workers:
        jobs = [workers.submit(time.sleep, draw.random() * 100) for _ in range(4)]
        concurrent.futures.wait(jobs, timeout=draw.random() * 100)


def fork(draw: random.Random, yard: Yard) -> None:
    seconds, is_killed = draw.random() * 300, draw.random() < 0.5
    child = os.fork()
    if child == 0:
        # Locks that other threads held are held for ever here: nothing but a nap.
        time.sleep(seconds)
        os._exit(0)
    if is_killed:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def start(draw: random.Random, yard: Yard) -> None:
    child = subprocess.Popen(["sleep", str(draw.random() * 300)])
    try:
        child.wait(timeout=draw.random() * 300)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def interpret(draw: random.Random, yard: Yard) -> None:
    code = "import threading, time\nt = threading.Timer(50, print); t.start(); time.sleep(100)"
    child = subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE)
    if draw.random() < 0.4:
        child.kill()
    child.communicate()


def multiply(draw: random.Random, yard: Yard) -> None:
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(draw.random() * 200,))
    child.start()
    if draw.random() < 0.3:
        child.kill()
    child.join()


def interrupt(draw: random.Random, yard: Yard) -> None:
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(draw.random())


COMMON: tuple[Callable[[random.Random, Yard], None], ...] = (
    nap,
    hold,
    notify,
    flag,
    pass_on,
    talk,
    compute,
    loop,
    pool,
    interrupt,
)
RARE = (fork, start, interpret, multiply)


def work(draw: random.Random, yard: Yard) -> None:
    for _ in range(draw.randrange(1, STEPS_MAX)):
        step = draw.choice(RARE) if draw.random() < 0.1 else draw.choice(COMMON)
        step(draw, yard)


def run_round(number: int) -> None:
    """The work of one round, in this process."""
    import hermetic

    faulthandler.dump_traceback_later(ROUND_S_MAX, exit=True)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    draw = random.Random(number)
    for _ in range(SANDBOXES):
        seed = draw.randrange(1 << 32)
        # A draw of its own, so that the rounds stay what they were.
        schedule = "seeded" if random.Random(seed).random() < 0.5 else "cooperative"
        with hermetic.sandbox(seed=seed, schedule=schedule):
            yard = Yard(seed)
            draws = [random.Random(draw.random()) for _ in range(draw.randrange(1, THREADS_MAX))]
            threads = [threading.Thread(target=work, args=(one, yard)) for one in draws]
            for thread in threads:
                thread.start()
            work(draw, yard)
            for thread in threads:
                thread.join()
            yard.close()
    faulthandler.cancel_dump_traceback_later()
    print("ended", flush=True)


def strays(number: int) -> Iterator[int]:
    """The processes that carry the round's mark."""
    mark = f"{MARK}={number}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)
        except (OSError, ValueError):
            continue


def supervise(number: int, python: str) -> str:
    """Runs a round in a process of its own. Returns what is wrong with it, or nothing."""
    words = [python, str(Path(__file__).resolve()), "--round", str(number)]
    env = {**os.environ, MARK: str(number), "PYTHONFAULTHANDLER": "1"}
    trouble = ""
    with subprocess.Popen(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as child:
        try:
            text, _ = child.communicate(timeout=ROUND_S_MAX + 20)
            if child.returncode != 0 or not text.rstrip().endswith("ended"):
                trouble = f"exit code {child.returncode}\n{text}"
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            text, _ = child.communicate()
            trouble = f"hangs, and does not even show its stacks\n{text}"
    left = list(strays(number))
    for process in left:
        os.kill(process, signal.SIGKILL)
    return trouble or (f"processes {left} are left over" if left else "")


def main() -> int:
    parser = argparse.ArgumentParser(description="Random threads, waits, forks and kills inside sandboxes.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--round", type=int, help="run this round alone, here")
    parser.add_argument("--first", type=int, default=1, help="the first round's number")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has Hermetic")
    given = parser.parse_args()
    if given.round is not None:
        run_round(given.round)
        return 0
    end, number, failed = time.monotonic() + given.minutes * 60, given.first, 0
    slowest = 0.0
    while time.monotonic() < end:
        begin = time.monotonic()
        trouble = supervise(number, given.python)
        slowest = max(slowest, time.monotonic() - begin)
        if trouble:
            failed += 1
            print(f"--- round {number}: {trouble}\n    again: python3 tools/soak.py --round {number}", flush=True)
        number += 1
    print(f"soak: {number - given.first} rounds, {failed} failed, the slowest took {slowest:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
