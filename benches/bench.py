"""Takes all samples, prints the table, and keeps it as a page: `make bench`.

Each round takes, one after the other, a row's own sample, its base's, and each peer's; the figure is the median of
the rounds' figures (or, of suites, that of the fastest samples), so that whatever else the machine does falls on both
sides. One round before them warms caches and is thrown away. What is measured is left to `rows.py`, how to
`samples.py` and `probe.py`.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from environments import add, ensure
from interpreters import Interpreter, discover
from rows import BENCH, ROWS, STRICT, Pair, Row
from samples import ROOT, SampleFailed, python_of

ENVIRONMENTS = sorted((ROOT / "benches" / "environments").glob("*.txt"))
COMMAND = "make bench"
NAMED = ("hermetic-sandbox", "pytest", "freezegun", "time-machine", "pytest-socket", "stricttest")


@dataclass(frozen=True)
class Result:
    """A row's figures: its own, its spread over the rounds, and the peers'; `None` where a sample failed."""

    row: Row
    own: float | None
    spread: tuple[float, float]
    peers: dict[str, float | None]
    error: str = ""

    def verdict(self) -> str:
        return "failed" if self.own is None else ("ok" if self.own <= self.row.limit else "over")


def taken(pair: Pair) -> tuple[float, float]:
    own = pair.own.take()
    return own, pair.base.take() if pair.base else 0.0


def figure_of(row: Row, rounds: list[tuple[float, float]]) -> float:
    if row.is_of_fastest:
        return row.figure(min(own for own, _ in rounds), min(base for _, base in rounds))
    return median(row.figure(*each) for each in rounds)


def measure(row: Row) -> Result:
    """Rounds of (ours, peer, peer, …). A failing peer loses its column; a failing own sample fails the row."""
    pairs = {"": row.ours, **row.peers}
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in pairs}
    errors: dict[str, str] = {}
    for number in range(row.rounds + 1):
        for name, pair in pairs.items():
            if name in errors:
                continue
            try:
                samples = taken(pair)
            except SampleFailed as error:
                errors[name] = str(error)
                continue
            if number > 0:
                rounds[name].append(samples)
    figures = {name: None if name in errors else figure_of(row, rounds[name]) for name in pairs}
    own_figures = [row.figure(*each) for each in rounds[""]]
    spread = (min(own_figures), max(own_figures)) if own_figures else (0.0, 0.0)
    own = figures.pop("")
    return Result(row, own, spread, figures, "\n".join(f"{name}: {text}" for name, text in errors.items()))


def shown(value: float | None, unit: str) -> str:
    if value is None:
        return "failed"
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{digits}f} {unit}" if unit != "×" else f"{value:,.{digits}f} ×"


def cells(result: Result) -> list[str]:
    row = result.row
    peers = "; ".join(f"{name} {shown(value, row.unit)}" for name, value in result.peers.items())
    low, high = result.spread
    return [
        row.question,
        shown(result.own, row.unit),
        f"{shown(low, row.unit)} … {shown(high, row.unit)}",
        f"≤ {row.limit:g} {row.unit}",
        result.verdict(),
        peers or "–",
    ]


HEADS = ["what", "hermetic", "lowest … highest", "target", "", "peers"]


def line(words: list[str]) -> str:
    return "| " + " | ".join(words) + " |"


def table(lines: list[str]) -> str:
    return "\n".join([line(HEADS), line(["---"] * len(HEADS)), *lines])


def kept_lines(path: Path) -> dict[str, str]:
    """The table's lines on a page that is there already, by what they measure."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {found.split(" | ")[0].removeprefix("| "): found for found in lines if found.startswith("| ")}


def versions() -> str:
    listed = []
    for path in ENVIRONMENTS:
        code = (
            "import importlib.metadata as m\n"
            f"for n in {NAMED!r}:\n"
            "    try: print(n, m.version(n))\n"
            "    except m.PackageNotFoundError: pass"
        )
        done = subprocess.run([python_of(path.stem), "-c", code], capture_output=True, text=True)
        listed.append(f"{path.stem}: {', '.join(done.stdout.split(chr(10))).strip(', ')}")
    return "; ".join(listed)


def machine(interpreter: Interpreter) -> str:
    model = next(
        (line.split(":")[1].strip() for line in cpu_lines() if line.startswith("model name")), "unknown processor"
    )
    libc = " ".join(platform.libc_ver())
    return (
        f"{model}, {os.cpu_count()} processors, {platform.machine()}, Linux {platform.release()}, {libc}; "
        f"CPython {interpreter.label}"
    )


def cpu_lines() -> list[str]:
    return Path("/proc/cpuinfo").read_text().splitlines()


def page(lines: list[str], interpreter: Interpreter) -> str:
    met = sum(" | ok | " in line for line in lines)
    return f"""# Benchmarks

Made by `{COMMAND}`, which anyone can run: it installs the peers, each in an environment of its own, and writes this
page. `{COMMAND} ROWS=<key> KEEP=1` takes a part of the rows and replaces their lines. {met} of {len(lines)} targets are
met.

- Machine: {machine(interpreter)}.
- Environments: {versions()}.
- Each figure is the median of at least seven rounds after one that is thrown away. Within a round, Hermetic's sample,
  the one it is compared with and the peers' are taken in turn. Of the import, a sample is the processor time, user and
  system, of the whole process. Of a test suite, it is what its median test takes; there the figure is of the fastest
  sample of each kind, because spells in which a virtual machine is slow last longer than a run.
- "hermetic 0.1.0" is the reference, hermetic-sandbox 0.1.0.

{table(lines)}
"""


def keep(path: Path, results: list[Result], interpreter: Interpreter) -> None:
    """Writes the page, with the lines that it has of rows that were not taken."""
    lines = kept_lines(path) | {result.row.question: line(cells(result)) for result in results}
    path.write_text(page([lines[row.question] for row in ROWS if row.question in lines], interpreter))


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure Hermetic against its peers.")
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--rows", default="", help="only rows whose key holds this word")
    parser.add_argument("--python", default="", help="release of the interpreter to use (default: the newest)")
    parser.add_argument("--write", type=Path, help="the page to keep the table in")
    given = parser.parse_args()
    interpreter = [one for one in discover() if one.label.startswith(given.python)][-1]
    chosen = [row for row in ROWS if given.rows in row.key]
    if not chosen:
        parser.error(f"no row is called {given.rows!r}; there are {', '.join(row.key for row in ROWS)}")
    for path in ENVIRONMENTS:
        folder = ensure(path.stem, interpreter.path, [path], given.wheel if path.stem in (BENCH, STRICT) else None)
        if path.stem == STRICT:
            add(folder, ROOT / "python" / "stricttest")
    results = []
    for number, row in enumerate(chosen, 1):
        print(f"{number:>2}/{len(chosen)}  {row.question}", file=sys.stderr, flush=True)
        results.append(measure(row))
        if results[-1].error:
            print(results[-1].error, file=sys.stderr)
        if given.write:
            # After each row: a run that is cut short keeps what it has taken.
            keep(given.write, results, interpreter)
    print(table([line(cells(result)) for result in results]))
    if given.write:
        print(f"\nkept in {given.write}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
