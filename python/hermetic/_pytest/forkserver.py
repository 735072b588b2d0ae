"""multiprocessing's fork server takes part in the sandbox in which it was started.

In the next one it, and every process that it makes, would be a stranger with real clocks. So it ends with its sandbox;
the next use starts another."""

from __future__ import annotations

import sys
from typing import Any

MODULE = "multiprocessing.forkserver"


def number() -> int | None:
    """The process of the running server, if there is one."""
    module: Any = sys.modules.get(MODULE)
    return None if module is None else getattr(module._forkserver, "_forkserver_pid", None)


def end(before: int | None) -> None:
    """Ends a server that was started since `number` told `before`. One whose processes still run is left alone."""
    current = number()
    if current is None or current == before:
        return
    multiprocessing: Any = sys.modules["multiprocessing"]
    stop = getattr(sys.modules[MODULE]._forkserver, "_stop", None)
    if stop is not None and not multiprocessing.active_children():
        stop()
