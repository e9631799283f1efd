"""What answers under way may hold: by each connection and by all, whatever the clients do."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_shim import network_send, response_sender, server
from kafka_shim.client_security import ClientSecurity
from kafka_shim.embedded import Broker
from kafka_shim.network_send import LARGE_CHUNK_BYTES, SMALL_CHUNK_BYTES, NetworkSend, SendMemory
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafka_shim.storage import file_records
from kafka_shim.tests.produced import batch, fetch, fetch_request, make_topic, produce
from kafka_shim.tests.waiting import PATIENCE_S, until
from kafka_shim.wire_client import Connection

# Deadlines of the tests themselves: nothing in a passing run waits this long.
PARTITIONS, BATCH_BYTES = 8, 1_000_000
FETCH_VERSION = 12


@pytest.fixture
def looped(loop_factory) -> Iterator[Broker]:
    """A broker on each event loop."""
    with Broker(num_partitions=1, loop_factory=loop_factory, clock="virtual") as running:
        yield running


@contextlib.contextmanager
def reader(broker: Broker, receive_bytes: int = 4096) -> Iterator[socket.socket]:
    """A client whose system takes little of an answer before the client itself does."""
    host, port = broker.bootstrap_servers.rsplit(":", 1)
    with socket.socket() as opened:
        opened.settimeout(PATIENCE_S)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        opened.connect((host, int(port)))
        yield opened


@pytest.fixture
def client(looped: Broker) -> Iterator[Connection]:
    with Connection(looped.bootstrap_servers, timeout_s=PATIENCE_S) as opened:
        yield opened


def fill(client: Connection, partitions: int = PARTITIONS) -> bytes:
    """A topic "big" with one batch in each partition; the batch."""
    make_topic(client, "big", partitions)
    records = batch(os.urandom(BATCH_BYTES))
    for number in range(partitions):
        assert produce(client, "big", number, records).error_code == 0
    return records


def whole_fetch(partitions: int = PARTITIONS) -> bytes:
    wanted = {("big", number): 0 for number in range(partitions)}
    request = fetch_request(wanted, max_bytes=1 << 30, partition_max_bytes=1 << 30)
    return encode_request_frame(request, FETCH_VERSION, 7, "slow")


def unsent(broker: Broker) -> list[int]:
    """What each connection's transport holds, largest first. `Broker.call` does not wait for any of it."""
    connections = broker._server._registry.connections
    return sorted((one._transport.get_write_buffer_size() for one in connections), reverse=True)


def fetches(broker: Broker) -> int:
    return broker.state.metrics.requests[1]


def read_exactly(sock: socket.socket, size_bytes: int, piece_bytes: int = 1 << 20) -> bytes:
    found = bytearray()
    while len(found) < size_bytes:
        piece = sock.recv(min(piece_bytes, size_bytes - len(found)))
        assert piece, f"closed after {len(found)} of {size_bytes} bytes"
        found += piece
    return bytes(found)


def read_frame(sock: socket.socket, piece_bytes: int = 1 << 20) -> bytes:
    return read_exactly(sock, int.from_bytes(read_exactly(sock, 4)), piece_bytes)


def assert_whole(frame: bytes, records: bytes, partitions: int = PARTITIONS) -> None:
    """An answer has each partition's batch as it was produced (the leader epoch is the broker's)."""
    assert frame.count(records[61:]) == partitions


@pytest.mark.parametrize("copies", [False, True])
def test_clients_that_never_read_hold_little_each_and_together(looped, client, monkeypatch, copies):
    """Whether the kernel sends the files, or the broker copies them, as it must with TLS."""
    if copies:
        monkeypatch.setattr("kafka_shim.response_sender.HAS_SENDFILE", False)
    fill(client)
    count = 40
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(reader(looped)).sendall(whole_fetch())
        until(looped, lambda: fetches(looped) == count)
        held = looped.call(lambda: unsent(looped))
        memory = looped.state.send_memory
        assert held[0] <= LARGE_CHUNK_BYTES + BATCH_BYTES // 10
        assert sum(held) <= memory.limit_bytes + count * 2 * SMALL_CHUNK_BYTES
        assert looped.call(lambda: memory.used_bytes) >= sum(held)
        # Whoever reads is served beside them.
        assert fetch(client, "big", 0, 0).error_code == 0
    until(looped, lambda: memory.used_bytes == 0)


