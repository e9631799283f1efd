"""The ports that tests choose for brokers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kafka_shim.targets.base import FIRST_PORT, PORTS_PER_PROCESS, PROCESSES, free_ports

CHOOSE = "from kafka_shim.targets.base import free_ports; print(*free_ports(3), flush=True); input()"
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_no_other_process_gets_the_port_of_a_broker_that_is_started_again() -> None:
    # Ports of outgoing connections and of listeners on port 0.
    first_given = int(RANGE.read_text().split()[0]) if RANGE.exists() else 1 << 16
    mine = free_ports(3)
    command = [sys.executable, "-c", CHOOSE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = [int(port) for port in other.stdout.readline().split()]
        other.communicate("\n")
    assert other.returncode == 0
    last = FIRST_PORT + PORTS_PER_PROCESS * PROCESSES - 1
    assert all(FIRST_PORT <= port <= min(last, first_given) for port in mine + theirs)
    assert not {port // PORTS_PER_PROCESS for port in mine} & {port // PORTS_PER_PROCESS for port in theirs}


def test_a_port_comes_again_only_after_all_others() -> None:
    seen = free_ports(PORTS_PER_PROCESS // 2)
    assert len(set(seen)) == len(seen)
    assert not set(seen) & set(free_ports(PORTS_PER_PROCESS // 4))
