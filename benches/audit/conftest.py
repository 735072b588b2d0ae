"""Where `BENCH_EMPTY_HOOK` names a library, its C function `empty` becomes an audit hook: the least a hook costs."""

import ctypes
import os

if name := os.environ.get("BENCH_EMPTY_HOOK"):
    library = ctypes.CDLL(name)
    ctypes.pythonapi.PySys_AddAuditHook(library.empty, None)