def test_an_answer_that_begins_behind_unsent_bytes_is_not_read_into_memory(looped, client):
    """A held answer can fill the socket after the request behind it was taken up."""
    fill(client)
    filling = bytes(1 << 22)
    with reader(looped) as sock:
        sock.sendall(encode_request_frame(ApiVersionsRequest(), 0, 1, "slow"))
        read_frame(sock)
        port = sock.getsockname()[1]
        connections = looped._server._registry.connections
        (connection,) = (one for one in connections if one.session.peer_port == port)
        looped.call(lambda: connection._transport.write(filling))
        until(looped, lambda: connection._write_paused)
        segments = [looped.state.logs.get("big", number).active for number in range(PARTITIONS)]
        records = [network_send.FileRecords(segment, 0, segment.size_bytes) for segment in segments]
        looped.call(lambda: connection._send([b"head", *records]))
        for _ in range(50):  # turns of the loop
            assert looped.call(lambda: unsent(looped))[0] <= len(filling)
        wanted = b"".join(one.read(0, one.size_bytes) for one in records)
        assert read_exactly(sock, len(filling) + 4 + len(wanted)).endswith(b"head" + wanted)


def test_no_client_is_starved_by_those_that_do_not_read(looped, client):
    records = fill(client)
    looped.call(lambda: setattr(looped.state.send_memory, "limit_bytes", 0))
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(reader(looped)).sendall(whole_fetch())
        until(looped, lambda: fetches(looped) == 5)
        sock = stack.enter_context(reader(looped))
        sock.sendall(whole_fetch() + encode_request_frame(ApiVersionsRequest(), 0, 8, "slow"))
        assert_whole(read_frame(sock), records)
        assert read_frame(sock)[:4] == b"\x00\x00\x00\x08"


@pytest.mark.parametrize("piece_bytes", [1000, 65536, 1 << 20])
def test_a_slow_reader_gets_every_byte(looped, client, piece_bytes):
    records = fill(client, 2)
    with reader(looped) as sock:
        for _ in range(2):
            sock.sendall(whole_fetch(2))
            assert_whole(read_frame(sock, piece_bytes), records, 2)
    until(looped, lambda: looped.state.send_memory.used_bytes == 0)


def test_a_batch_over_every_bound_is_answered(looped, client):
    make_topic(client, "huge", max_message_bytes="60000000")
    records = batch(os.urandom(50_000_000))
    assert produce(client, "huge", 0, records).error_code == 0
    looped.call(lambda: setattr(looped.state.send_memory, "limit_bytes", 1))
    assert bytes(fetch(client, "huge", 0, 0, max_bytes=1).records)[61:] == records[61:]


def test_requests_behind_a_slow_answer_are_answered_after_it(looped, client):
    records = fill(client, 3)
    with reader(looped) as sock:
        versions = encode_request_frame(ApiVersionsRequest(), 0, 8, "slow")
        sock.sendall(whole_fetch(3) + versions + whole_fetch(3) + versions)
        for _ in range(2):
            assert_whole(read_frame(sock), records, 3)
            assert read_frame(sock)[:4] == b"\x00\x00\x00\x08"


def test_a_topic_deleted_under_an_answer_is_sent_to_its_end(looped, client):
    records = fill(client)
    with reader(looped) as sock:
        sock.sendall(whole_fetch())
        until(looped, lambda: fetches(looped) == 1)
        told = client.request(DeleteTopicsRequest(topics=[DeleteTopicState(name="big")], timeout_ms=1000), 6)
        assert told.responses[0].error_code == 0
        looped.clock.advance("5m")  # beyond file.delete.delay.ms
        assert_whole(read_frame(sock), records)


def test_files_closed_under_an_answer_are_opened_again(looped, client):
    records = fill(client)
    with reader(looped) as sock:
        sock.sendall(whole_fetch())
        until(looped, lambda: fetches(looped) == 1)
        looped.call(lambda: [log.active.close_file() for log in looped.state.logs.all()])
        assert_whole(read_frame(sock), records)


