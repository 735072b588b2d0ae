"""stricttest: a pytest suite that is either isolated or refuses to run.

The plugin is `stricttest.plugin`, the network stance `stricttest.socketguard`, throwaway databases are
`stricttest.pgcluster`. Importing this package imports none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stricttest._tables import PRESERVE_VARS, REQUIRED_KEYS

if TYPE_CHECKING:
    from stricttest._errors import NetworkBlocked
    from stricttest.config import Settings
    from stricttest.socketguard import Policy

__version__ = "1.0.0"
__all__ = ["PRESERVE_VARS", "REQUIRED_KEYS", "NetworkBlocked", "Policy", "Settings", "__version__"]

_HOMES = {"NetworkBlocked": "stricttest._errors", "Policy": "stricttest.socketguard", "Settings": "stricttest.config"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
