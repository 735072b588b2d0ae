"""The pytest plugin's entry module: the floor is laid here, at the first moment at which pytest asks anything of us.

What a user sees of it is described in docs/stricttest.md. There is no switch that turns it off.
"""

from __future__ import annotations

import pytest

from stricttest._pytest import options, restart
from stricttest._pytest.directories import MARKER_LINE
from stricttest._pytest.environment import temp_problems
from stricttest._pytest.session import KEY, Session, begin


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    options.declare(parser)
    config = pluginmanager.get_plugin("pytestconfig")
    if config is not None:
        # Plugins that come after this one, conftest modules and tests see the throwaway world alone.
        restart.if_needed(config, begin(config))


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    session = begin(early_config)
    _isolate_imports(early_config, session)
    if options.is_informational(early_config):
        return
    options.refuse(options.read(early_config))
    _refuse_temp(early_config, session)


def _refuse_temp(config: pytest.Config, session: Session) -> None:
    if session.is_worker:
        return
    # The variables point into the throwaway directory by now; what counts is where they pointed before.
    basetemp = getattr(config.known_args_namespace, "basetemp", None)
    before = session.environment.temp_before
    problems = temp_problems(before, basetemp, config.invocation_params.dir, config.rootpath)
    if problems:
        lines = "".join(f"\n  - {problem}" for problem in problems)
        raise pytest.UsageError(
            f"stricttest refuses to run: temporary files would land inside a project, where an unanchored git command "
            f"walks up and commits them.{lines}\nPoint it outside of any repository, for example TMPDIR=/tmp."
        )


def _isolate_imports(config: pytest.Config, session: Session) -> None:
    """Conftest modules are imported in the session's directory, whoever asks for them."""
    manager = config.pluginmanager
    real = manager._importconftest

    def isolated(*args: object, **kwargs: object) -> object:
        with session.directories.outside_of_tests():
            return real(*args, **kwargs)  # type: ignore[arg-type]

    manager._importconftest = isolated  # type: ignore[assignment, method-assign]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    from stricttest._pytest.ledger import Ledger
    from stricttest._pytest.protocol import Protocol
    from stricttest._pytest.record import Record
    from stricttest._pytest.threshold import Threshold

    config.addinivalue_line("markers", MARKER_LINE)
    session = begin(config)
    session.allow_helpers()
    parts: list[tuple[str, object]] = [("protocol", Protocol(session)), ("ledger", Ledger(session))]
    if not options.is_informational(config):
        parts.append(("threshold", Threshold(session)))
        if not session.is_worker:
            parts.append(("record", Record(session)))
    for name, part in parts:
        config.pluginmanager.register(part, f"stricttest-{name}")


def pytest_sessionstart(session: pytest.Session) -> None:
    own = session.config.stash.get(KEY, None)
    if own is not None:
        own.use_basetemp()


def pytest_report_header(config: pytest.Config) -> str:
    return f"stricttest: {begin(config).policy.describe()}"