@pytest.mark.parametrize(
    ("failure", "lines"),
    [
        (OSError(errno.EIO, os.strerror(errno.EIO)), 1),
        (MemoryError(), 1),
        # Of a client that is gone, sendfile says so: nothing is wrong with the disk.
        (OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)), 0),
        (OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH)), 0),
    ],
    ids=["EIO", "memory", "ETIMEDOUT", "EHOSTUNREACH"],
)
def test_an_answer_that_cannot_be_read_costs_its_connection_alone(looped, client, monkeypatch, caplog, failure, lines):
    fill(client)
    with reader(looped) as sock:
        sock.sendall(whole_fetch())
        until(looped, lambda: fetches(looped) == 1)

        def refuse(records, *arguments):
            raise failure

        monkeypatch.setattr(network_send.FileRecords, "read", refuse)
        monkeypatch.setattr(network_send.FileRecords, "send", refuse)
        with contextlib.suppress(ConnectionResetError):
            while sock.recv(1 << 20):
                pass
    until(looped, lambda: looped.state.metrics.connections_closed == 1)
    assert caplog.text.count("records of its response cannot be read from the disk") == lines
    assert looped.call(lambda: looped.state.send_memory.used_bytes) == 0
    monkeypatch.undo()
    assert fetch(client, "big", 0, 0).error_code == 0


def test_a_file_that_ends_under_an_answer_costs_its_connection_alone(looped, client, caplog):
    fill(client)
    with reader(looped) as sock:
        sock.sendall(whole_fetch())
        until(looped, lambda: fetches(looped) == 1)
        last = looped.call(lambda: looped.state.logs.get("big", PARTITIONS - 1).active)
        os.truncate(last.path(".log"), 1000)
        with contextlib.suppress(ConnectionResetError):
            while sock.recv(1 << 20):
                pass
    until(looped, lambda: looped.state.metrics.connections_closed == 1)
    assert caplog.text.count("records of its response cannot be read from the disk") == 1
    assert looped.call(lambda: looped.state.send_memory.used_bytes) == 0


def supports_nowait(directory: Path) -> bool:
    """Whether the file system says what is in the page cache."""
    with (directory / "probe").open("wb+") as file:
        file.write(b"x")
        file.flush()
        try:
            return os.preadv(file.fileno(), (bytearray(1),), 0, os.RWF_NOWAIT) == 1
        except OSError:
            return False


def test_bytes_on_the_disk_alone_are_cold(tmp_path):
    """A probe makes the kernel begin to read the page, and a quick disk may have it before the probe is answered: so of
    several probes, each of a file that has left the cache, one at least finds it cold."""
    if not supports_nowait(tmp_path):
        return  # nobody knows there
    with Broker(num_partitions=1, data_dir=tmp_path / "data") as broker:
        with Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as client:
            fill(client, 1)
        segment = broker.call(lambda: broker.state.logs.get("big", 0).active)
        records = file_records.FileRecords(segment, 0, segment.size_bytes)
        assert not records.is_cold(0, records.size_bytes)

        def is_cold_again() -> bool:
            os.fsync(segment.fd)
            os.posix_fadvise(segment.fd, 0, 0, os.POSIX_FADV_DONTNEED)
            return records.is_cold(0, records.size_bytes)

        assert any(is_cold_again() for _ in range(50))


def test_the_loop_does_not_wait_for_the_disk(loop_factory, monkeypatch):
    """An answer out of cold pages is read by a thread; other clients are served meanwhile."""
    asked, may_read = threading.Event(), threading.Event()

    def read_late(*arguments: int) -> None:
        asked.set()
        assert may_read.wait(PATIENCE_S)
        file_records.read_ahead(*arguments)

    monkeypatch.setattr(response_sender, "read_ahead", read_late)
    # Whether a real page is found cold depends on how quick the disk is.
    monkeypatch.setattr(network_send.FileRecords, "is_cold", lambda *_: not may_read.is_set())
    with (
        Broker(num_partitions=1, loop_factory=loop_factory) as broker,
        Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as client,
        reader(broker) as sock,
    ):
        records = fill(client, 2)
        sock.sendall(whole_fetch(2))
        assert asked.wait(PATIENCE_S)
        assert client.request(ApiVersionsRequest(), 0).error_code == 0
        assert not may_read.is_set()
        may_read.set()
        assert_whole(read_frame(sock), records, 2)


