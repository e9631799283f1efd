"""What a connection survives: bytes in any pieces, lying lengths, clients that stall, flood, or never read."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import select
import socket
import struct
import time
import warnings
from collections.abc import Iterator

import pytest

from kafka_shim import turns
from kafka_shim.cext.frame_base import PROBE_BYTES, WIDE_PROBE_BYTES
from kafka_shim.config import ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.login_turns import LoginTurns
from kafka_shim.memory_pool import LARGE_BYTES, ReceiveMemory
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.produced import batch, fetch_request, make_topic, produce, produce_request
from kafka_shim.tests.waiting import PATIENCE_S, until
from kafka_shim.wire_client import Connection, WireClientError

# Deadlines of the tests themselves: nothing in a passing run waits this long.


@contextlib.contextmanager
def raw(broker: Broker) -> Iterator[socket.socket]:
    host, port = broker.bootstrap_servers.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as opened:
        yield opened


def versions_frame(correlation_id: int = 1) -> bytes:
    return encode_request_frame(ApiVersionsRequest(), 0, correlation_id, "test")


def read_answer(sock: socket.socket) -> bytes:
    length = int.from_bytes(read_exactly(sock, 4))
    return read_exactly(sock, length)


def read_exactly(sock: socket.socket, size_bytes: int) -> bytes:
    found = b""
    while len(found) < size_bytes:
        piece = sock.recv(size_bytes - len(found))
        assert piece, "closed"
        found += piece
    return found


def is_closed(sock: socket.socket) -> bool:
    """Whether the other side closes (or has closed) without a word."""
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def memory_of(broker: Broker) -> ReceiveMemory:
    return broker.state.receive_memory


@pytest.fixture
def looped(loop_factory) -> Iterator[Broker]:
    """A broker on each event loop."""
    with Broker(num_partitions=1, loop_factory=loop_factory) as running:
        yield running


def test_a_request_may_arrive_byte_by_byte(looped):
    with raw(looped) as sock:
        for byte in versions_frame(77):
            sock.sendall(bytes([byte]))
        assert int.from_bytes(read_answer(sock)[:4]) == 77


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 13])
def test_a_request_may_arrive_in_two_pieces_behind_a_whole_one(looped, cut):
    with raw(looped) as sock:
        second = versions_frame(2)
        sock.sendall(versions_frame(1) + second[:cut])
        assert int.from_bytes(read_answer(sock)[:4]) == 1
        sock.sendall(second[cut:])
        assert int.from_bytes(read_answer(sock)[:4]) == 2


def test_many_requests_in_one_piece_are_answered_in_order(looped):
    count = 5000
    with raw(looped) as sock:
        sock.sendall(b"".join(versions_frame(number) for number in range(count)))
        assert [int.from_bytes(read_answer(sock)[:4]) for _ in range(count)] == list(range(count))


def deliver(connection, data: bytes) -> list[int]:
    """As the transport does, on the broker's loop, until the connection reads no more. Returns how much room there was
    for each read."""
    rooms = []
    while data and not connection._is_paused:
        buffer = connection.get_buffer(-1)
        rooms.append(len(buffer))
        piece, data = data[: len(buffer)], data[len(buffer) :]
        buffer[: len(piece)] = piece
        connection.buffer_updated(len(piece))
    return rooms


@pytest.mark.parametrize(
    ("count", "size_bytes"),
    [
        pytest.param(2000, 0, id="many in one read"),
        pytest.param(5, PROBE_BYTES // 4, id="a read that they fill"),
        pytest.param(2, 100_000, id="the next one begins where a larger one ends"),
    ],
)
def test_a_client_that_awaits_no_response_is_not_served_for_as_long_as_it_sends(looped, count, size_bytes):
    """One held the event loop for as long as all requests of up to 32 reads took, of 64 KB or 256 KB each."""
    with raw(looped) as sock:
        sock.sendall(versions_frame())
        read_answer(sock)
        (connection,) = looped.call(lambda: list(looped._server._registry.connections))
        requests = looped.state.metrics.requests
        frames = []
        for number in range(count):
            frame = versions_frame(number)
            # Nobody reads what is behind the last field.
            frame = frame.ljust(size_bytes, b"\0")
            frames.append((len(frame) - 4).to_bytes(4) + frame[4:])

        def served() -> tuple[int, bool]:
            before = requests[18]
            deliver(connection, b"".join(frames))
            return requests[18] - before, connection._is_paused

        most = min(count - 1, 32)
        assert looped.call(served) == (most, True)
        if not size_bytes:
            assert [int.from_bytes(read_answer(sock)[:4]) for _ in range(count)] == list(range(count))
        else:  # what did not come is no part of the test
            assert [int.from_bytes(read_answer(sock)[:4]) for _ in range(most)] == list(range(most))


def test_reads_that_each_end_in_a_length_are_not_served_one_after_the_other(looped):
    """Of 480 requests as large as these 32 reads with one byte of the next length each were served in one turn."""
    size_bytes, count = 4369, 15  # so many and a byte are a read
    frame = versions_frame().ljust(size_bytes, b"\0")
    frame = (size_bytes - 4).to_bytes(4) + frame[4:]
    with raw(looped) as sock:
        sock.sendall(versions_frame())
        read_answer(sock)
        (connection,) = looped.call(lambda: list(looped._server._registry.connections))
        requests = looped.state.metrics.requests

        def served() -> int:
            before = requests[18]
            deliver(connection, frame[:1])
            deliver(connection, frame[1:] + frame * (3 * count))
            return requests[18] - before

        assert looped.call(served) == count
        for _ in range(count):  # what did not come is no part of the test
            read_answer(sock)


def test_a_client_that_has_sent_many_requests_and_no_more_has_all_answers(looped):
    count = 5000
    with raw(looped) as sock:
        sock.sendall(b"".join(versions_frame(number) for number in range(count)))
        sock.shutdown(socket.SHUT_WR)
        assert [int.from_bytes(read_answer(sock)[:4]) for _ in range(count)] == list(range(count))
        assert is_closed(sock)


def test_requests_behind_one_that_waits_are_answered_after_it(looped):
    with Connection(looped.bootstrap_servers, timeout_s=PATIENCE_S) as client, raw(looped) as sock:
        make_topic(client, "t")
        waiting = encode_request_frame(fetch_request({("t", 0): 0}, max_wait_ms=60_000), 12, 1, "test")
        sock.sendall(waiting + versions_frame(2) + waiting[:7])
        until(looped, lambda: len(looped.state.parked))
        sock.sendall(waiting[7:])
        produce(client, "t", 0, batch(b"a"))
        assert [int.from_bytes(read_answer(sock)[:4]) for _ in range(3)] == [1, 2, 1]


def test_a_large_frame_that_arrives_while_a_request_waits_is_handled_after_it(looped):
    with contextlib.ExitStack() as stack:
        client, other = (
            stack.enter_context(Connection(looped.bootstrap_servers, timeout_s=PATIENCE_S)) for _ in range(2)
        )
        make_topic(client, "t")
        make_topic(client, "u")
        client.send(fetch_request({("t", 0): 0}, max_wait_ms=60_000), 12)
        until(looped, lambda: len(looped.state.parked))
        large = encode_request_frame(produce_request("u", 0, batch(bytes(700_000))), 9, 7, "test")
        client.send_bytes(large + versions_frame(8))
        assert produce(other, "u", 0, batch(b"before it")).base_offset == 0
        produce(other, "t", 0, batch(b"a"))
        assert client.receive(1, 12)[1].responses
        _, response = client.receive(0, 9)
        assert response.responses[0].partition_responses[0].base_offset == 1
        assert int.from_bytes(client.receive_frame()[:4]) == 8


@pytest.mark.parametrize("size_bytes", [PROBE_BYTES // 2, 100_000, LARGE_BYTES - 500, LARGE_BYTES + 1])
def test_no_frame_just_fills_its_buffer(looped, size_bytes):
    """Or else libuv reads again at once: a client that sends its next request as soon as it has its response was served
    sixteen times before the next client."""
    with Connection(looped.bootstrap_servers, timeout_s=PATIENCE_S) as client:
        make_topic(client, "t", max_message_bytes="20000000")
        frame = encode_request_frame(produce_request("t", 0, batch(bytes(size_bytes - 200))), 9, 1, "test")
        (connection,) = looped.call(lambda: list(looped._server._registry.connections))
        client.send_bytes(frame[:-1])
        until(looped, lambda: connection._frame is not None and connection._filled_bytes == len(frame) - 1)
        assert looped.call(lambda: len(connection.get_buffer(-1))) > 1
        client.send_bytes(frame[-1:])
        assert int.from_bytes(client.receive_frame()[:4]) == 1


@pytest.mark.parametrize(
    "size_bytes", [PROBE_BYTES - 200, PROBE_BYTES + 1, LARGE_BYTES - 500, LARGE_BYTES + 1, 9_000_000]
)
def test_frames_of_every_size_class_are_read_whole(looped, size_bytes):
    with Connection(looped.bootstrap_servers, timeout_s=PATIENCE_S) as client:
        make_topic(client, "t", max_message_bytes="20000000")
        records = batch(bytes(size_bytes - 200))
        for offset in range(3):
            assert produce(client, "t", 0, records).base_offset == offset
        # Two large frames and a small one at once.
        for correlation_id in (1, 2):
            client.send_bytes(encode_request_frame(produce_request("t", 0, records), 9, correlation_id, "test"))
        client.send_bytes(versions_frame(3))
        assert [int.from_bytes(client.receive_frame()[:4]) for _ in range(3)] == [1, 2, 3]


def test_a_client_of_larger_frames_is_read_with_more_of_the_probe(looped, monkeypatch):
    taken = []
    take = ReceiveMemory.take
    monkeypatch.setattr(
        ReceiveMemory, "take", lambda self, size_bytes: taken.append(size_bytes) or take(self, size_bytes)
    )

    with Connection(looped.bootstrap_servers, timeout_s=PATIENCE_S) as client:
        make_topic(client, "t")
        (connection,) = looped.call(lambda: list(looped._server._registry.connections))

        def read(size_bytes: int) -> list[int]:
            frame = encode_request_frame(produce_request("t", 0, batch(bytes(size_bytes - 200))), 9, 1, "test")
            taken.clear()
            rooms = looped.call(deliver, connection, frame)
            assert int.from_bytes(client.receive_frame()[:4]) == 1
            return rooms

        assert (read(100_000)[0], len(taken)) == (PROBE_BYTES, 1)
        assert (read(100_000), taken) == ([WIDE_PROBE_BYTES], [])
        assert (read(200_000), taken) == ([WIDE_PROBE_BYTES], [])
        assert (read(50_000), taken) == ([WIDE_PROBE_BYTES], [])
        assert (read(50_000), taken) == ([PROBE_BYTES], [])
        # Nor is one that sends more before it has its response.
        assert read(100_000)[0] == PROBE_BYTES
        assert read(50_000) == [WIDE_PROBE_BYTES]
        assert read(100_000)[0] == PROBE_BYTES
        two = versions_frame(1) + versions_frame(2)
        looped.call(deliver, connection, two)
        assert [int.from_bytes(client.receive_frame()[:4]) for _ in range(2)] == [1, 2]
        assert read(50_000) == [PROBE_BYTES]
        assert (read(300_000)[0], len(taken)) == (PROBE_BYTES, 1)
        assert (read(300_000)[0], len(taken)) == (PROBE_BYTES, 1)
        # What comes while a request waits is held, whatever came before.
        make_topic(client, "empty")
        assert read(100_000)[0] == PROBE_BYTES
        client.send(fetch_request({("empty", 0): 0}, max_wait_ms=60_000), 12)
        until(looped, lambda: len(looped.state.parked))
        assert looped.call(lambda: len(connection.get_buffer(-1))) == PROBE_BYTES


@pytest.mark.parametrize("length", [-1, -(2**31), 104857601, 2**31 - 1])
def test_a_length_that_cannot_be_closes_the_connection_with_one_line(looped, length, caplog):
    with raw(looped) as sock:
        sock.sendall(struct.pack(">i", length) + b"rest")
        assert is_closed(sock)
    until(looped, lambda: looped.state.metrics.frames_refused == 1)
    assert caplog.text.count("frame of") == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00",
        struct.pack(">hhi", 18, 0, 1),
        struct.pack(">hhih", 3, 9, 1, 100) + b"short",
        struct.pack(">hhih", 999, 0, 1, -1),
        struct.pack(">hhih", -1, 0, 1, -1),
        struct.pack(">hhih", 4, 0, 1, -1),
        struct.pack(">hhih", 0, 2, 1, -1) + bytes(20),
        struct.pack(">hhih", 1, 99, 1, -1) + bytes(20),
        struct.pack(">hhih", 22, 6, 1, -1) + bytes(40),
        struct.pack(">hhih", 3, 4, 1, -1) + struct.pack(">i", 2**31 - 1),
        struct.pack(">hhih", 3, 9, 1, -1) + b"\x00" + b"\x80\x80\x80\x80\x08" + bytes(8),
    ],
    ids=[
        "empty", "one byte", "cut header", "client id too long", "unknown key", "negative key", "removed key",
        "produce v2", "fetch v99", "unstable version", "lying count", "lying compact count",
    ],
)  # fmt: skip
def test_a_request_that_cannot_be_read_closes_its_connection_alone(looped, body, caplog):
    with raw(looped) as bystander, raw(looped) as sock:
        sock.sendall(struct.pack(">i", len(body)) + body)
        assert is_closed(sock)
        bystander.sendall(versions_frame(5))
        assert int.from_bytes(read_answer(bystander)[:4]) == 5
    assert caplog.text.count("closing") == 1
    assert "Traceback" not in caplog.text


def test_bytes_behind_the_last_field_are_left_alone(looped):
    """Kafka reads no further either, and librdkafka sends some in Metadata."""
    with raw(looped) as sock:
        frame = versions_frame(7) + b"behind the end"
        sock.sendall(struct.pack(">i", len(frame) - 4) + frame[4:])
        assert int.from_bytes(read_answer(sock)[:4]) == 7


def test_a_client_id_that_is_no_utf_8_is_no_reason_to_fail(looped):
    body = struct.pack(">hhih", 18, 0, 9, 3) + b"\xff\xfe\xfd"
    with raw(looped) as sock:
        sock.sendall(struct.pack(">i", len(body)) + body)
        assert read_answer(sock)[:6] == struct.pack(">ih", 9, 0)


def test_text_that_is_no_utf_8_is_read_as_kafka_reads_it(looped):
    names = (b"\xff\xfe", b"\xed\xa0\x80")
    topics = b"".join(len(name).to_bytes(2, "big") + name for name in names)
    body = struct.pack(">hhih", 3, 5, 7, -1) + struct.pack(">i", len(names)) + topics + b"\0"
    with raw(looped) as sock:
        sock.sendall(struct.pack(">i", len(body)) + body)
        answer = read_answer(sock)
        assert [name in answer for name in ("\0\6\ufffd\ufffd\0".encode(), "\0\3\ufffd\0".encode())] == [True, True]


def test_api_versions_of_the_future_is_answered_in_version_0(looped):
    body = struct.pack(">hhih", 18, 99, 9, -1) + b"\x00anything"
    with raw(looped) as sock:
        sock.sendall(struct.pack(">i", len(body)) + body)
        assert read_answer(sock) == struct.pack(">ihihhh", 9, 35, 1, 18, 0, 4)
        sock.sendall(versions_frame(2))
        assert int.from_bytes(read_answer(sock)[:4]) == 2


def test_half_a_frame_costs_what_arrived_and_nobody_else(looped):
    with contextlib.ExitStack() as stack:
        stalled = [stack.enter_context(raw(looped)) for _ in range(50)]
        for sock in stalled:
            sock.sendall(struct.pack(">i", 100_000_000) + b"\x00\x00")
        with raw(looped) as sock:
            sock.sendall(versions_frame(1))
            assert int.from_bytes(read_answer(sock)[:4]) == 1
        # Mapped, but never touched: the count is of address space.
        assert looped.call(lambda: memory_of(looped).used_bytes) <= 51 * LARGE_BYTES
    until(looped, lambda: memory_of(looped).used_bytes == 0)


def test_a_frame_that_is_not_handled_for_lack_of_memory_gives_its_buffer_back(looped, monkeypatch):
    """Where the error is no request's, but comes from what is before it."""

    def no_turn(turns: LoginTurns) -> bool:
        raise MemoryError

    with raw(looped) as sock:
        frame = versions_frame(1)
        sock.sendall(frame[:-1])
        until(looped, lambda: memory_of(looped).used_bytes)
        (connection,) = looped.call(lambda: list(looped._server._registry.connections))
        connection._must_log_in = True
        monkeypatch.setattr(LoginTurns, "take", no_turn)
        sock.sendall(frame[-1:])
        assert is_closed(sock)
    until(looped, lambda: memory_of(looped).used_bytes == 0)


