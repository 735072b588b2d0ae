"""Refuses a run that switched the floor off: `-p no:stricttest` blocks the plugin by its name, and this one has
another.

What it cannot see is a run that loads no plugins at all (PYTEST_DISABLE_PLUGIN_AUTOLOAD); `required_plugins =
stricttest` in the project's configuration makes pytest itself refuse those, and `stricttest verify` finds them
afterwards.
"""

from __future__ import annotations

import pytest

NAMES = ("stricttest", "stricttest.plugin")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    manager = early_config.pluginmanager
    blocked = [name for name in NAMES if manager.is_blocked(name)]
    namespace = early_config.known_args_namespace
    if blocked and not (getattr(namespace, "help", False) or getattr(namespace, "version", False)):
        raise pytest.UsageError(
            f"stricttest refuses to run: -p no:{blocked[0]} would switch the isolation floor off, on the command line, "
            f"in PYTEST_ADDOPTS or in addopts; drop it, or uninstall stricttest where a suite does not want it"
        )
