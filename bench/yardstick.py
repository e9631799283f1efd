"""A yardstick, not a broker: the minimum that uvloop and Python must do to accept batches, store them and return them.

``python -m bench.yardstick PORT DIR`` serves InitProducerId 1, Produce 8, Fetch 11 and ApiVersions 0 for any topic,
which it creates on first use, and answers Heartbeat 3 and ConsumerGroupHeartbeat 1 of any member. It checks the CRC,
sets base offsets, writes one file per partition and keeps offsets in memory. An OffsetCommit 9 of one partition is a
batch of one record, with its CRC, in one file. With JoinGroup 5, SyncGroup 3 and
LeaveGroup 3 it has MEMBERS members wait for each other and gives out what the leader assigns. It implements no other
rule of Kafka: no producer state, no sessions and generations, no index, no errors, no recovery. The additional cost of
the shim is the cost of Kafka's semantics.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import sys
from bisect import bisect_right
from pathlib import Path
from struct import Struct

import uvloop

from kafka_shim.cext.crc32c import crc32c

FRAME = Struct(">ihhih")  # length, api key, version, correlation id, length of the client id
I16, I32, I64 = Struct(">h"), Struct(">i"), Struct(">q")
BATCH = Struct(">qiibIhi")  # base offset, length, leader epoch, magic, CRC, attributes, last offset delta
CRC_FROM = 21
BUFFER_BYTES = 4 << 20
# How many members a group has: it is complete when they have come.
MEMBERS = 100
MEMBER_ID_REQUIRED = 79


class Partition:
    """One file, and where in it each batch starts."""

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self.next_offset = 0
        self.size_bytes = 0
        self.offsets: list[int] = []
        self.positions: list[int] = []

    def append(self, records: memoryview) -> int:
        """Checks the CRC, sets the base offset, writes the batch. Returns the base offset."""
        base, length, _, _, crc, _, last_delta = BATCH.unpack_from(records)
        if crc32c(records[CRC_FROM : length + 12]) != crc:
            raise ValueError("CRC")
        base = self.next_offset
        I64.pack_into(records, 0, base)
        os.write(self.file, records)
        self.offsets.append(base)
        self.positions.append(self.size_bytes)
        self.next_offset = base + last_delta + 1
        self.size_bytes += len(records)
        return base

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one that holds `offset`, at least one."""
        if offset >= self.next_offset:
            return b""
        first = bisect_right(self.offsets, offset) - 1
        start = self.positions[first]
        last = max(bisect_right(self.positions, start + max_bytes) - 1, first + 1)
        end = (
            self.positions[last]
            if last < len(self.positions) and self.size_bytes > start + max_bytes
            else self.size_bytes
        )
        return os.pread(self.file, end - start, start)


class Group:
    """Who has joined and waits, with its metadata, and who has synced and waits, with what the leader assigned."""

    def __init__(self) -> None:
        self.joined: list[tuple[Connection, int, bytes, bytes]] = []
        self.synced: list[tuple[Connection, int, bytes]] = []
        self.assigned: dict[bytes, bytes] = {}


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commits = Partition(folder / "commits.log")
        self.groups: dict[bytes, Group] = {}
        self.member_count = 0
        self.partitions: dict[tuple[bytes, int], Partition] = {}
        self.producer_id = 0

    def partition(self, topic: bytes, index: int) -> Partition:
        found = self.partitions.get((topic, index))
        if found is None:
            found = Partition(self.folder / f"{topic.decode()}-{index}.log")
            self.partitions[topic, index] = found
        return found


