"""Clients that lie, stall and never read cost a broker in its own process bounded memory, and nobody else anything."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.targets import Target, make
from kafka_shim.targets.waiting import PATIENCE_S, wait_until
from kafka_shim.tests.produced import batch, fetch_request, make_topic, produce, produce_request
from kafka_shim.wire_client import Connection

MB = 1 << 20
CLIENTS = 100
BOMB = bytes(150 * MB)  # 128 times what a batch may have is the limit


@pytest.fixture(scope="module")
def broker() -> Iterator[Target]:
    with make("shim", settings={"connections.max.idle.ms": "5000"}) as target:
        with Connection(target.bootstrap) as client:
            make_topic(client, "t")
        yield target


def memory_bytes(broker: Target, field: str) -> int:
    """One of the sizes in /proc/PID/status."""
    lines = Path(f"/proc/{broker.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{field}:")).split()[1]) * 1024


def own_bytes(broker: Target) -> int:
    """What the process itself holds: pages of the logs that it maps are the file system's."""
    return memory_bytes(broker, "RssAnon") + memory_bytes(broker, "RssShmem")


def descriptors(broker: Target) -> int:
    return len(list(Path(f"/proc/{broker.pid}/fd").iterdir()))


@contextlib.contextmanager
def clients(broker: Target, count: int = CLIENTS) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection((broker.host, broker.port), timeout=PATIENCE_S))
            for _ in range(count)
        ]


def bystander_is_served(broker: Target) -> None:
    with Connection(broker.bootstrap, timeout_s=PATIENCE_S) as client:
        assert produce(client, "t", 0, batch(b"a")).error_code == 0


def test_announced_frames_cost_what_arrives(broker: Target) -> None:
    before = own_bytes(broker)
    with clients(broker) as stalled:
        for sock in stalled:
            sock.sendall(struct.pack(">i", 100_000_000) + bytes(2))
        bystander_is_served(broker)
        assert own_bytes(broker) - before < 8 * MB
        for sock in stalled:
            sock.sendall(bytes(100_000))
        bystander_is_served(broker)
        assert own_bytes(broker) - before < 8 * MB + CLIENTS * 300_000
        # All the while they send nothing more: in the end they are let go.
        for sock in stalled:
            assert sock.recv(1) == b""
    wait_until(lambda: own_bytes(broker) - before < 8 * MB, "memory is free again")


def test_clients_that_never_read_are_not_read_from_and_let_go(broker: Target) -> None:
    with Connection(broker.bootstrap, timeout_s=PATIENCE_S) as client:
        assert produce(client, "t", 0, batch(bytes(MB - 1000))).error_code == 0
    before, open_before = own_bytes(broker), descriptors(broker)
    frame = encode_request_frame(fetch_request({("t", 0): 0}, max_bytes=2 * MB, partition_max_bytes=2 * MB), 12, 1, "t")
    with clients(broker) as silent:
        for sock in silent:
            sock.sendall(frame * 100)
        bystander_is_served(broker)
        assert own_bytes(broker) - before < CLIENTS * 3 * MB
        wait_until(lambda: descriptors(broker) <= open_before + 2, "the connections are closed")


@pytest.mark.parametrize("codec", [1, 2, 3, 4], ids=["gzip", "snappy", "lz4", "zstd"])
def test_compressed_bombs_are_refused_with_bounded_memory(broker: Target, codec: int) -> None:
    bomb = batch(BOMB, codec=codec)
    Path(f"/proc/{broker.pid}/clear_refs").write_text("5")  # forget the peak
    before = memory_bytes(broker, "VmHWM")
    with Connection(broker.bootstrap, timeout_s=PATIENCE_S) as client:
        answer = client.request(produce_request("t", 0, bomb), 9)
    assert answer.responses[0].partition_responses[0].error_code != 0
    assert memory_bytes(broker, "VmHWM") - before < 128 * MB + 32 * MB
    bystander_is_served(broker)


def test_counts_that_lie_close_their_connection(broker: Target) -> None:
    before = own_bytes(broker)
    header = struct.pack(">hhih", MetadataRequest.API_KEY, 8, 1, -1)
    many = struct.pack(">i", 5 * MB) + bytes(2 * 5 * MB)
    with clients(broker, 5) as (lying, *greedy):
        for sock, body in ((lying, struct.pack(">i", 2**31 - 1) + bytes(16)), *((sock, many) for sock in greedy)):
            sock.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
            assert sock.recv(1) == b""
    bystander_is_served(broker)
    assert own_bytes(broker) - before < 8 * MB
