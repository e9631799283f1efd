"""The Host by which a client has reached a server. Another site may have its own name lead browsers to an address of
ours, and then reads what is served there as its own (DNS rebinding): an address, and `localhost`, are no such names."""

from __future__ import annotations

import ipaddress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.http.server import Request


# By these a container reaches its host, also what listens on loopback there. No site may have a name of `internal`.
FROM_CONTAINERS = ("host.docker.internal", "host.containers.internal")


def host_name(request: Request) -> str:
    """Return the Host without its port, in lower case; nothing if there is none."""
    host = request.headers.get("Host", "")
    name, _, port = host.rpartition(":")
    return (name if port.isdecimal() else host).lower()


def is_numeric(name: str) -> bool:
    """Whether a Host is an address: no name, so that no other site's DNS leads there under a name of its own."""
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def is_local(name: str) -> bool:
    """Whether a Host can be that of a server on loopback. A browser always sends one."""
    return name in ("", "localhost", *FROM_CONTAINERS) or name.endswith(".localhost") or is_numeric(name)
