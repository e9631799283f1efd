"""The addresses of the hosts that limits name (Kafka asks InetAddress.getByName when a limit is set)."""

from __future__ import annotations

import asyncio
import socket

from kafka_shim.java_address import java_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class HostNames:
    """What the resolver said of each name when it was first looked up: as in Kafka a limit does not follow a host to
    another address. Event-loop thread only."""

    __slots__ = ("_addresses", "_former")

    def __init__(self, former: HostNames | None = None) -> None:
        """`former`: whose addresses hold for names that cannot be looked up again."""
        self._addresses: dict[str, str] = {}
        self._former: dict[str, str] = {} if former is None else former._former | former._addresses

    def address_of(self, name: str) -> str:
        """Return the address that a limit holds for. A name that is not known holds for no connection."""
        return self._addresses.get(name) or self._former.get(name) or java_address(name)

    async def look_up(self, names: Iterable[str]) -> tuple[list[str], dict[str, str]]:
        """Look up those that are neither addresses nor known. Of those that are not found return the names without an
        address, and the others with the former one: all of them are looked up by the next call."""
        names = [name for name in names if not _is_address(name) and name not in self._addresses]
        found = await addresses_of(names)
        self._addresses |= found
        lost = [name for name in names if name not in found]
        self._former = {name: self._former[name] for name in lost if name in self._former}
        return [name for name in lost if name not in self._former], dict(self._former)

    def learn(self, addresses: Mapping[str, str]) -> None:
        """Take over what was looked up already."""
        self._addresses |= {name: address for name, address in addresses.items() if not _is_address(name)}

    def forget_unless(self, is_named: Callable[[str], bool]) -> None:
        """Forget the names that no limit has any more."""
        self._addresses = {name: address for name, address in self._addresses.items() if is_named(name)}


async def addresses_of(names: Iterable[str]) -> dict[str, str]:
    """Return the addresses of those that are addresses or names of hosts. A thread asks the resolver, which may take
    seconds."""
    found = {}
    for name in names:
        if "\0" in name:  # the system's resolver would look up what is before it
            continue
        try:
            answers = await asyncio.get_running_loop().getaddrinfo(name, None)
        except (OSError, UnicodeError):
            continue
        # As in Java one of IPv4 before those of IPv6.
        answer = next((one for one in answers if one[0] == socket.AF_INET), answers[0])
        found[name] = java_address(name if ":" in name else str(answer[4][0]))
    return found


def _is_address(name: str) -> bool:
    try:
        return ":" in name or bool(socket.inet_pton(socket.AF_INET, name))
    except (OSError, ValueError):  # ValueError: it has a NUL, or a character that cannot be encoded
        return False
