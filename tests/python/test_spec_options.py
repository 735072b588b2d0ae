"""The table of options in `spec/` says what the package does: names, defaults, choices, switches, pytest twins."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import hermetic
import pytest
from hermetic import _options

SPEC = Path(__file__).parents[2] / "spec" / "options.toml"
PRIVATE = {"self", "test_id", "automatic", "root", "unknown"}
"""Parameters that are not for users: what the pytest plugin passes, and the catch-all that names unknown options."""


def parameters() -> dict[str, inspect.Parameter]:
    found = inspect.signature(hermetic.Sandbox.__init__).parameters
    return {name: parameter for name, parameter in found.items() if name not in PRIVATE}


def test_signature_has_the_tables_names_in_its_order() -> None:
    assert list(parameters()) == list(_options.DEFAULTS)


@pytest.mark.parametrize("option", _options.DEFAULTS)
def test_defaults_are_the_tables(option: str) -> None:
    default = parameters()[option].default
    assert (default, type(default)) == (_options.DEFAULTS[option], type(_options.DEFAULTS[option]))


def test_only_the_seed_is_given_by_position() -> None:
    kinds = {name: parameter.kind for name, parameter in parameters().items()}
    assert kinds.pop("seed") is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(kinds.values()) == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize(
    ("option", "choice"), [(name, value) for name, values in _options.CHOICES.items() for value in values]
)
def test_every_choice_is_accepted(option: str, choice: Any) -> None:
    hermetic.sandbox(**{option: choice})


@pytest.mark.parametrize("option", _options.CHOICES)
@pytest.mark.parametrize("value", ["nonsense", "", 1, True])
def test_other_values_are_refused_with_option_value_and_choices(option: str, value: Any) -> None:
    with pytest.raises((hermetic.SandboxError, ValueError, TypeError)) as caught:
        hermetic.sandbox(**{option: value})
    message = str(caught.value)
    assert f"{option}={value!r}" in message
    assert all(repr(choice) in message for choice in _options.CHOICES[option])


@pytest.mark.parametrize("option", _options.SWITCHES)
@pytest.mark.parametrize("value", [0, 1, "yes", None])
def test_switches_take_nothing_that_merely_looks_true(option: str, value: Any) -> None:
    assert isinstance(_options.DEFAULTS[option], bool)
    with pytest.raises((hermetic.SandboxError, ValueError, TypeError), match=f"{option}={value!r}"):
        hermetic.sandbox(**{option: value})


def test_pytest_has_the_twins(pytestconfig: pytest.Config) -> None:
    if not SPEC.exists():
        pytest.skip("spec/ is part of the checkout only")
    text = SPEC.read_text()
    flags = re.findall(r'^flag = "(--[a-z-]+)', text, re.MULTILINE)
    keys = re.findall(r'^ini = "([a-z_]+)"', text, re.MULTILINE)
    assert len(flags) >= 6
    for flag in flags:
        assert flag in known_flags(pytestconfig)
    for key in keys:
        pytestconfig.getini(key)  # raises ValueError for an unknown one


def known_flags(config: pytest.Config) -> set[str]:
    group = config._parser.getgroup("hermetic")
    return {name for option in group.options for name in option.names()}
