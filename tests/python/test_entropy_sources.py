"""Randomness: what repeats for a seed, what comes back afterwards."""

from __future__ import annotations

import os
import random
import secrets
import tempfile
import uuid

import hermetic
import pytest


def every_source():
    name = tempfile.mktemp(dir="/x")
    return [
        os.urandom(5),
        os.getrandom(5),
        random.random(),
        random.Random().random(),
        random.SystemRandom().random(),
        secrets.token_hex(4),
        uuid.uuid4(),
        name,
        open("/dev/urandom", "rb").read(4),
    ]


def drawn(**options):
    with hermetic.sandbox(**options):
        return every_source()


def test_all_sources_repeat_for_a_seed_and_differ_between_seeds():
    assert drawn(seed=1) == drawn(seed=1)
    for one, other in zip(drawn(seed=1), drawn(seed=2)):
        assert one != other


def test_the_global_generator_has_exactly_the_seed():
    for seed in (0, 42, -42, 2**32 - 1, 2**32, 2**64 - 1, 2**64, 2**70):
        with hermetic.sandbox(seed=seed):
            got = [random.random(), random.randint(0, 99), random.gauss(0, 1), random.getrandbits(64)]
        own = random.Random(seed)
        assert got == [own.random(), own.randint(0, 99), own.gauss(0, 1), own.getrandbits(64)]


@pytest.mark.parametrize("rng", ["all", "seed", "off"])
def test_the_global_generator_comes_back(rng):
    random.seed(5)
    random.gauss(0, 1)
    state = random.getstate()
    with hermetic.sandbox(rng=rng):
        if rng != "off":
            random.seed(6)
            random.gauss(0, 1)
    assert random.getstate() == state
    # The Gaussian number that was waiting is waiting still.
    own = random.Random(5)
    own.gauss(0, 1)
    assert random.gauss(0, 1) == own.gauss(0, 1)


def test_seed_touches_only_random():
    with hermetic.sandbox(seed=1, rng="seed"):
        assert random.random() == random.Random(1).random()
        first = os.urandom(8)
    with hermetic.sandbox(seed=1, rng="seed"):
        assert os.urandom(8) != first


def test_off_touches_nothing():
    random.seed(9)
    with hermetic.sandbox(seed=1, rng="off") as sb:
        assert random.random() == random.Random(9).random()
        assert sb.seed == 1


def test_entropy_is_real_afterwards():
    with hermetic.sandbox(seed=1):
        inside = os.urandom(16)
        next(tempfile._get_candidate_names())
    assert os.urandom(16) != inside
    with hermetic.sandbox(seed=1):
        assert os.urandom(16) == inside


def test_temporary_names_are_fresh_afterwards():
    with hermetic.sandbox(seed=1):
        inside = [next(tempfile._get_candidate_names()) for _ in range(3)]
    outside = [next(tempfile._get_candidate_names()) for _ in range(3)]
    assert not set(inside) & set(outside)


class TestNumpy:
    @pytest.fixture(autouse=True)
    def numpy(self):
        self.np = pytest.importorskip("numpy")

    def test_global_generator_is_seeded_and_restored(self):
        np = self.np
        np.random.seed(5)
        np.random.standard_normal()
        state = np.random.get_state(legacy=False)
        for seed in (7, 2**40 + 7, -1):
            with hermetic.sandbox(seed=seed):
                inside = np.random.rand(3), np.random.standard_normal()
            own = np.random.RandomState(seed % 2**32)
            assert (inside[0] == own.rand(3)).all()
            assert inside[1] == own.standard_normal()
        now = np.random.get_state(legacy=False)
        assert (now["state"]["key"] == state["state"]["key"]).all()
        assert (now["has_gauss"], now["gauss"]) == (state["has_gauss"], state["gauss"])
        assert now["state"]["pos"] == state["state"]["pos"]
        assert now["has_gauss"] == 1

    def test_seed_leaves_it_alone(self):
        np = self.np
        np.random.seed(5)
        with hermetic.sandbox(seed=1, rng="seed"):
            assert np.random.rand() == np.random.RandomState(5).rand()

    def test_generators_without_a_seed_repeat(self):
        np = self.np

        def draw():
            with hermetic.sandbox(seed=1):
                return np.random.default_rng().random(), np.datetime64("now")

        assert draw() == draw()
        assert str(draw()[1]).startswith("2020-01-01")