def test_a_client_that_never_reads_is_not_read_from_either(looped):
    frame = encode_request_frame(MetadataRequest(topics=None), 12, 1, "test")
    with Connection(looped.bootstrap_servers, timeout_s=PATIENCE_S) as client:
        make_topic(client, "many", 500)
        with raw(looped) as sock:
            sock.settimeout(0.2)
            sent = 0
            with contextlib.suppress(TimeoutError):
                while sent < 200_000_000:
                    sent += sock.send(frame * 100)
            assert sent < 50_000_000
            assert produce(client, "many", 0, batch(b"a")).base_offset == 0


def test_a_client_that_reads_late_gets_every_answer(looped):
    count = 600
    with Connection(looped.bootstrap_servers, timeout_s=PATIENCE_S) as client:
        make_topic(client, "many", 100)
    with raw(looped) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        frames = b"".join(encode_request_frame(MetadataRequest(topics=None), 12, n, "t") for n in range(count))
        sent = 0
        sock.setblocking(False)
        received = bytearray()
        deadline = time.monotonic() + PATIENCE_S
        answers = []
        while len(answers) < count:
            assert time.monotonic() < deadline
            with contextlib.suppress(BlockingIOError):
                sent += sock.send(frames[sent : sent + 65536])
            with contextlib.suppress(BlockingIOError):
                received += sock.recv(1 << 20)
            while len(received) >= 4 and len(received) >= 4 + int.from_bytes(received[:4]):
                length = int.from_bytes(received[:4])
                answers.append(int.from_bytes(received[4:8]))
                del received[: 4 + length]
        assert answers == list(range(count))