class Connection(asyncio.BufferedProtocol):
    def __init__(self, store: Store) -> None:
        self.store = store
        # Pages that are not used cost nothing: a hundred members connect at once.
        self.buffer = memoryview(mmap.mmap(-1, BUFFER_BYTES))
        self.start = self.end = 0
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer[self.end :]

    def buffer_updated(self, nbytes: int) -> None:
        self.end += nbytes
        while self.end - self.start >= FRAME.size:
            length, key, _, correlation_id, client_bytes = FRAME.unpack_from(self.buffer, self.start)
            if self.end - self.start < 4 + length:
                break
            body = self.buffer[self.start + FRAME.size + max(client_bytes, 0) : self.start + 4 + length]
            self.start += 4 + length
            handler = HANDLERS.get(key)
            if handler is None:
                GROUP_HANDLERS[key](self, correlation_id, body)
            else:
                self.answer(correlation_id, handler(self.store, body))
        # Move an incomplete frame to the front of the buffer if there is little room behind it.
        if self.start == self.end:
            self.start = self.end = 0
        elif BUFFER_BYTES - self.end < BUFFER_BYTES // 2:
            left = bytes(self.buffer[self.start : self.end])
            self.buffer[: len(left)] = left
            self.start, self.end = 0, len(left)

    def answer(self, correlation_id: int, parts: list[bytes]) -> None:
        size_bytes = 4 + sum(map(len, parts))
        self.transport.writelines([I32.pack(size_bytes), I32.pack(correlation_id), *parts])


def text(body: memoryview, at: int) -> tuple[bytes, int]:
    (length,) = I16.unpack_from(body, at)
    return bytes(body[at + 2 : at + 2 + length]), at + 2 + length


def produce(store: Store, body: memoryview) -> list[bytes]:
    at = 2 + max(I16.unpack_from(body, 0)[0], 0) + 6  # transactional id, acks, timeout
    (topics,) = I32.unpack_from(body, at)
    at += 4
    answer = bytearray(I32.pack(topics))
    for _ in range(topics):
        topic, at = text(body, at)
        (partitions,) = I32.unpack_from(body, at)
        at += 4
        answer += I16.pack(len(topic)) + topic + I32.pack(partitions)
        for _ in range(partitions):
            index, size_bytes = I32.unpack_from(body, at)[0], I32.unpack_from(body, at + 4)[0]
            at += 8
            base = store.partition(topic, index).append(body[at : at + size_bytes])
            at += size_bytes
            answer += (
                I32.pack(index) + I16.pack(0) + I64.pack(base) + I64.pack(-1) + I64.pack(0) + I32.pack(0) + I16.pack(-1)
            )
    return [bytes(answer + I32.pack(0))]


def fetch(store: Store, body: memoryview) -> list[bytes]:
    left_bytes = I32.unpack_from(body, 12)[0]
    at = 25  # replica id, waits, bytes, isolation, session
    (topics,) = I32.unpack_from(body, at)
    at += 4
    parts = [I32.pack(0) + I16.pack(0) + I32.pack(0) + I32.pack(topics)]
    for _ in range(topics):
        topic, at = text(body, at)
        (partitions,) = I32.unpack_from(body, at)
        at += 4
        parts.append(I16.pack(len(topic)) + topic + I32.pack(partitions))
        for _ in range(partitions):
            index, _, offset, _, max_bytes = Struct(">iiqqi").unpack_from(body, at)
            at += 28
            partition = store.partition(topic, index)
            records = partition.read(offset, min(max_bytes, left_bytes)) if left_bytes > 0 else b""
            left_bytes -= len(records)
            end = I64.pack(partition.next_offset)
            head = I32.pack(index) + I16.pack(0) + end + end + I64.pack(0) + I32.pack(-1) + I32.pack(-1)
            parts += [head + I32.pack(len(records)), records]
    return parts


def init_producer_id(store: Store, body: memoryview) -> list[bytes]:
    store.producer_id += 1
    return [I32.pack(0) + I16.pack(0) + I64.pack(store.producer_id) + I16.pack(0)]


def api_versions(store: Store, body: memoryview) -> list[bytes]:
    return [I16.pack(0) + I32.pack(0)]


def heartbeat(store: Store, body: memoryview) -> list[bytes]:
    return [I32.pack(0) + I16.pack(0)]


def consumer_heartbeat(store: Store, body: memoryview) -> list[bytes]:
    at = 1  # the header's tags
    size_bytes = body[at]
    at += size_bytes  # group id: the length is one more than it is
    member = bytes(body[at : at + body[at]])
    epoch = bytes(body[at + len(member) : at + len(member) + 4])
    return [bytes(1) + I32.pack(0) + I16.pack(0) + bytes(1) + member + epoch + I32.pack(5000) + b"\xff\x00"]


def compact(body: memoryview, at: int) -> tuple[bytes, int]:
    """A string whose length is one more than it is, in one byte; null is empty."""
    end = at + max(body[at], 1)
    return bytes(body[at + 1 : end]), end


