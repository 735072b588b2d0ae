"""The network stance of a process: what may be reached, and the guard that refuses the rest.

The guard lies under Python's socket module (a native audit hook), under libc (C drivers such as libpq, ctypes) and
under the sandboxes of `hermetic`, which may narrow it and never widen it. It is state of the native library: nothing
that a program assigns, reloads or patches in this module disarms it. Not seen are subprocesses other than forks,
static programs and raw system calls.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stricttest import _guard
from stricttest._errors import NetworkBlocked
from stricttest.config import Entry, join_entry

if TYPE_CHECKING:
    from stricttest.config import Settings

__all__ = ["NetworkBlocked", "Policy", "current_policy", "install", "is_loopback"]

_LOOPBACK_NAMES = frozenset(("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"))


@dataclass(frozen=True)
class Policy:
    """The stance of one process.

    >>> Policy("allowlist", "deny", frozenset({("example.com", "443")})).describe()
    'sockets=allowlist, loopback=deny, allowlist=[example.com:443], unix_allowlist=[]'
    """

    sockets: str
    loopback: str
    allowlist: frozenset[Entry] = field(default_factory=frozenset)
    unix_allowlist: tuple[str, ...] = ()

    @classmethod
    def from_settings(cls, settings: Settings) -> Policy:
        entries = frozenset(settings.socket_allowlist) if settings.sockets == "allowlist" else frozenset()
        return cls(settings.sockets, settings.loopback, entries, tuple(settings.unix_socket_allowlist))

    def allowlist_hosts(self) -> frozenset[str]:
        """The hosts of the allowlist, whatever their ports."""
        return frozenset(host for host, _ in self.allowlist)

    def describe(self) -> str:
        """The stance in one line."""
        hosts = ", ".join(sorted(join_entry(entry) for entry in self.allowlist))
        paths = ", ".join(self.unix_allowlist)
        return f"sockets={self.sockets}, loopback={self.loopback}, allowlist=[{hosts}], unix_allowlist=[{paths}]"

    def entries(self) -> list[str]:
        """Both lists, as the native policy reads them."""
        return [*sorted(join_entry(entry) for entry in self.allowlist), *self.unix_allowlist]


def is_loopback(host: str) -> bool:
    """Whether `host` names the loopback interface.

    >>> is_loopback("LOCALHOST"), is_loopback("[::1]"), is_loopback("192.0.2.1")
    (True, True, False)
    """
    bare = host.removeprefix("[").removesuffix("]").split("%")[0].rstrip(".").lower()
    if bare in _LOOPBACK_NAMES or bare.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _check_resolution(policy: Policy, host: Any, port: Any = None) -> None:
    """Raises `NetworkBlocked` for a look-up that could only serve a forbidden connection.

    A look-up is egress: the query has left the machine by the time that the connection is refused. `port` is known to
    `getaddrinfo` and to nobody else.
    """
    if host is None or host in ("", b""):
        return
    name = host.decode("ascii", "replace") if isinstance(host, (bytes, bytearray)) else str(host)
    number = port if isinstance(port, int) and 0 < port < 65536 else None
    if isinstance(port, str) and port.isdecimal() and 0 < int(port) < 65536:
        number = int(port)
    if _guard.allows(policy, name, number):
        return
    target = name if number is None else f"{name}:{number}"
    raise NetworkBlocked(
        f"stricttest refused to look up {target}: the stance is {policy.describe()}; an entry in "
        f"stricttest_socket_allowlist, or stricttest_loopback for this machine, would allow it",
        name,
        number,
    )


def install(settings: Settings) -> None:
    """Arms the guard for this process; a later call gives it another stance. What a pytest session has laid stays
    under it."""
    _guard.install(Policy.from_settings(settings))


def current_policy() -> Policy | None:
    """The stance that was laid last, or None where the guard is not armed."""
    return _guard.current()