def test_a_connection_cut_in_any_state_leaves_nothing_behind(looped):
    frame = encode_request_frame(MetadataRequest(topics=None), 12, 1, "test")
    for cut in (0, 2, 4, 9, len(frame)):
        with raw(looped) as sock:
            sock.sendall(frame[:cut])
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    until(looped, lambda: looped.state.metrics.connections_closed == 5)
    assert looped.call(lambda: memory_of(looped).used_bytes) == 0


def test_a_request_whose_client_is_found_gone_before_it_begins_to_wait_ends(looped, monkeypatch):
    """The answers before it cannot be written, so that its connection is lost on the turn on which its task begins: a
    task that was cancelled before that warned of a coroutine that was never awaited."""
    monkeypatch.setattr(turns, "SHARE_US", -1)
    topics = [MetadataRequestTopic(name=f"t{number}") for number in range(50)]
    waits = encode_request_frame(MetadataRequest(topics=topics), 9, 3, "test")
    with raw(looped) as sock, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        sock.sendall(versions_frame())
        read_answer(sock)

        def reset() -> None:  # on the broker's loop, which reads all of it at once, and the reset after it
            sock.sendall(versions_frame(1) + versions_frame(2) + waits)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()

        looped.call(reset)
        until(looped, lambda: looped.state.metrics.connections_closed == 1)
        until(looped, lambda: not looped.state.turns._under_way)
        gc.collect()
    assert [str(each.message) for each in seen] == []


