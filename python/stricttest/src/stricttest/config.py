"""Settings as values. Reading and checking them is the native library's; this gives them a shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Entry = tuple[str, str]
"""A host and a port, both as text: `("example.com", "443")`."""


@dataclass(frozen=True)
class Settings:
    """What a project has declared. Names are those of the ini keys without their prefix."""

    sockets: str
    socket_allowlist: tuple[Entry, ...]
    unix_socket_allowlist: tuple[str, ...]
    loopback: str
    sandbox_required: bool
    threshold: int
    sandbox_env: str
    runner_command: str
    tmp_prefix: str
    git_user_name: str
    git_user_email: str
    preserve: tuple[str, ...]
    keep: tuple[str, ...] = ()
    leaks: str = "report"
    import_cwd: str = "isolated"

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Settings:
        """Settings from checked values, lists as they stand in the file."""
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        given["socket_allowlist"] = tuple(split_entry(entry) for entry in values["socket_allowlist"])
        return cls(**given)


def split_entry(text: str) -> Entry:
    """The host and the port of an entry: `[::1]:5432` is `("::1", "5432")`."""
    host, _, port = text.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), port


def join_entry(entry: Entry | str) -> str:
    """An entry as the policy reads it."""
    if isinstance(entry, str):
        return entry
    host, port = entry
    return f"[{host}]:{port}" if ":" in host and "/" not in host else f"{host}:{port}"
