"""The table of benchmarks: one row, one question, one target. Order here is order on the page.

To add a row, add an entry; nothing else knows how many there are. A row's figure is made of its own sample and its
base's, taken in turn in the same round; a peer's figure is made in the same way from the peer's two samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from postgres_rows import TABLE, Postgres
from samples import HEAVY, ROOT, Audit, Example, JournalSize, Probe, Process, Suite

BENCH, REFERENCE, FREEZEGUN, TRAVEL, SOCKET = "bench", "hermetic-0.1.0", "freezegun", "time-machine", "pytest-socket"
STRICT, STRICT_REFERENCE = "stricttest", "stricttest-0.2.0"
Sample = Probe | Process | Suite | Audit | JournalSize | Postgres | Example


def plain(own: float, base: float) -> float:
    return own


def ratio(own: float, base: float) -> float:
    return own / base


def over(own: float, base: float) -> float:
    return own - base


@dataclass(frozen=True)
class Pair:
    """A sample and, where the figure compares, the base that it is compared with."""

    own: Sample
    base: Sample | None = None


@dataclass(frozen=True)
class Row:
    """One line of the table. `limit` is the target: the figure must not be above it."""

    key: str
    question: str
    unit: str
    limit: float
    ours: Pair
    figure: Callable[[float, float], float] = plain
    peers: dict[str, Pair] = field(default_factory=dict)
    rounds: int = 7
    is_of_fastest: bool = False
    """The figure is that of the fastest samples, and not the median of the rounds' figures."""


def probe(environment: str, *words: str) -> Pair:
    return Pair(Probe(environment, words))


def entering(tool: str, modules: int, environment: str = BENCH, repeats: int = 2000) -> Pair:
    return probe(environment, "enter_exit", tool, str(modules), str(repeats))


def reading(tool: str, name: str, environment: str = BENCH, count: int = 100_000) -> Pair:
    return probe(environment, "inside", tool, name, str(count))


def suite(heavy: bool, *options: str, environment: str = BENCH, tests: int = 2000) -> Pair:
    return Pair(Suite(environment, tests, heavy, options), Suite(environment, tests, heavy))


def reference_suite(heavy: bool, *options: str) -> Pair:
    # A fifth of the tests: the figure is per test, and the reference takes milliseconds for each.
    return suite(heavy, *options, environment=REFERENCE, tests=400)


def enter_rows() -> list[Row]:
    rows = []
    for modules in (400, 4000):
        peers = {"hermetic 0.1.0": entering("defaults", modules, REFERENCE, 60)}
        question = f"enter + exit, defaults, {modules:,} modules"
        rows.append(Row(f"enter-defaults-{modules}", question, "µs", 20, entering("defaults", modules), peers=peers))
    for modules in (400, 4000):
        pair = Pair(entering("clock", modules).own, entering("time-machine", modules, TRAVEL).own)
        question = f"enter + exit, clock only, {modules:,} modules, against time_machine.travel(int)"
        rows.append(Row(f"enter-clock-{modules}", question, "×", 1.0, pair, ratio))
    return rows


def reading_rows() -> list[Row]:
    calls = {"time": "time.time()", "monotonic": "time.monotonic()", "now": "datetime.now()"}
    rows = []
    for name, call in calls.items():
        peers = {
            "hermetic 0.1.0": reading("clock", name, REFERENCE),
            "time-machine": reading("time-machine", name, TRAVEL),
            "freezegun": reading("freezegun", name, FREEZEGUN, 20_000),
        }
        rows.append(
            Row(f"read-{name}", f"{call} inside, against native", "×", 1.1, reading("clock", name), peers=peers)
        )
    peers = {"hermetic 0.1.0": reading("entropy", "urandom", REFERENCE)}
    question = "os.urandom(16) inside, against native"
    return [*rows, Row("read-urandom", question, "×", 0.5, reading("entropy", "urandom"), peers=peers)]