class Crowd:
    """Clients of a broker with a topic `t`, whose requests arrive in one turn of its loop."""

    def __init__(self, broker: Broker, count: int, stack: contextlib.ExitStack) -> None:
        self.clients = [stack.enter_context(raw(broker)) for _ in range(count)]
        make_topic(stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S)), "t")
        registry = broker._server._registry
        until(broker, lambda: len(registry.connections) == count + 1)
        by_port = {one.session.peer_port: one for one in registry.connections}
        self.served = [by_port[client.getsockname()[1]] for client in self.clients]

    def feed(self, frames: list[bytes]) -> int:
        """Serves these bytes of each client. Returns how many have no answer yet. On the broker's loop."""
        for served, data in zip(self.served, frames, strict=True):
            if data:
                served.get_buffer(-1)[: len(data)] = data
                served.buffer_updated(len(data))
        return sum(map(bool, frames)) - len(select.select(self.clients, [], [], 0)[0])


def test_an_answer_that_is_held_for_others_leaves_before_its_connection_is_closed(looped):
    """By the broker, or because the client sends nothing more."""
    count = 10
    frame = encode_request_frame(produce_request("t", 0, batch(b"a")), 9, 7, "test")
    with contextlib.ExitStack() as stack:
        crowd = Crowd(looped, count, stack)
        clients, served = crowd.clients, crowd.served

        def fed() -> bool:  # one turn of the broker's loop
            held = crowd.feed([frame] * count) == count
            if held:
                served[0].close("tired")
                if not served[1].eof_received():  # as a transport does
                    served[1]._transport.close()
            return held

        for _ in range(1000):
            held = looped.call(fed)
            for client in clients:
                assert int.from_bytes(read_answer(client)[:4]) == 7
            if held:
                break
        else:
            pytest.fail("nothing was ever held")
        assert [is_closed(client) for client in clients[:2]] == [True, True]


