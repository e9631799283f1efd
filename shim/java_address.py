"""Network addresses as Java writes them (`java.net.InetAddress.getHostAddress`).

ACLs, quotas and limits by host, and the client hosts of groups, are compared with and shown in that form.
"""

from __future__ import annotations

import socket


def plain_host(address: str) -> str:
    """Returns an IPv4 address without the prefix that a dual-stack socket adds."""
    return address.removeprefix("::ffff:")


def java_address(text: str) -> str:
    """Returns an IPv6 address as eight groups without `::`, and an IPv4 address as `plain_host` does. What is no
    address is returned as it is."""
    text = plain_host(text)
    if ":" not in text:
        return text
    address, percent, scope = text.partition("%")
    try:
        packed = socket.inet_pton(socket.AF_INET6, address)
    except (OSError, ValueError):
        return text
    groups = (int.from_bytes(packed[at : at + 2], "big") for at in range(0, len(packed), 2))
    return ":".join(f"{group:x}" for group in groups) + percent + scope
