"""What the machine that runs the tests brings along."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

BUILD_MACHINES = (
    "CI",
    "BUILD_NUMBER",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "BUILDKITE",
    "CIRCLECI",
    "CIRRUS_CI",
    "TF_BUILD",
)
"""By these pytest and Hypothesis know a build machine, where they print more and choose examples otherwise."""


def forget_build_machine() -> None:
    """Suites under test are the same everywhere."""
    for name in BUILD_MACHINES:
        os.environ.pop(name, None)


def lacking(what: str, reason: str) -> NoReturn:
    """Skips the test, or fails it where the run has promised `what` in HERMETIC_PROMISES."""
    if what in os.environ.get("HERMETIC_PROMISES", "").split(","):
        pytest.fail(f"the run promises {what}, but: {reason}")
    pytest.skip(reason)