def test_in_a_crowd_each_client_gets_its_answers_in_order(looped):
    """Some send several requests at once, of fast paths and of others."""
    count, seed = 24, random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    produce_one = produce_request("t", 0, batch(b"a"))
    kinds = [(produce_one, 9)] * 60 + [(ApiVersionsRequest(), 0), (MetadataRequest(topics=[]), 9)]
    with contextlib.ExitStack() as stack:
        crowd = Crowd(looped, count, stack)
        sent, held = [0] * count, 0
        for _ in range(1000):
            asked = [chance.choices(kinds, k=chance.choice([0, 1, 1, 2, 4])) for _ in range(count)]
            frames = [
                b"".join(
                    encode_request_frame(request, version, sent[number] + at, "test")
                    for at, (request, version) in enumerate(requests)
                )
                for number, requests in enumerate(asked)
            ]
            held += looped.call(crowd.feed, frames) > 0
            for number, requests in enumerate(asked):
                for _ in requests:
                    assert int.from_bytes(read_answer(crowd.clients[number])[:4]) == sent[number]
                    sent[number] += 1
            if held == 100:
                break
        assert held, "no answer was ever held"


@pytest.mark.option("max.connections")
def test_more_connections_than_allowed_wait_to_be_served():
    with Broker(max_connections=2) as broker, raw(broker) as first, raw(broker) as second:
        for sock in (first, second):
            sock.sendall(versions_frame())
            read_answer(sock)
        with raw(broker) as third:
            third.sendall(versions_frame())
            until(broker, lambda: broker._server._socket_server._acceptors["PLAINTEXT"]._waiting is not None)
            assert broker.call(lambda: len(broker._server._registry.connections)) == 2
            first.close()
            assert read_answer(third)


