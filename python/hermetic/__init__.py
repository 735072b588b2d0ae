"""Deterministic, isolated, replayable blocks of Python."""

from hermetic._native import __version__ as __version__
