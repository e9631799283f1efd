"""Connections that ask for more descriptors than there are: partitions keep theirs, the log says so in one line."""

from __future__ import annotations

import asyncio
import contextlib
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_shim.acceptor import OPENS_PER_TURN, REFUSAL_LOG_MS, AcceptedSocket, ConnectionBudget
from kafka_shim.clock import VirtualClock
from kafka_shim.embedded import Broker
from kafka_shim.metrics import Metrics
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.session import Listener
from kafka_shim.storage.open_files import SPARE, OpenFiles
from kafka_shim.tests import descriptors
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.produced import batch, fetch, make_topic, produce
from kafka_shim.tests.test_connection import until
from kafka_shim.wire_client import Connection

LIMIT = 256
PARTITIONS = 40


@contextlib.contextmanager
def limited(path: Path, limit: int) -> Iterator[tuple[str, Path]]:
    """A broker in a process that may have `limit` open files: (its address, its log)."""

    def lower() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit // 2, limit))

    log = path / "log"
    # A queue for all of the flood: a client that finds it full tries again after a second.
    queue = f"socket.listen.backlog.size={2 * LIMIT}"
    arguments = ["serve", "--listen", "127.0.0.1:0", "--data-dir", str(path / "data"), "-o", queue]
    with log.open("w") as stderr:
        child = subprocess.Popen(
            [sys.executable, "-m", "kafka_shim", *arguments],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            preexec_fn=lower,  # noqa: PLW1509
        )
        try:
            ready = re.match(r"ready PLAINTEXT://(\S+) ", child.stdout.readline())
            assert ready is not None, log.read_text()
            yield ready[1], log
            child.terminate()
            assert child.wait(60) == 0
        finally:
            child.kill()
            child.communicate()


def flood(address: str, count: int) -> list[socket.socket]:
    host, port = address.rsplit(":", 1)
    return [socket.create_connection((host, int(port)), timeout=60) for _ in range(count)]