def test_connections_that_are_being_accepted_count_for_their_listener() -> None:
    with Broker(**{"listener.name.plaintext.max.connections": "2"}) as broker, raw(broker):
        registry, (listener,) = broker._server._registry, broker.state.listeners
        until(broker, lambda: len(registry.connections) == 1)
        assert broker.call(lambda: (registry.has_place(listener), registry.has_place(listener, 1))) == (True, False)


def test_a_listener_that_finds_no_memory_for_its_place_takes_none_from_others() -> None:
    """The others waited for good."""
    with Broker() as broker:
        registry, served = broker._server._registry, []

        def freed_twice() -> None:
            registry.call_when_freed(no_memory_left)
            registry.call_when_freed(lambda: served.append(1))
            with pytest.raises(MemoryError):
                registry.reconfigure()
            registry.reconfigure()

        broker.call(freed_twice)
        assert served == [1]


def test_memory_that_nobody_uses_is_not_full() -> None:
    assert not ReceiveMemory(1).is_full


@pytest.mark.option("max.connections.per.ip", "max.connections.per.ip.overrides")
@pytest.mark.parametrize("override", ["127.0.0.1:1", " 127.0.0.1 : 1 "])
def test_one_address_has_its_own_limit_and_exceptions_to_it(override):
    options = {"max_connections_per_ip": 0, "max_connections_per_ip_overrides": "192.0.2.1:1"}
    with Broker(**options) as broker, raw(broker) as sock:
        assert is_closed(sock)
    options["max_connections_per_ip_overrides"] = override
    with Broker(**options) as broker, raw(broker) as sock:
        sock.sendall(versions_frame())
        assert read_answer(sock)


