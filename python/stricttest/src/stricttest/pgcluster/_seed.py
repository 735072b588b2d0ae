"""Seeds: what fills the template database, and the key that changes with it.

A key is made of contents: of SQL files, of the module that a callable stands in, and of what these depend on.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from ._errors import InvalidArgument

SeedFunction: TypeAlias = Callable[[str], object]
SeedPart: TypeAlias = "SeedFunction | str | os.PathLike[str]"
Seed: TypeAlias = "SeedPart | Sequence[SeedPart] | None"


def split(seed: Seed) -> tuple[list[Path], list[SeedFunction]]:
    """The files and the callables of a seed. Files run first, each in its order."""
    if seed is None:
        return [], []
    parts = list(seed) if isinstance(seed, (list, tuple)) else [seed]
    files: list[Path] = []
    functions: list[SeedFunction] = []
    for part in parts:
        if callable(part):
            functions.append(part)
        elif isinstance(part, (str, os.PathLike)):
            files.append(Path(part).absolute())
        else:
            raise InvalidArgument(
                f"seed {part!r} is not accepted: a path of an SQL file, a callable that takes the template's URL, "
                "or a list of them is"
            )
    return files, functions


def key_of(files: Iterable[Path], functions: Iterable[SeedFunction], depends: Iterable[str | os.PathLike[str]]) -> str:
    """A key that changes when what the seed does changes; empty where there is no seed."""
    digest = hashlib.sha256()
    is_empty = True
    for path in files:
        is_empty = False
        _add(digest, b"file", _read(path))
    for function in functions:
        is_empty = False
        _add(digest, b"function", _code(function))
    if is_empty:
        return ""
    for item in depends:
        for path in sorted(_below(Path(item))):
            _add(digest, os.fsencode(path), _read(path))
    return digest.hexdigest()


def _add(digest: hashlib._Hash, name: bytes, content: bytes) -> None:
    digest.update(b"%d %d " % (len(name), len(content)))
    digest.update(name)
    digest.update(content)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidArgument(f"the seed {path} cannot be read: {error.strerror}; give a file that exists") from None


def _below(path: Path) -> list[Path]:
    if path.is_dir():
        return [found for found in path.rglob("*") if found.is_file() and "__pycache__" not in found.parts]
    return [path]


def _code(function: SeedFunction) -> bytes:
    """The module's source and the function's name in it: a helper of the function counts as well."""
    inner = inspect.unwrap(function)
    name = f"{getattr(inner, '__module__', '')}.{getattr(inner, '__qualname__', repr(type(inner)))}"
    try:
        source = Path(inspect.getsourcefile(inner) or "").read_bytes()
    except (OSError, TypeError):
        code = getattr(inner, "__code__", None)
        if code is None:
            raise InvalidArgument(
                f"the source of the seed {function!r} cannot be found, so nothing tells when it changes: give seed_key"
            ) from None
        source = code.co_code + repr(code.co_consts).encode()
    return name.encode() + b"\0" + source