def test_all_of_what_is_read_ahead_is_in_the_page_cache(tmp_path):
    if not supports_nowait(tmp_path):
        return  # nobody reads ahead there
    size_bytes = 5 * file_records.READ_AHEAD_BYTES + 1
    with (tmp_path / "file").open("wb+") as file:
        file.write(bytes(2 * size_bytes))
        file.flush()
        fd = file.fileno()
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        file_records.read_ahead(fd, 4097, size_bytes)
        for position in (*range(4097, 4097 + size_bytes, 4096), 4096 + size_bytes):
            assert os.preadv(fd, (bytearray(1),), position, os.RWF_NOWAIT) == 1
        file_records.read_ahead(fd, 2 * size_bytes, 1)  # behind the end: nothing to read
    file_records.read_ahead(-1, 0, size_bytes)  # whoever sends meets the error


def test_an_answer_gets_through_although_its_pages_leave_the_cache_at_once(looped, client, monkeypatch):
    """What was read ahead is sent, whatever the cache says of it then."""
    records = fill(client, 2)
    monkeypatch.setattr(network_send.FileRecords, "is_cold", lambda *_: True)
    with reader(looped) as sock:
        sock.sendall(whole_fetch(2))
        assert_whole(read_frame(sock), records, 2)


@pytest.mark.parametrize("tls", [False, True])
def test_stored_bytes_pass_the_broker_by_unless_they_are_encrypted(loop_factory, tls, monkeypatch):
    copied = []
    read = network_send.FileRecords.read

    def count(records, start: int, size_bytes: int) -> bytes:
        copied.append(size_bytes)
        return read(records, start, size_bytes)

    monkeypatch.setattr(network_send.FileRecords, "read", count)
    with Broker(num_partitions=1, loop_factory=loop_factory, tls=tls) as broker:
        settings = broker.client_config("java") if tls else {}
        security = ClientSecurity(settings) if tls else None
        with Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S, security=security) as client:
            records = fill(client, 1)
            assert bytes(fetch(client, "big", 0, 0, max_bytes=1 << 30).records)[61:] == records[61:]
    assert (sum(copied) == len(records)) == tls
    assert sum(copied) <= len(records)


def test_stored_bytes_are_copied_where_the_file_system_has_no_sendfile(looped, client, monkeypatch, caplog):
    records = fill(client, 2)
    tries = []

    def refuse(socket_fd: int, fd: int, position: int, size_bytes: int) -> int:
        tries.append(position)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "sendfile", refuse)
    with reader(looped) as sock:
        for _ in range(2):
            sock.sendall(whole_fetch(2))
            assert_whole(read_frame(sock), records, 2)
    assert len(tries) == 2  # one for each response
    assert "cannot be read" not in caplog.text
    until(looped, lambda: looped.state.send_memory.used_bytes == 0)


def test_a_client_that_sends_nothing_more_gets_the_rest_of_its_response(looped, client):
    records = fill(client)
    with reader(looped) as sock:
        sock.sendall(whole_fetch())
        until(looped, lambda: fetches(looped) == 1)
        sock.shutdown(socket.SHUT_WR)
        connections = looped._server._registry.connections
        until(looped, lambda: any(one.is_closing or one._transport.is_closing() for one in connections))
        assert_whole(read_frame(sock), records)
        assert sock.recv(1) == b""
    until(looped, lambda: looped.state.metrics.connections_closed == 1)


