"""The pytest plugin's entry module: options, the fixture, and the decision to start the rest.

pytest imports this in every run, used or not, so it stays small; the parts live in `hermetic._pytest` and are imported
when pytest is configured. What a user sees of it is described in docs/pytest.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hermetic import SandboxHandle


def pytest_addoption(parser: pytest.Parser) -> None:
    from hermetic._pytest import options

    options.declare(parser)


def pytest_configure(config: pytest.Config) -> None:
    from hermetic._pytest import plugin

    plugin.start(config)


@pytest.fixture
def hermetic_sandbox(request: pytest.FixtureRequest) -> SandboxHandle | None:
    """The handle of the sandbox that this test runs in; None where a marker says ``hermetic(off=True)``.

    Asking for it is enough to run the test in a sandbox::

        def test_next_day(hermetic_sandbox):
            hermetic_sandbox.clock.advance(86400)
    """
    from hermetic._pytest import plugin

    return plugin.handle_for(request)