def offset_commit(store: Store, body: memoryview) -> list[bytes]:
    """One partition of one topic."""
    group, at = compact(body, 1)  # behind the header's tags
    _, at = compact(body, at + 4)  # the generation; the member
    _, at = compact(body, at)  # its instance
    topic, at = compact(body, at + 1)  # behind the count of topics
    index = bytes(body[at + 1 : at + 5])
    value = I16.pack(3) + bytes(body[at + 5 : at + 17]) + I16.pack(0) + bytes(8)  # offset, epoch, no metadata, a time
    key = I16.pack(1) + written(group) + written(topic) + index
    record = bytes((0, 0, 0, 2 * len(key))) + key + bytes((2 * len(value),)) + value + bytes(1)
    batch = bytearray(60) + bytes((1, 2 * len(record))) + record  # a header, whose last field is the count
    crc = crc32c(memoryview(batch)[CRC_FROM:])
    BATCH.pack_into(batch, 0, 0, len(batch) - 12, 0, 2, crc, 0, 0)
    store.commits.append(memoryview(batch))
    answered = bytes((2, len(topic) + 1)) + topic + bytes((2,)) + index + I16.pack(0) + bytes(3)
    return [bytes(1) + I32.pack(0) + answered]


def written(data: bytes) -> bytes:
    """A string."""
    return I16.pack(len(data)) + data


def join_group(connection: Connection, correlation_id: int, body: memoryview) -> None:
    store = connection.store
    name, at = text(body, 0)
    member, at = text(body, at + 8)
    no_error, no_members = I32.pack(0) + I16.pack(0), I32.pack(0)
    if not member:
        store.member_count += 1
        member = b"member-%d" % store.member_count
        head = I32.pack(0) + I16.pack(MEMBER_ID_REQUIRED) + I32.pack(-1)
        connection.answer(correlation_id, [head, written(b""), written(b""), written(member), no_members])
        return
    _, at = text(body, at + 2)  # behind the instance id, which is null
    _, at = text(body, at + 4)  # the first protocol
    (size_bytes,) = I32.unpack_from(body, at)
    group = store.groups.setdefault(name, Group())
    group.joined.append((connection, correlation_id, member, bytes(body[at + 4 : at + 4 + size_bytes])))
    if len(group.joined) < MEMBERS:
        return
    leader = group.joined[0][2]
    all_members = [I32.pack(MEMBERS)]
    for _, _, one, metadata in group.joined:
        all_members.append(written(one) + I16.pack(-1) + I32.pack(len(metadata)) + metadata)
    head = no_error + I32.pack(1) + written(b"range") + written(leader)
    for waiting, number, one, _ in group.joined:
        waiting.answer(number, [head, written(one), b"".join(all_members) if one == leader else no_members])
    group.joined.clear()


def sync_group(connection: Connection, correlation_id: int, body: memoryview) -> None:
    name, at = text(body, 0)
    member, at = text(body, at + 4)
    group = connection.store.groups[name]
    group.synced.append((connection, correlation_id, member))
    (count,) = I32.unpack_from(body, at + 2)  # behind the instance id
    at += 6
    for _ in range(count):
        one, at = text(body, at)
        (size_bytes,) = I32.unpack_from(body, at)
        group.assigned[one] = bytes(body[at + 4 : at + 4 + size_bytes])
        at += 4 + size_bytes
    if len(group.synced) < MEMBERS:
        return
    for waiting, number, one in group.synced:
        assigned = group.assigned[one]
        waiting.answer(number, [I32.pack(0), I16.pack(0), I32.pack(len(assigned)), assigned])
    group.synced.clear()


def leave_group(connection: Connection, correlation_id: int, body: memoryview) -> None:
    connection.store.groups.pop(text(body, 0)[0], None)
    connection.answer(correlation_id, [I32.pack(0), I16.pack(0), I32.pack(0)])


GROUP_HANDLERS = {11: join_group, 13: leave_group, 14: sync_group}
HANDLERS = {
    0: produce,
    1: fetch,
    8: offset_commit,
    12: heartbeat,
    18: api_versions,
    22: init_producer_id,
    68: consumer_heartbeat,
}


async def main(port: int, folder: Path) -> None:
    store = Store(folder)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(store), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), Path(sys.argv[2])))