def suite_rows() -> list[Row]:
    record = "--hermetic-record={journals}"  # the sample fills in its own folder
    rows = []
    for heavy in (False, True):
        weight = f", {len(HEAVY)} heavy libraries" if heavy else ""
        key = "heavy" if heavy else "light"
        for name, limit, options in (
            ("all", 60, ("--hermetic-all",)),
            ("record", 90, ("--hermetic-all", record)),
        ):
            peers = {"hermetic 0.1.0": reference_suite(heavy, *options)}
            if name == "all" and not heavy:
                peers["pytest-socket"] = suite(heavy, "--disable-socket", environment=SOCKET)
            question = f"per trivial test of 2,000{weight}: --hermetic-{name}, over plain pytest"
            ours = suite(heavy, *options)
            rows.append(Row(f"suite-{key}-{name}", question, "µs", limit, ours, over, peers, is_of_fastest=True))
    return rows


def journal_rows() -> list[Row]:
    return [
        Row(
            "record-ns",
            "recording: a clock reading, over native",
            "ns",
            250,
            probe(BENCH, "recording_ns", "90000"),
            peers={"hermetic 0.1.0": probe(REFERENCE, "recording_ns", "90000")},
        ),
        Row(
            "record-bytes",
            "recording: bytes kept per clock reading",
            "bytes",
            4,
            probe(BENCH, "recording_bytes", ".journal", "10000", "90000"),
            peers={"hermetic 0.1.0": probe(REFERENCE, "recording_bytes", ".json.gz", "10000", "90000")},
        ),
        Row(
            "record-empty",
            "recording: journal of an empty failing test",
            "bytes",
            1500,
            Pair(JournalSize(BENCH)),
            peers={"hermetic 0.1.0": Pair(JournalSize(REFERENCE))},
        ),
    ]


def wait_rows() -> list[Row]:
    return [
        Row(
            "threads-compute",
            "three threads that compute, inside against outside",
            "×",
            1.1,
            probe(BENCH, "computing_threads", "600000"),
        ),
        Row(
            "threads-nap",
            "two threads that nap ten thousand times in turn",
            "ms",
            1000,
            probe(BENCH, "alternating_naps", "10000"),
        ),
    ]


def rust_rows() -> list[Row]:
    question = "#[hermetic::test], over an empty test without it"
    return [Row("rust-test", question, "µs", 50, Pair(Example("empty_test")))]


def import_rows() -> list[Row]:
    def pair(environment: str) -> Pair:
        return Pair(
            Process(environment, ("-c", "import hermetic; hermetic.sandbox")), Process(environment, ("-c", "pass"))
        )

    peers = {"hermetic 0.1.0": pair(REFERENCE)}
    return [
        Row(
            "import",
            "import hermetic and look up sandbox, over bare Python",
            "ms",
            25,
            pair(BENCH),
            over,
            peers,
            rounds=21,
        )
    ]


def floor_rows() -> list[Row]:
    """stricttest switches itself on where it is installed, so plain pytest is that of another environment."""
    ini = ("-c", str(ROOT / "benches" / "audit" / "pytest.ini"))

    def floored(environment: str, tests: int) -> Pair:
        return Pair(Suite(environment, tests, False, ini), Suite(BENCH, tests, False))

    rows = [
        Row(
            "strict-suite",
            "per trivial test of 2,000: stricttest, over plain pytest",
            "µs",
            100,
            floored(STRICT, 2000),
            over,
            {"stricttest 0.2.0": floored(STRICT_REFERENCE, 400)},
            is_of_fastest=True,
        )
    ]
    calls = {"id": "id()", "getframe": "sys._getframe()", "open": "os.open() and close", "import": "an import"}
    for event, call in calls.items():
        base = Audit(BENCH, event, is_empty=True)
        rows.append(
            Row(
                f"strict-audit-{event}",
                f"{call} under stricttest, against an empty audit hook in C",
                "×",
                1.1,
                Pair(Audit(STRICT, event), base),
                ratio,
                {"stricttest 0.2.0": Pair(Audit(STRICT_REFERENCE, event), base)},
            )
        )
    return rows


def postgres_rows() -> list[Row]:
    def row(key: str, question: str, limit: float, tool: str, what: str, peers: tuple[str, ...]) -> Row:
        others = {peer: Pair(Postgres(peer, what)) for peer in peers}
        return Row(key, question, "ms", limit, Pair(Postgres(tool, what)), peers=others)

    return [row(*line) for line in TABLE]


ROWS: list[Row] = [
    *enter_rows(),
    *reading_rows(),
    *suite_rows(),
    *journal_rows(),
    *wait_rows(),
    *import_rows(),
    *floor_rows(),
    *rust_rows(),
    *postgres_rows(),
]
