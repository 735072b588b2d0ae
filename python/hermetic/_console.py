"""The console script `hermetic`."""

from __future__ import annotations

import sys


def main() -> int:
    """Runs the command line; returns the exit code."""
    try:
        from hermetic import _native
    except ImportError as error:
        print(f"hermetic: the native library cannot be loaded here: {error}", file=sys.stderr)
        return 2
    return _native.run_console(sys.argv[1:])