@pytest.mark.option("max.connections.per.ip.overrides")
def test_an_exception_may_name_a_host_at_the_start_and_later(caplog):
    """As in Kafka the address of the host has the limit. A start stops for a name that has none, a change does not."""
    name, unknown = "max.connections.per.ip.overrides", f"{'x' * 64}.invalid"
    with Broker(max_connections_per_ip=0, **{name: "localhost:5"}) as broker:
        with Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as client:
            changes = [AlterableConfig(name=name, config_operation=0, value=f"127.0.0.2:5,localhost:7,{unknown}:9")]
            resource = AlterConfigsResource(resource_type=4, resource_name="", configs=changes)
            (changed,) = client.request(IncrementalAlterConfigsRequest(resources=[resource])).responses
            assert (changed.error_code, changed.error_message) == (0, None)
        registry = broker._server._registry
        until(broker, lambda: registry._overrides == {"127.0.0.2": 5, "127.0.0.1": 7, unknown: 9})
        until(broker, lambda: f"no address is known of {unknown}" in caplog.text)
    with pytest.raises(ConfigError, match="no address is known of x"), Broker(**{name: f"{unknown}:5"}):
        pass


@pytest.mark.parametrize("between", ["", "moved.test:9"])
def test_a_host_that_has_moved_is_found_when_its_exception_is_changed(monkeypatch, between):
    """As in Kafka. What it was when it was first named held for good, also after it was named no more."""
    addresses, resolve = ["127.0.0.2"], socket.getaddrinfo

    def resolve_moved(host, *args, **options):
        return resolve(addresses[-1] if host == "moved.test" else host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_moved)
    name = "max.connections.per.ip.overrides"
    with (
        Broker(loop_factory=asyncio.new_event_loop, **{name: "moved.test:1"}) as broker,
        Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as client,
    ):
        registry = broker._server._registry
        assert broker.call(lambda: registry._overrides) == {"127.0.0.2": 1}
        addresses.append("127.0.0.1")
        for text, found in ((between, {"127.0.0.1": 9} if between else {}), ("moved.test:1", {"127.0.0.1": 1})):
            change = AlterableConfig(name=name, config_operation=0, value=text)
            resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
            (changed,) = client.request(IncrementalAlterConfigsRequest(resources=[resource])).responses
            assert (changed.error_code, changed.error_message) == (0, None)
            until(broker, lambda found=found: registry._overrides == found)
        with raw(broker) as second:
            assert is_closed(second)


@pytest.mark.option("connections.max.idle.ms")
def test_an_idle_connection_is_closed_and_one_that_waits_is_not():
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker(connections_max_idle_ms=60_000, clock="virtual"))
        client = stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S))
        with raw(broker) as idle:
            make_topic(client, "t")
            client.send(fetch_request({("t", 0): 0}, max_wait_ms=200_000), 12)
            until(broker, lambda: len(broker.state.parked))
            broker.clock.advance("50s", silent=True)
            idle.sendall(versions_frame())
            read_answer(idle)
            broker.clock.advance("50s", silent=True)
            idle.sendall(versions_frame())
            read_answer(idle)
            broker.clock.advance("90s", silent=True)
            assert is_closed(idle)
            broker.clock.advance("60s", silent=True)
            assert client.receive(1, 12)


