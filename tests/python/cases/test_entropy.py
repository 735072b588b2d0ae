"""Sources of randomness: the peer's defects h13, h42 (listing order), h43 and h60, absent here."""

from __future__ import annotations

import ctypes
import json
import os
import random
import secrets
import ssl
import sys
import tempfile
import types
import uuid

import hermetic
import pytest


def libc_bytes(name: str, *tail: int) -> str:
    buffer = ctypes.create_string_buffer(8)
    getattr(ctypes.CDLL(None), name)(buffer, 8, *tail)
    return buffer.raw.hex()


def device(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(4).hex()


SOURCES = {
    "random": lambda: random.random(),
    "Random()": lambda: random.Random().random(),
    "SystemRandom": lambda: random.SystemRandom().random(),
    "urandom": lambda: os.urandom(16).hex(),
    "os.getrandom": lambda: os.getrandom(4).hex(),
    "libc getrandom": lambda: libc_bytes("getrandom", 0),
    "libc getentropy": lambda: libc_bytes("getentropy"),
    "/dev/urandom": lambda: device("/dev/urandom"),
    "/dev/random": lambda: device("/dev/random"),
    "secrets": lambda: secrets.token_hex(8),
    "uuid4": lambda: str(uuid.uuid4()),
    "uuid1": lambda: str(uuid.uuid1()),
    "temporary name": lambda: os.path.basename(tempfile.mktemp()),
    "OpenSSL": lambda: ssl.RAND_bytes(8).hex(),
}


@pytest.mark.case("h13")
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_repeats_with_the_seed_and_only_with_it(source):
    draw = SOURCES[source]

    def run(seed: int) -> list:
        with hermetic.sandbox(seed=seed):
            return [draw(), draw()]

    assert run(1) == run(1)
    assert run(1) != run(2)
    assert run(1)[0] != run(1)[1]


@pytest.mark.case("h13")
@pytest.mark.parametrize("source", [name for name in SOURCES if name != "random"])
def test_real_entropy_is_back_outside(source):
    with hermetic.sandbox(seed=1):
        inside = SOURCES[source]()
    assert SOURCES[source]() != inside
    assert SOURCES[source]() != SOURCES[source]()


@pytest.mark.case("h12")
@pytest.mark.parametrize("draw", ["random.rand()", "random.default_rng().random()", "random.RandomState().rand()"])
def test_numpys_generators_repeat(draw):
    numpy = pytest.importorskip("numpy")
    before = numpy.random.get_state()[1].tolist()

    def run(seed: int) -> float:
        with hermetic.sandbox(seed=seed):
            return float(eval(f"numpy.{draw}", {"numpy": numpy}))

    assert run(1) == run(1) != run(2)
    assert numpy.random.get_state()[1].tolist() == before


@pytest.mark.case("h42")
def test_a_listing_has_one_order_on_every_file_system(tmp_path):
    orders = set()
    folders = [tmp_path, *([tempfile.mkdtemp(dir="/dev/shm")] if os.access("/dev/shm", os.W_OK) else [])]
    for folder in folders:
        for name in "ebadc":
            open(os.path.join(folder, name), "w").close()
        with hermetic.sandbox(seed=1):
            orders.add(tuple(os.listdir(folder)))
            orders.add(tuple(entry.name for entry in os.scandir(folder)))
            orders.add(tuple(next(os.walk(folder))[2]))
    assert orders == {tuple("abcde")}


@pytest.mark.case("h43")
def test_hypothesis_draws_the_same_examples(project):
    pytest.importorskip("hypothesis")
    project.write(
        test_examples="""
        from hypothesis import given, settings, strategies
        seen = []

        @settings(max_examples=20, database=None)
        @given(strategies.integers(0, 10**9))
        def test_draws(number): seen.append(number)

        def test_tells(): print("SEEN", seen)
        """
    )

    def seen(base: int) -> list[str]:
        ran = project.pytest("-qs", "--hermetic-all", f"--hermetic-seed={base}")
        assert ran.outcomes() == {"passed": 2}, ran.text
        return [line[line.index("SEEN") :] for line in ran.text.splitlines() if "SEEN" in line]

    assert seen(1) == seen(1) != seen(2)


def draw_all(numpy) -> dict[str, float]:
    return {
        "random": random.random(),
        "Random()": random.Random().random(),
        "uuid4": uuid.uuid4().int,
        "numpy": float(numpy.random.rand()),
        "default_rng": float(numpy.random.default_rng().random()),
    }


@pytest.mark.case("h60")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_replay_feeds_back_every_generator(tmp_path):
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "kept.journal"
    with hermetic.sandbox(record=str(path)):
        recorded = draw_all(numpy)
    random.random()
    numpy.random.rand()
    with hermetic.sandbox(replay=str(path)):
        assert draw_all(numpy) == recorded


class Shop:
    """Keeps a generator in its class, and one in each object."""

    numbers = random.Random(7)

    def __init__(self):
        self.codes = random.Random()


MADE, SHOP = random.Random(), Shop()


def made_earlier(numpy) -> list[float]:
    return [
        MADE.gauss(0, 1),
        Shop.numbers.random(),
        SHOP.codes.random(),
        float(numpy.MADE.random()),
        float(numpy.LEGACY.standard_normal()),
    ]


@pytest.fixture
def numpy_generators(monkeypatch):
    """A module with generators of NumPy, imported before the sandbox."""
    numpy = pytest.importorskip("numpy")
    module = types.ModuleType("numpy_generators")
    module.MADE = numpy.random.default_rng()
    module.LEGACY = numpy.random.RandomState()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@pytest.mark.case("h60")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_replay_feeds_back_generators_made_earlier(tmp_path, numpy_generators):
    path = tmp_path / "kept.journal"
    MADE.gauss(0, 1)  # leaves its twin behind
    with hermetic.sandbox(record=str(path)):
        recorded = made_earlier(numpy_generators)
    between = made_earlier(numpy_generators)
    twin = [MADE.getstate(), Shop.numbers.getstate()]
    with hermetic.sandbox(replay=str(path)):
        assert made_earlier(numpy_generators) == recorded != between
    assert [MADE.getstate(), Shop.numbers.getstate()] == twin


@pytest.mark.case("h60")
def test_only_generators_that_were_drawn_from_stand_in_the_journal(tmp_path):
    quiet, loud = str(tmp_path / "quiet.json"), str(tmp_path / "loud.json")
    with hermetic.sandbox(record=quiet):
        pass
    with hermetic.sandbox(record=loud):
        MADE.random()
    names = [[event["name"] for event in events_of(path) if "name" in event] for path in (quiet, loud)]
    assert names == [[], [f"generator {__name__}.MADE"]]


def events_of(path: str) -> list[dict[str, object]]:
    with open(path) as file:
        return json.load(file)["events"]


@pytest.mark.case("h60")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_looking_for_generators_touches_no_object(tmp_path, monkeypatch):
    """Proxies of Django, werkzeug and the like make what they stand for at any look, or fail."""
    touched = []

    class Watching(type):
        def __getattribute__(cls, name):
            touched.append(name)
            return super().__getattribute__(name)

    class Proxy:
        def __getattribute__(self, name):
            touched.append(name)
            module.__dict__[f"grown_{len(touched)}"] = 1
            raise RuntimeError("working outside of request context")

    class Sealed(random.Random):
        def getstate(self):
            raise RuntimeError("no")

    module = types.ModuleType("proxies")
    module.__file__ = str(tmp_path / "proxies.py")
    module.__dict__.update(
        proxy=Proxy(), watching=Watching("W", (), {"__module__": "proxies"}), sealed=Sealed(), own=random.Random()
    )
    module.instance = module.watching()
    monkeypatch.setitem(sys.modules, "proxies", module)
    monkeypatch.setitem(sys.modules, "proxies.nothing", object())
    touched.clear()
    path = str(tmp_path / "kept.journal")
    with hermetic.sandbox(record=path):
        recorded = module.own.random(), module.sealed.random()
    with hermetic.sandbox(replay=path):
        assert (module.own.random(), module.sealed.random()) == recorded
    assert touched == []


@pytest.mark.case("h60")
def test_a_recorded_generator_that_is_gone_is_named(program):
    source = """
    import hermetic, random, warnings
    G = random.Random()
    with hermetic.sandbox(record="kept.journal"):
        G.random()
    """
    assert program(source).code == 0
    told = program(
        """
        import hermetic, warnings
        with warnings.catch_warnings(record=True) as caught, hermetic.sandbox(replay="kept.journal"):
            pass
        print("TOLD", *[w.message for w in caught if "generator" in str(w.message)])
        """
    )
    assert "the generator __main__.G, which is not there now" in told.text, told.text