def is_refused(sock: socket.socket) -> bool:
    """Whether the other side closed it; one that stays open says nothing."""
    sock.setblocking(False)
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_connections_without_end_take_nothing_from_partitions(tmp_path: Path) -> None:
    began_ms = time.monotonic() * 1000
    with limited(tmp_path, LIMIT) as (address, log), Connection(address, timeout_s=60) as client:
        make_topic(client, "t", PARTITIONS)
        for partition in range(PARTITIONS):
            assert produce(client, "t", partition, batch(b"a")).base_offset == 0
        crowd = flood(address, 2 * LIMIT)
        try:
            for partition in range(PARTITIONS):
                assert produce(client, "t", partition, batch(b"b")).base_offset == 1
                assert fetch(client, "t", partition, 0).high_watermark == 2
            make_topic(client, "u", PARTITIONS)
            for partition in range(PARTITIONS):
                assert produce(client, "u", partition, batch(b"a")).base_offset == 0
            refused = sum(map(is_refused, crowd))
        finally:
            for sock in crowd:
                sock.close()
        text = log.read_text()
        stated = re.search(r"the limit is (\d+), of which partitions may hold (\d+) and connections (\d+)", text)
        assert stated is not None
        limit, partitions, connections = map(int, stated.groups())
        assert limit == LIMIT, "the soft limit was raised to the hard one"
        assert partitions + connections < LIMIT
        assert refused >= 2 * LIMIT - connections
        lasted_ms = time.monotonic() * 1000 - began_ms
        assert 1 <= text.count(" refused ") <= 1 + lasted_ms / REFUSAL_LOG_MS
    assert "Too many open files" not in log.read_text()
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_limit_that_leaves_no_room_is_refused_in_one_line(tmp_path: Path) -> None:
    def lower() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))

    done = subprocess.run(
        [sys.executable, "-m", "kafka_shim", "serve", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=lower,
    )
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert "raise it (ulimit -n)" in line
    assert "Traceback" not in done.stderr


def test_room_that_others_took_is_not_given_to_connections() -> None:
    """The process holds descriptors that the broker does not know of: numbers are given out from below."""
    broker = SimpleNamespace(metrics=Metrics(), clock=VirtualClock())
    budget = ConnectionBudget(broker, OpenFiles(100), SimpleNamespace(connections=set()))
    assert budget.has_room(50)
    assert budget.has_room(budget.process_limit - 100 - SPARE)
    assert not budget.has_room(budget.process_limit - 100)
    budget.pending = budget.most_connections
    assert not budget.has_room(50)


def test_refusals_are_one_line_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    broker = SimpleNamespace(metrics=Metrics(), clock=VirtualClock())
    budget = ConnectionBudget(broker, OpenFiles(100), SimpleNamespace(connections=set()))
    listener = Listener("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT")
    for _ in range(5):
        budget.refused(listener)
    broker.clock.advance(REFUSAL_LOG_MS)
    # In a burst most of those that are open wait for a turn.
    budget.pending = 7
    budget.refused(listener)
    assert re.findall(r": (\d+) are open", caplog.text) == ["0", "7"]
    assert re.findall(r"refused (\d+ \w+) on PLAINTEXT://127.0.0.1:9092", caplog.text) == [
        "1 connection",
        "5 connections",
    ]
    assert broker.metrics.connections_refused == 6


def test_connection_that_the_last_descriptors_are_gone_for_is_refused_and_the_rest_goes_on(loop_factory) -> None:
    with (
        Broker(loop_factory=loop_factory, num_partitions=1) as broker,
        Connection(broker.bootstrap_servers, timeout_s=60) as client,
    ):
        make_topic(client, "t", 1)
        assert produce(client, "t", 0, batch(b"a")).base_offset == 0
        with descriptors.none_left(1):
            (sock,) = flood(broker.bootstrap_servers, 1)
            with sock:
                assert sock.recv(1) == b""
        assert produce(client, "t", 0, batch(b"a")).base_offset == 1
        with Connection(broker.bootstrap_servers, timeout_s=60) as another:
            assert fetch(another, "t", 0, 0).high_watermark == 2


def test_each_of_many_connections_without_a_descriptor_is_refused(loop_factory) -> None:
    """The spare descriptor is taken back after each: without it a client would wait for an answer in vain."""
    with Broker(loop_factory=loop_factory, num_partitions=1) as broker:
        with descriptors.none_left(1):
            for _ in range(3):
                (sock,) = flood(broker.bootstrap_servers, 1)
                sock.settimeout(60)
                with sock:
                    assert sock.recv(1) == b""
        assert broker.call(lambda: broker.state.metrics.connections_refused) == 3


def test_a_burst_leaves_the_kernels_queue_at_once_and_is_served_a_few_a_turn() -> None:
    """The queue holds `socket.listen.backlog.size`; what comes beyond it waits a second for its next try."""
    count = 9
    with Broker() as broker:
        acceptor = broker._server._socket_server._acceptors["PLAINTEXT"]
        host, _, port = broker.bootstrap_servers.rpartition(":")

        def burst() -> tuple[list[socket.socket], int, int, int]:
            clients = [socket.create_connection((host, int(port)), timeout=60) for _ in range(count)]
            acceptor._accept_some()
            return clients, len(acceptor._accepted), len(acceptor._opening), acceptor._budget.pending

        clients, queued, opening, pending = broker.call(burst)
        assert (queued, opening, pending) == (count - OPENS_PER_TURN, OPENS_PER_TURN, count)
        until(broker, lambda: len(broker._server._registry.connections) == count)
        assert broker.call(lambda: (len(acceptor._accepted), acceptor._will_open)) == (0, False)
        until(broker, lambda: acceptor._budget.pending == 0)
        for one in clients:
            one.close()


@pytest.mark.parametrize("failing", ["timer", "open"])
def test_a_listener_accepts_although_memory_ended_when_a_connection_was_to_wait(failing: str) -> None:
    with Broker() as broker, pytest.MonkeyPatch.context() as patch:
        acceptor = broker._server._socket_server._acceptors["PLAINTEXT"]
        host, _, port = broker.bootstrap_servers.rpartition(":")

        def refuse() -> socket.socket:
            client = socket.create_connection((host, int(port)), timeout=60)
            patch.setattr(type(acceptor._registry), "throttle_ms", lambda *_: 1)
            if failing == "timer":
                patch.setattr(type(acceptor._clock), "call_later", no_memory_left)
            else:
                patch.setattr(acceptor, "_open", no_memory_left)
            with contextlib.suppress(MemoryError):
                acceptor._accept_some()
                acceptor._serve_waiting()
            patch.undo()
            return client

        with broker.call(refuse) as client:
            assert client.recv(1) == b""
        with Connection(broker.bootstrap_servers, timeout_s=60) as another:
            assert another.ranges()
        until(broker, lambda: acceptor._budget.pending == 0)


def fails_once(function: Callable[..., Any], kept: list[Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        if kept:
            return function(*arguments, **named)
        kept.append(arguments)
        raise MemoryError

    return call


def fails_in_its_task(function: Callable[..., Any], kept: list[Any]) -> Callable[..., Any]:
    async def call(*arguments: Any) -> Any:
        return await fails_once(function, kept)(*arguments)

    return call


def fails_to_be_watched(function: Callable[..., Any], kept: list[Any]) -> Callable[..., Any]:
    watch = fails_once(asyncio.Task.add_done_callback, kept)
    task = type("Task", (asyncio.Task,), {"add_done_callback": watch})
    return lambda work: task(work, loop=asyncio.get_running_loop())


FAILING = [
    ("has_room", fails_once, 1),
    ("call_soon", fails_once, 0),
    ("connect_accepted_socket", fails_once, 1),
    ("connect_accepted_socket", fails_in_its_task, 1),
    ("create_task", fails_to_be_watched, 1),
]


@pytest.mark.parametrize(("name", "fails", "lost"), FAILING)
def test_of_clients_that_come_together_only_one_for_whom_memory_ends_is_closed(
    loop_factory: Any, name: str, fails: Callable[..., Any], lost: int
) -> None:
    """What keeps the frame of the error keeps its socket; no other event comes for those that were accepted."""
    count, kept = OPENS_PER_TURN + 1, list[Any]()
    with Broker(loop_factory=loop_factory) as broker:
        acceptor = broker._server._socket_server._acceptors["PLAINTEXT"]
        host, _, port = broker.bootstrap_servers.rpartition(":")

        def come() -> list[socket.socket]:
            clients = [socket.create_connection((host, int(port)), timeout=60) for _ in range(count)]
            loop = acceptor._loop
            with pytest.MonkeyPatch.context() as patch:
                ways = {one: getattr(loop, one) for one in ("call_soon", "create_task", "connect_accepted_socket")}
                patch.setattr(acceptor, "_loop", SimpleNamespace(**ways))
                patched = acceptor._budget if name == "has_room" else acceptor._loop
                patch.setattr(patched, name, fails(getattr(patched, name), kept))
                try:
                    acceptor._accept_some()
                except MemoryError as error:
                    kept.append(error)
            return clients

        clients = broker.call(come)
        for one in clients:
            one.sendall(encode_request_frame(ApiVersionsRequest(), 0, 1))
        assert sum(is_closed(one) for one in clients) == lost
        if fails is fails_in_its_task:
            clients.append(kept[0][1])
        for one in clients:
            one.close()
        until(broker, lambda: (acceptor._budget.pending, len(acceptor._opening)) == (0, 0))


def test_a_client_for_whose_socket_no_memory_is_left_is_closed_and_others_are_served(loop_factory: Any) -> None:
    with Broker(loop_factory=loop_factory) as broker:
        acceptor = broker._server._socket_server._acceptors["PLAINTEXT"]

        def come() -> socket.socket:
            (client,) = flood(broker.bootstrap_servers, 1)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("kafka_shim.acceptor.AcceptedSocket", no_memory_left)
                with pytest.raises(MemoryError):
                    acceptor._accept_some()
            return client

        with broker.call(come) as client:
            assert is_closed(client)
        with Connection(broker.bootstrap_servers, timeout_s=60) as another:
            assert another.ranges()


def test_family_and_type_of_an_accepted_socket_are_numbers() -> None:
    """An enum's member for each look-up was an eighth of what a connection cost."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        fd = socket.socket(listening.family, listening.type).detach()
        with AcceptedSocket(listening.family, listening.type, listening.proto, fileno=fd) as sock:
            assert (sock.family, sock.type, sock.fileno()) == (listening.family, listening.type, fd)
            assert type(sock.family) is type(sock.type) is int


def is_closed(client: socket.socket) -> bool:
    """Whether its connection is closed instead of answered."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_those_that_still_wait_are_closed_with_their_listener() -> None:
    with Broker() as broker:
        acceptor = broker._server._socket_server._acceptors["PLAINTEXT"]
        host, _, port = broker.bootstrap_servers.rpartition(":")

        def burst_and_close() -> tuple[list[socket.socket], int]:
            clients = [socket.create_connection((host, int(port)), timeout=60) for _ in range(2 * OPENS_PER_TURN)]
            acceptor._accept_some()
            acceptor.close()
            return clients, acceptor._budget.pending

        clients, pending = broker.call(burst_and_close)
        assert pending == OPENS_PER_TURN, "those that are opened"
        for one in clients[OPENS_PER_TURN:]:
            assert one.recv(1) == b""
            one.close()
        for one in clients[:OPENS_PER_TURN]:
            one.close()


def test_a_process_forked_meanwhile_neither_keeps_the_port_nor_listens_there() -> None:
    with Broker() as broker:
        port = broker.port
        inherited = broker._server._socket_server._acceptors["PLAINTEXT"]._socket.dup()
        broker.restart()
        assert broker.port == port
        inherited.close()
        inherited = broker._server._socket_server._acceptors["PLAINTEXT"]._socket.dup()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=60)
    inherited.close()