def test_the_idle_time_begins_with_the_answer_to_a_parked_request():
    """Else a client would lose its connection the moment a long fetch is answered."""
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker(connections_max_idle_ms=60_000, clock="virtual"))
        client = stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S))
        make_topic(client, "t")
        client.send(fetch_request({("t", 0): 0}, max_wait_ms=200_000), 12)
        until(broker, lambda: len(broker.state.parked))
        broker.clock.advance("200s", silent=True)
        assert client.receive(1, 12)
        broker.clock.advance("55s", silent=True)
        assert broker.call(lambda: broker.state.metrics.connections_closed) == 0
        broker.clock.advance("90s", silent=True)
        until(broker, lambda: broker.state.metrics.connections_closed == 1)


def test_an_idle_client_that_never_reads_is_let_go_with_its_answers():
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker(connections_max_idle_ms=60_000, clock="virtual"))
        client = stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S))
        make_topic(client, "many", 500)
        never_reads = stack.enter_context(raw(broker))
        frame = encode_request_frame(MetadataRequest(topics=None), 12, 1, "test")
        never_reads.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            while True:
                never_reads.send(frame * 100)
        assert broker.call(lambda: broker.state.metrics.connections_opened) == 2
        broker.clock.advance("90s", silent=True)
        until(broker, lambda: broker.state.metrics.connections_closed == 2)


@pytest.mark.option("queued.max.request.bytes")
def test_unfinished_requests_over_the_limit_wait_for_memory():
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker(queued_max_request_bytes=LARGE_BYTES, socket_request_max_bytes=LARGE_BYTES))
        with Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as client:
            make_topic(client, "t")
            frame = encode_request_frame(produce_request("t", 0, batch(bytes(200_000))), 9, 1, "test")
            with raw(broker) as first, raw(broker) as second:
                first.sendall(frame[:100_000])
                until(broker, lambda: memory_of(broker).used_bytes)
                second.sendall(frame[:100_000])
                until(broker, lambda: len(memory_of(broker).waiting))
                # A small request needs no memory of its own.
                assert produce(client, "t", 0, batch(b"a")).error_code == 0
                first.sendall(frame[100_000:])
                assert read_answer(first)
                second.sendall(frame[100_000:])
                assert read_answer(second)
            until(broker, lambda: memory_of(broker).used_bytes == 0)


def test_a_request_that_waited_for_memory_and_finds_none_ends_no_other(monkeypatch):
    """It hung for good, and the client whose request gave memory back had no answer."""
    with Broker(queued_max_request_bytes=LARGE_BYTES, socket_request_max_bytes=LARGE_BYTES) as broker:
        with Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as client:
            make_topic(client, "t")
        frame = encode_request_frame(produce_request("t", 0, batch(bytes(200_000))), 9, 1, "test")
        with raw(broker) as first, raw(broker) as second, raw(broker) as third:
            first.sendall(frame[:100_000])
            until(broker, lambda: memory_of(broker).used_bytes)
            for waiting, sock in enumerate((second, third), 1):
                sock.sendall(frame[:100_000])
                until(broker, lambda waiting=waiting: len(memory_of(broker).waiting) == waiting)
            take = ReceiveMemory.take

            def take_none_once(memory: ReceiveMemory, size_bytes: int) -> memoryview:
                monkeypatch.setattr(ReceiveMemory, "take", take)
                raise MemoryError

            monkeypatch.setattr(ReceiveMemory, "take", take_none_once)
            first.sendall(frame[100_000:])
            assert read_answer(first)
            assert is_closed(second)
            third.sendall(frame[100_000:])
            assert read_answer(third)
        until(broker, lambda: memory_of(broker).used_bytes == 0)


def test_a_refused_connection_raises_at_the_client():
    with Broker() as broker:
        address = broker.bootstrap_servers
    with pytest.raises(WireClientError):
        Connection(address)
