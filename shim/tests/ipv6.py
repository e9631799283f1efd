"""Tests that want IPv6."""

from __future__ import annotations

import socket

import pytest


def has_ipv6() -> bool:
    """Whether this machine has `::1`. A kernel may have sockets of IPv6, and no address."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return socket.has_dualstack_ipv6()
    except OSError:
        return False


wants_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="the system has no IPv6")
