"""Uses throwaway PostgreSQL for long, and kills its owners at random moments, and looks for what stays behind.

Two parts. In the first one cluster hands out a thousand databases in sequence: a cycle must not take longer at the end
than at the beginning, nor the cluster more memory. In the second a hundred processes start a cluster and are killed,
each at a moment that the seed draws, from before their first instruction to well after their first databases; then no
process, directory or shared memory may be left.

    $ python3 tools/soak_postgres.py
    $ python3 tools/soak_postgres.py --kills 1000 --seed 7
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLACES = ("/dev/shm", tempfile.gettempdir())
"""Where clusters live."""
PREFIXES = ("hpg-", "hermetic-pg-")
"""How their directories' names begin, which stand in the command lines of their processes too."""
SUPERVISOR = "hermetic-pg"

WINDOW = 100
"""Cycles whose median is compared, at the beginning and at the end."""
SLOWER_MAX = 1.5
LARGER_MAX = 1.25
"""How much the last cycles may take of the time and memory of the first."""

DELAY_S_MAX = 0.4
"""An owner is killed at most so long after its start; its cluster is ready well before the half of it."""
GONE_S_MAX = 10.0
"""What is there so long after the last kill is left over. Clean-up takes milliseconds."""

OWNER = """
from stricttest import pgcluster
with pgcluster.ephemeral_cluster("SOAK_URL") as cluster:
    while True:
        with cluster.database():
            pass
"""


def processes() -> dict[int, str]:
    """The clusters' processes, with their command lines."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            program = os.path.basename(os.readlink(folder / "exe"))
        except OSError:
            continue
        if program.startswith(SUPERVISOR) or any(f"/{prefix}" in line for prefix in PREFIXES):
            found[int(folder.name)] = line.strip()
    return found


def leftovers() -> set[str]:
    """Everything of clusters that a machine can see: processes, directories, System V shared memory."""
    patterns = [f"{prefix}*" for prefix in PREFIXES]
    directories = {str(path) for place in PLACES for pattern in patterns for path in Path(place).glob(pattern)}
    segments = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    shared = {f"shared memory {line.split()[1]}" for line in segments}
    return directories | shared | {f"process {number}: {line}" for number, line in processes().items()}


def memory_mb() -> float:
    """Memory that the clusters' processes have for themselves, plus their share of what they share."""
    total = 0
    for number in processes():
        try:
            lines = Path(f"/proc/{number}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def sequence(count: int) -> list[str]:
    """Databases one after another. Returns what is wrong."""
    from stricttest import pgcluster

    times, sizes = [], []
    with pgcluster.ephemeral_cluster("SOAK_URL") as cluster:
        for number in range(count):
            begin = time.perf_counter()
            with cluster.database() as url:
                name = url.partition("@/")[2].partition("?")[0]
                cluster.sql("create table t(i int)", dbname=name)
            times.append(time.perf_counter() - begin)
            if number in (WINDOW, count - 1):
                sizes.append(memory_mb())
    first, last = (statistics.median(part) * 1000 for part in (times[:WINDOW], times[-WINDOW:]))
    print(
        f"{count} databases in sequence: a cycle takes {first:.1f} ms at first, {last:.1f} ms at last; "
        f"memory {sizes[0]:.0f} MB after {WINDOW}, {sizes[-1]:.0f} MB after all",
        flush=True,
    )
    troubles = []
    if last > first * SLOWER_MAX:
        troubles.append(f"cycles become slower: {first:.1f} ms, then {last:.1f} ms")
    if sizes[-1] > sizes[0] * LARGER_MAX:
        troubles.append(f"the cluster grows: {sizes[0]:.0f} MB, then {sizes[-1]:.0f} MB")
    return troubles


def kills(count: int, draw: random.Random) -> list[str]:
    """Owners that are killed. Returns what is left of their clusters."""
    before = leftovers()
    for _ in range(count):
        owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(draw.random() * DELAY_S_MAX)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    end = time.monotonic() + GONE_S_MAX
    while (left := leftovers() - before) and time.monotonic() < end:
        time.sleep(0.05)
    print(f"{count} owners killed at random moments: {len(left) or 'nothing'} left over", flush=True)
    return sorted(left)


def main() -> int:
    parser = argparse.ArgumentParser(description="Throwaway PostgreSQL in long use, and with owners that are killed.")
    parser.add_argument("--databases", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.databases < 2 * WINDOW:
        parser.error(
            f"--databases {given.databases}: at least {2 * WINDOW}, as the first and last {WINDOW} are compared"
        )
    troubles = sequence(given.databases) + kills(given.kills, random.Random(given.seed))
    for trouble in troubles:
        print(f"    {trouble}")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
