"""Sockets of the harness itself, each known by name and allowed as narrowly as it can be."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hermetic import _native

SOCKET_PATH_LEN_MAX = 107
"""Longest path of a unix socket: below a deeper directory there can be none."""


def allow(config: pytest.Config, root: str) -> list[str]:
    """Allows the helper sockets of this run and returns what they are, for the closing report."""
    told = []
    # multiprocessing's managers, fork servers and queues: unix sockets below the throwaway directory.
    if len(os.fsencode(root)) < SOCKET_PATH_LEN_MAX:
        _native.floor_allow(f"{root}/")
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    port = worker.get("sock_port")
    if isinstance(port, int):
        # pytest-rerunfailures counts attempts in the controller, which its workers ask over the loopback.
        _native.floor_allow(f"localhost:{port}")
        told.append(f"pytest-rerunfailures at localhost:{port}")
    port = config.getoption("stricttest_debugger", None)
    if port is not None:
        if not 0 < port < 65536:
            raise pytest.UsageError(f"--stricttest-debugger={port}: a port from 1 to 65535 is needed")
        _native.floor_allow(f"localhost:{port}")
        told.append(f"a debugger at localhost:{port} (--stricttest-debugger)")
    pipe = os.environ.get("TEST_RUN_PIPE", "")
    if pipe.startswith("/") and config.pluginmanager.hasplugin("vscode_pytest"):
        _native.floor_allow(pipe)
        told.append(f"the editor's test adapter at {pipe}")
    return told
