"""Starts the parts when pytest is configured, and holds what they share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermetic import Sandbox
from hermetic._pytest import options
from hermetic._pytest.identity import Identities
from hermetic._pytest.markers import Plan, Plans

if TYPE_CHECKING:
    from hermetic import SandboxHandle
    from hermetic._pytest.attempt import Attempt
    from hermetic._pytest.recording import Recorder
    from hermetic._pytest.replay import Replay

FIXTURE = "hermetic_sandbox"
CONSTANTS = (str, int, float, type(None))
"""Types of option values that nobody can change."""
MARKER_LINE = (
    "hermetic(seed=..., now=..., network=..., ..., off=False): run the test in a sandbox with these options of "
    "hermetic.sandbox(); the nearest marker wins for each option; off=True keeps the test out of any sandbox"
)


class Run:
    """One pytest session: what it was told, and the attempt that runs now."""

    def __init__(self, config: pytest.Config) -> None:
        from hermetic._pytest.harness_clock import HarnessClock
        from hermetic._pytest.ledger import Ledger
        from hermetic._pytest.neighbours import Neighbours

        self.config = config
        self.settings = options.read(config)
        self.plans = Plans(self.settings.defaults)
        self.identities = Identities(config, self.settings.base_seed)
        self.clock = HarnessClock()
        self.neighbours = Neighbours(config)
        self.ledger = Ledger(self.settings.sandbox_all)
        self.recorder: Recorder | None = None
        self.replay: Replay | None = None
        self.attempt: Attempt | None = None
        self._takes_part = False
        self._models: dict[tuple[int, bool, str | None], Sandbox] = {}
        """Sandboxes that are never entered, by what makes them: a plan, which lives as long as the run."""

    def take_part(self) -> None:
        """Registers what works around each test, once. A run that sandboxes nothing is spared it."""
        if self._takes_part:
            return
        self._takes_part = True
        from hermetic._pytest import protocol, scopes

        self.clock.bind()
        self.neighbours.find()
        self.config.pluginmanager.register(protocol.Protocol(self), "hermetic-protocol")
        self.config.pluginmanager.register(scopes.Scopes(self), "hermetic-scopes")
        self.neighbours.silence(self)

    def plan_for(self, item: pytest.Item) -> Plan | None:
        """How to run the test in a sandbox; None where it runs in none."""
        plan = self.plans.of_test(item)
        if self.replay is not None:
            return plan if self.replay.is_selected(item) else None
        if plan.error is not None:
            return plan
        if plan.is_off:
            return None
        if self.settings.sandbox_all or plan.is_marked or FIXTURE in getattr(item, "fixturenames", ()):
            return plan
        return None

    def is_wanted(self, item: pytest.Item) -> bool:
        """Whether the test runs in a sandbox."""
        return self.plan_for(item) is not None

    def attempt_of(self, item: pytest.Item) -> Attempt | None:
        """The attempt that is going on, if it is one of this test."""
        attempt = self.attempt
        return attempt if attempt is not None and attempt.item is item and not attempt.is_over else None

    def sandbox_for(self, item: pytest.Item, plan: Plan) -> Sandbox:
        """The sandbox of one attempt, not entered yet."""
        model = self._model(item, plan)
        # Given as an option it would pin the test's entropy, which is to be real while recording. Like this it only
        # stands in the journal, where replay finds it for everything that is seeded beside the test.
        seed = self.identities.seed(item) if model._seed is None else model._seed
        return model._twin(seed, item.nodeid)

    def _model(self, item: pytest.Item, plan: Plan) -> Sandbox:
        """A sandbox with the options of the test, which are checked once for all tests that share them."""
        is_on_loop = self.neighbours.has_loops and self.neighbours.keeps_loop(item)
        root = None if self.replay is None and self.recorder is None else self.identities.root_of(item)
        key = id(plan), is_on_loop, root
        model = self._models.get(key)
        if model is None:
            chosen = dict(plan.options)
            if is_on_loop:
                chosen.setdefault("monotonic", "continue")
            if self.replay is not None:
                chosen["replay"] = self.replay.path
            elif self.recorder is not None:
                chosen["record"] = self.recorder.prepare()
            model = Sandbox(automatic=True, root=root, **chosen)
            # A dictionary of a marker may hold something else for the next test.
            if all(isinstance(value, CONSTANTS) for value in plan.options.values()):
                self._models[key] = model
        return model


RUN = pytest.StashKey[Run]()


def start(config: pytest.Config) -> None:
    """Registers the parts. Raises `pytest.UsageError` for settings that cannot be used."""
    from hermetic._pytest import summary

    config.addinivalue_line("markers", MARKER_LINE)
    run = config.stash[RUN] = Run(config)
    parts: list[tuple[str, object]] = [("lifetime", Lifetime(run))]
    if run.settings.record is not None:
        from hermetic._pytest import recording

        run.recorder = recording.Recorder(run)
        parts.append(("recorder", run.recorder))
    if run.settings.replay is not None:
        from hermetic._pytest import replay

        run.replay = replay.Replay(run)
        parts.append(("replay", run.replay))
    if run.settings.worker is None:
        parts += [("ledger", run.ledger), ("summary", summary.Summary(run))]
    for name, part in parts:
        config.pluginmanager.register(part, f"hermetic-{name}")


def handle_for(request: pytest.FixtureRequest) -> SandboxHandle | None:
    """The handle of the running test's sandbox, which is entered now if the test asks for it only while it runs."""
    from hermetic._pytest import protocol

    run = request.config.stash[RUN]
    attempt = run.attempt_of(request.node)
    plan = run.plans.of_test(request.node)
    if attempt is None and not plan.is_off:
        run.take_part()
        attempt = protocol.begin(run, request.node, plan)
    return attempt.handle if attempt is not None else None


class Lifetime:
    """Hands the run on to xdist workers, and gives the world back at the end."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        settings = self._run.settings
        node.workerinput["hermetic_base_seed"] = settings.base_seed
        node.workerinput["hermetic_run"] = settings.run
        node.workerinput["hermetic_record"] = settings.record
        node.workerinput["hermetic_replay"] = settings.replay

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """After every selection: also after what other plugins do to the collected tests."""
        if any(map(self._run.is_wanted, session.items)):
            self._run.take_part()

    def pytest_unconfigure(self) -> None:
        self._run.clock.restore()
