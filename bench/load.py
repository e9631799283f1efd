"""The client of the bench: batches like those of franz-go or librdkafka (1 MB, pipelined), made once and stamped for
each send.

Runs in a process of its own: ``python -m bench.load produce|consume|latency BOOTSTRAP TOPIC AMOUNT`` prints one line
of JSON.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from random import Random
from struct import Struct

from kafka_shim.cext.crc32c import crc32c
from kafka_shim.cext.messages import decode
from kafka_shim.cext.records import build
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.headers import encode_request_frame, parse_response_header, response_class
from kafka_shim.targets.requests import make
from kafka_shim.targets.waiting import last_answer
from kafka_shim.wire_client import Connection, parse_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# The variable with a client's properties as JSON, for listeners with TLS or SASL.
PROPERTIES = "KAFKA_SHIM_BENCH_CLIENT"
PARTITIONS = 4
RECORD_BYTES = 1024
BATCH_BYTES = 1_000_000
IN_FLIGHT = 5  # of a connection, as idempotent producers have it
# The last versions before the compact encodings. The bench compares brokers, not the fields of a version.
PRODUCE, FETCH, INIT_PRODUCER_ID = 8, 11, 1
AT_CRC, AT_ATTRIBUTES, AT_BASE_SEQUENCE = 17, 21, 53
U32, I32 = Struct(">I"), Struct(">i")


class Link:
    """A blocking socket with whole-frame reads into one buffer."""

    def __init__(self, bootstrap: str, buffer_bytes: int = 64 << 20) -> None:
        properties = json.loads(os.environ.get(PROPERTIES, "{}"))
        if properties:
            from kafka_shim.client_security import ClientSecurity

            # Connects and logs in; from then on the socket is this object's.
            self.socket = Connection(bootstrap, timeout_s=60, security=ClientSecurity(properties)).detach()
        else:
            self.socket = socket.create_connection(parse_address(bootstrap))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray(buffer_bytes)
        self.view = memoryview(self.buffer)

    def frame(self) -> memoryview:
        """Returns the next response; valid until the next call."""
        self._fill(4)
        size_bytes = I32.unpack_from(self.buffer)[0]
        self._fill(size_bytes)
        return self.view[:size_bytes]

    def _fill(self, size_bytes: int) -> None:
        at = 0
        while at < size_bytes:
            taken = self.socket.recv_into(self.view[at:size_bytes])
            if not taken:
                raise ConnectionError("the broker closed the connection")
            at += taken

    def call(self, message: Any, version: int) -> Any:
        self.socket.sendall(encode_request_frame(message, version, 1, "bench"))
        frame = self.frame()
        _, start = parse_response_header(message.API_KEY, version, frame)
        return decode(response_class(message.API_KEY), version, frame, start)


def idempotent_producer(link: Link) -> int:
    """Returns a new producer id. Raises RuntimeError without one: its batches would be of no producer."""
    ask = make("InitProducerId", transactional_id=None, transaction_timeout_ms=60_000)
    # A broker that has just started asks its controller for a block of ids.
    given = last_answer(
        lambda: link.call(ask, INIT_PRODUCER_ID),
        lambda answer: answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    )
    check(given.error_code)
    return int(given.producer_id)


class Batches:
    """One Produce request as bytes, with a batch whose producer, sequence and CRC are set for each send."""

    def __init__(
        self,
        topic: str,
        partition: int,
        records: int,
        producer_id: int,
        *,
        record_bytes: int = RECORD_BYTES,
        codec: int = 0,
    ) -> None:
        now_ms = int(time.time() * 1000)
        random = Random(record_bytes)
        # One half is random and one half is not, so that a batch compresses to a little more than half of its size.
        half = bytes(record_bytes // 2)
        rows = [(None, random.randbytes(record_bytes - len(half)) + half, now_ms, ()) for _ in range(records)]
        batch = build(rows, codec=codec, producer_id=producer_id, producer_epoch=0, base_sequence=0)
        part = {"index": partition, "records": batch}
        request = make("Produce", acks=-1, timeout_ms=30_000, topic_data=[{"name": topic, "partition_data": [part]}])
        self.frame = bytearray(encode_request_frame(request, PRODUCE, 1, "bench"))
        self.at = len(self.frame) - len(batch)
        self.view = memoryview(self.frame)
        self.records = records
        self.sequence = 0

    def next(self) -> bytearray:
        I32.pack_into(self.frame, self.at + AT_BASE_SEQUENCE, self.sequence)
        U32.pack_into(self.frame, self.at + AT_CRC, crc32c(self.view[self.at + AT_ATTRIBUTES :]))
        self.sequence = (self.sequence + self.records) & 0x7FFFFFFF
        return self.frame


def first_error(frame: memoryview) -> int:
    """Returns the error code of a Produce response with one topic and partition."""
    answer: Any = decode(response_class(0), PRODUCE, frame, 4)
    return int(answer.responses[0].partition_responses[0].error_code)


def check(code: int) -> None:
    if code:
        raise RuntimeError(f"the broker answered error {code}")


def produce(bootstrap: str, topic: str, amount: int) -> dict[str, float]:
    """Writes `amount` bytes of 1 KB records."""
    link = Link(bootstrap)
    producer_id = idempotent_producer(link)
    records = BATCH_BYTES // (RECORD_BYTES + 8)
    batches = [Batches(topic, partition, records, producer_id) for partition in range(PARTITIONS)]
    requests = max(amount // (records * RECORD_BYTES), 1)
    began = time.perf_counter()
    waiting = 0
    for number in range(requests):
        link.socket.sendall(batches[number % PARTITIONS].next())
        waiting += 1
        if waiting == IN_FLIGHT:
            check(first_error(link.frame()))
            waiting -= 1
    for _ in range(waiting):
        check(first_error(link.frame()))
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "bytes": requests * records * RECORD_BYTES, "records": requests * records}


def consume(bootstrap: str, topic: str, amount: int) -> dict[str, float]:
    """Reads `amount` bytes from the start of the partitions, checking CRCs as clients do."""
    link = Link(bootstrap)
    offsets = [0] * PARTITIONS
    total = 0
    began = time.perf_counter()
    while total < amount:
        parts = [
            {"partition": index, "fetch_offset": offset, "partition_max_bytes": BATCH_BYTES + 100_000}
            for index, offset in enumerate(offsets)
        ]
        request = make(
            "Fetch",
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=50 << 20,
            session_epoch=-1,
            topics=[{"topic": topic, "partitions": parts}],
        )
        answer = link.call(request, FETCH)
        for part in answer.responses[0].partitions:
            check(part.error_code)
            records = memoryview(part.records or b"")
            at = 0
            while len(records) - at > 61:
                end = at + 12 + I32.unpack_from(records, at + 8)[0]
                if end > len(records):
                    break
                if crc32c(records[at + AT_ATTRIBUTES : end]) != U32.unpack_from(records, at + AT_CRC)[0]:
                    raise RuntimeError("a batch came with a wrong CRC")
                count = I32.unpack_from(records, at + 57)[0]
                offsets[part.partition_index] += count
                total += count * RECORD_BYTES
                at = end
    return {"seconds": time.perf_counter() - began, "bytes": total}


def latency(bootstrap: str, topic: str, amount: int) -> dict[str, Any]:
    """`amount` records of 100 bytes, acks=all, one at a time."""
    link = Link(bootstrap)
    producer_id = idempotent_producer(link)
    batch = Batches(topic, 0, 1, producer_id)
    taken = []
    for _ in range(amount):
        frame = batch.next()
        began = time.perf_counter_ns()
        link.socket.sendall(frame)
        check(first_error(link.frame()))
        taken.append((time.perf_counter_ns() - began) / 1000)
    return {**percentiles(taken), "requests": amount}


def percentiles(taken_us: Iterable[float]) -> dict[str, float]:
    """p50, p90, p99 and p99.9 by name."""
    ordered = sorted(taken_us)
    return {
        f"p{percent:g}_us": ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)]
        for percent in (50, 90, 99, 99.9)
    }


if __name__ == "__main__":
    work = {"produce": produce, "consume": consume, "latency": latency}[sys.argv[1]]
    print(json.dumps(work(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