def test_a_client_found_gone_by_sendfile_is_lost_once(looped, client, monkeypatch, caplog):
    fill(client)
    with reader(looped) as sock:
        sock.sendall(whole_fetch())
        until(looped, lambda: fetches(looped) == 1)

        def refuse(records, socket_fd, start, size_bytes):
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

        monkeypatch.setattr(network_send.FileRecords, "send", refuse)
        with contextlib.suppress(ConnectionResetError):
            while sock.recv(1 << 20):
                pass
    until(looped, lambda: looped.state.metrics.connections_closed == 1)
    looped.call(asyncio.sleep, 0)  # what the loop has left to do
    assert caplog.text == ""
    assert looped.call(lambda: looped.state.send_memory.used_bytes) == 0


def test_a_client_that_leaves_gives_everything_back(looped, client):
    fill(client)
    segments = looped.call(lambda: [log.active for log in looped.state.logs.all() if log.topic == "big"])
    with reader(looped) as sock:
        sock.sendall(whole_fetch())
        until(looped, lambda: fetches(looped) == 1)
        assert looped.call(lambda: sum(segment._retained for segment in segments)) > 0
    until(looped, lambda: looped.state.send_memory.used_bytes == 0)
    assert looped.call(lambda: sum(segment._retained for segment in segments)) == 0


def test_a_clean_stop_sends_an_answer_under_way_to_its_end(loop_factory, monkeypatch):
    monkeypatch.setattr(server, "FLUSH_SECONDS", PATIENCE_S)
    broker = Broker(num_partitions=1, loop_factory=loop_factory)
    with broker, Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as client, contextlib.ExitStack() as stack:
        records = fill(client)
        sock = stack.enter_context(reader(broker))
        sock.sendall(whole_fetch())
        until(broker, lambda: fetches(broker) == 1)
        found: list[bytes] = []
        taking = threading.Thread(target=lambda: found.append(read_frame(sock)))
        stopping = threading.Thread(target=broker.stop)
        stopping.start()
        until_stopping(broker)
        taking.start()
        taking.join(PATIENCE_S)
        stopping.join(PATIENCE_S)
    assert_whole(found[0], records)


def until_stopping(broker: Broker) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not broker.state.stopping:
        assert time.monotonic() < deadline


def test_a_client_that_takes_an_answer_slowly_is_not_idle():
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker(connections_max_idle_ms=60_000, clock="virtual"))
        client = stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S))
        records = fill(client)
        sock = stack.enter_context(reader(broker))
        sock.sendall(whole_fetch())
        until(broker, lambda: fetches(broker) == 1)
        size_bytes = int.from_bytes(read_exactly(sock, 4))
        found = bytearray()
        while len(found) < size_bytes:
            before = broker.call(lambda: unsent(broker)[0])
            while len(found) < size_bytes and broker.call(lambda: unsent(broker)[0]) == before:
                found += read_exactly(sock, min(100_000, size_bytes - len(found)))
            broker.clock.advance("40s")
        assert_whole(bytes(found), records)


# --- the account, and the pieces


def test_an_account_near_its_limit_gives_small_chunks():
    memory = SendMemory(LARGE_CHUNK_BYTES)
    assert memory.chunk_bytes == LARGE_CHUNK_BYTES
    memory.used_bytes = 1
    assert memory.chunk_bytes == SMALL_CHUNK_BYTES
    memory.used_bytes = 1 << 40
    assert memory.chunk_bytes == SMALL_CHUNK_BYTES


@pytest.mark.parametrize("chunk_bytes", [1, 7, 100, 250, 251, 10_000])
def test_the_pieces_of_an_answer_are_the_answer(looped, client, chunk_bytes):
    make_topic(client, "t")
    records = batch(bytes(range(200)))
    produce(client, "t", 0, records)

    def pieces() -> list[bytes]:
        log = looped.state.logs.get("t", 0)
        shown = log.read(0, 1 << 20, copy_bytes=0).records[0]
        send = NetworkSend([b"head", shown, b"between", shown, b"tail"])
        found = []
        while not send.is_done:
            taken = send.take(chunk_bytes)
            assert sum(map(len, taken)) <= chunk_bytes + len(b"between")
            found += taken
        return found

    stored = looped.call(lambda: looped.state.logs.get("t", 0).read(0, 1 << 20).records[0])
    assert b"".join(looped.call(pieces)) == b"head" + stored + b"between" + stored + b"tail"
