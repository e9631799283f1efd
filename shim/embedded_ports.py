"""The addresses of an embedded broker from a kill or a restart to its next start."""

from __future__ import annotations

import socket
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.config import BrokerConfig

HTTP_LISTENER = "kafka.shim.http.listener"


def addresses_of(bound: str) -> dict[str, str]:
    """Returns HOST:PORT of each listener by its name, in their order, of the addresses that a broker has printed."""
    return {name: address for name, _, address in (entry.partition("://") for entry in bound.split(","))}


class KeptPorts:
    """`listen` is the value of `listeners` with the ports that the broker had, or empty; `http` has the option of the
    HTTP listener with its port, or nothing."""

    def __init__(self) -> None:
        self.listen = ""
        self.http: dict[str, str] = {}
        self._http_at = ""
        self._sockets: list[socket.socket] = []

    def note(self, listeners: str, bound: str) -> None:
        """Before the broker ends: the next start gets its ports. `bound` is the addresses that it printed."""
        named = [entry.strip().partition("://") for entry in listeners.split(",")]
        ports = {name: address.rpartition(":")[2] for name, address in addresses_of(bound).items()}
        self.listen = ",".join(
            f"{name}://{address.rpartition(':')[0]}:{ports[name.upper()]}" for name, _, address in named
        )

    def note_http(self, listener: str, bound: str) -> None:
        """As `note`, of the HTTP listener, if the broker has one. `bound` is its URL."""
        if bound:
            self._http_at = bound
            self.http = {HTTP_LISTENER: f"{listener.rpartition(':')[0]}:{bound.rpartition(':')[2]}"}

    def apply(self, config: BrokerConfig) -> None:
        """Have a broker with these options begin where the last one was."""
        if self.listen:
            config.listeners = self.listen
        if self.http:
            config.kafka_shim_http_listener = self.http[HTTP_LISTENER]

    def hold(self) -> None:
        """Until the next start no other program gets the ports: a bound socket that does not listen keeps each."""
        # Elsewhere two sockets cannot be bound to one address, though neither listens: the next start could not.
        if self._sockets or sys.platform != "linux":
            return
        from kafka_shim.listeners import EVERYWHERE, bound, bound_everywhere  # once a broker has run it is there

        for entry in filter(None, [*self.listen.split(","), self._http_at]):
            host, _, port = entry.rpartition("://")[2].rpartition(":")
            host = host.strip("[]")
            # The HTTP listener has one family.
            is_everywhere = host in EVERYWHERE and entry != self._http_at
            # A name that has no address here, or several: the start will say so.
            with suppress(OSError):
                family = socket.AF_INET6 if ":" in host else socket.AF_INET
                self._sockets.append(bound_everywhere(int(port)) if is_everywhere else bound(family, (host, int(port))))

    def forget(self) -> None:
        """The broker has started, or is stopped for good."""
        self.listen = self._http_at = ""
        self.http = {}
        for kept in self._sockets:
            kept.close()
        self._sockets.clear()
