"""The garbage collector of a process that is a broker: what outlives a full collection is not looked at again, and no
work of clients leaves a cycle behind, which only such a look would find."""

from __future__ import annotations

import asyncio
import gc
import socket
import subprocess
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from kafka_shim import garbage
from kafka_shim.clock import RealClock, VirtualClock
from kafka_shim.embedded import Broker
from kafka_shim.garbage import COLLECTS_IN_INCREMENTS, LOOK_EVERY_MS, THRESHOLDS, Collector
from kafka_shim.group.timers import Timers
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.tests.produced import batch, fetch_request, make_topic, produce
from kafka_shim.tests.security.sasl_client import (
    SCRAM_MODULE,
    listener_options,
    log_in_plain,
    log_in_scram,
    plain_jaas,
)
from kafka_shim.tests.security.test_tls import address, store_options, tls_connection
from kafka_shim.tests.share.share_member import ShareMember, open_share
from kafka_shim.tests.test_connection import until
from kafka_shim.wire_client import Connection, WireClientError

LISTENERS = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_SSL://127.0.0.1:0"


class Node:
    """A cycle of one object."""

    def __init__(self) -> None:
        self.itself: Node | None = self


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def collector(clock: VirtualClock) -> Iterator[Collector]:
    made = Collector(clock)
    made.start()
    yield made
    made.stop()


needs_generations = pytest.mark.skipif(COLLECTS_IN_INCREMENTS, reason="this CPython collects in increments of its own")


@needs_generations
@pytest.mark.parametrize("generation", [1, 2])
def test_what_outlives_a_collection_is_not_looked_at_again(collector: Collector, generation: int) -> None:
    living = [Node() for _ in range(100)]
    assert any(one is living for one in gc.get_objects())
    gc.collect(generation)
    assert not any(one is living for one in gc.get_objects())


@needs_generations
def test_a_young_cycle_goes_and_is_not_frozen(collector: Collector) -> None:
    dead = weakref.ref(Node())
    gc.collect()
    assert dead() is None


@needs_generations
def test_a_collection_of_the_young_freezes_nothing(collector: Collector) -> None:
    living = [Node()]
    gc.collect(0)
    assert any(one is living for one in gc.get_objects())


def test_a_dead_cycle_that_was_frozen_goes_when_very_many_are(
    collector: Collector, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    living: Node | None = Node()
    gc.freeze()
    dead = weakref.ref(living)
    living = None
    gc.collect()
    assert dead() is not None, "what is frozen is not looked at"
    clock.advance(LOOK_EVERY_MS)
    assert dead() is not None, "a few are not worth a look at all"
    monkeypatch.setattr(garbage, "LOOK_AFTER_OBJECTS", 1)
    clock.advance(LOOK_EVERY_MS - 1)
    assert dead() is not None
    clock.advance(1)
    assert dead() is None
    assert gc.get_freeze_count() > 0, "and the living are frozen again"


def test_it_leaves_the_collector_as_it_was(clock: VirtualClock) -> None:
    before = gc.get_threshold(), list(gc.callbacks), gc.get_freeze_count()
    made = Collector(clock)
    made.stop()
    made.start()
    if not COLLECTS_IN_INCREMENTS:
        assert gc.get_threshold() == THRESHOLDS
    assert gc.get_freeze_count() > before[2]
    made.stop()
    made.stop()
    assert (gc.get_threshold(), gc.callbacks) == before[:2]
    assert gc.get_freeze_count() == 0
    assert made._scheduler._tasks == {}


def test_a_broker_that_is_a_process_collects_so() -> None:
    program = (
        "import asyncio, gc, os, signal, sys\n"
        "from kafka_shim.serve import serve\n"
        "def told(server):\n"
        "    print(gc.get_threshold(), gc.get_freeze_count() > 10_000, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.exit(serve(listen='127.0.0.1:0', memory=True, log_level='ERROR', on_started=told))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    expected = gc.get_threshold() if COLLECTS_IN_INCREMENTS else THRESHOLDS
    assert f"{expected} True" in done.stdout


# --- no cycles


def left_by(broker: Broker, work: Callable[[], object]) -> Counter[str]:
    """The shim's objects that `work` leaves to the garbage collector, once the broker has no connection any more."""
    work()  # what is made once, and errors that are kept with their first frames
    until(broker, lambda: not broker._server._registry.connections)
    gc.collect()
    gc.disable()
    try:
        work()
        until(broker, lambda: not broker._server._registry.connections)
        broker.call(lambda: None)  # the turn in which the last was closed is over
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kinds = Counter(type(one).__name__ for one in gc.garbage if type(one).__module__.startswith("kafka_shim"))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    return kinds


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority()


@pytest.fixture(scope="module")
def secured(authority: CertificateAuthority) -> Iterator[Broker]:
    options = store_options(authority) | listener_options("SASL_PLAINTEXT", PLAIN=plain_jaas(alice="a"))
    options |= listener_options("SASL_SSL", SCRAM_SHA_256=f"{SCRAM_MODULE} required;")
    with Broker(listen=LISTENERS, **options) as broker:
        yield broker


def ask(connection: Connection) -> None:
    connection.request(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)


def test_plain_connections_leave_no_cycle(secured: Broker) -> None:
    def work() -> None:
        with Connection(address(secured, "PLAINTEXT")) as connection:
            ask(connection)

    assert left_by(secured, work) == {}


def test_logins_leave_no_cycle(secured: Broker) -> None:
    def work() -> None:
        for password in ("a", "wrong"):
            with Connection(address(secured, "SASL_PLAINTEXT")) as connection:
                told = log_in_plain(connection, "alice", password)
                assert bool(told.error_code) == (password == "wrong")
        with Connection(address(secured, "SASL_SSL")) as connection, pytest.raises(WireClientError):
            ask(connection)  # no TLS

    assert left_by(secured, work) == {}


def test_connections_by_tls_leave_no_cycle(secured: Broker, authority: CertificateAuthority) -> None:
    def work() -> None:
        with tls_connection(secured, authority) as connection:
            ask(connection)
        with tls_connection(secured, authority, "SASL_SSL") as connection:
            told = log_in_scram(connection, "SCRAM-SHA-256", "nobody", "x")
            assert told.error_code

    assert left_by(secured, work) == {}


def test_handshakes_that_fail_leave_no_cycle(secured: Broker) -> None:
    def work() -> None:
        host, _, port = address(secured, "SSL").rpartition(":")
        for hello in (b"\x16\x03\x01\x00\x05hello", b"\x16\x03\x01\x02\x00"):
            with socket.create_connection((host, int(port))) as stranger:
                stranger.sendall(hello)
                stranger.shutdown(socket.SHUT_WR)
                while stranger.recv(4096):
                    pass

    assert left_by(secured, work) == {}


def test_members_of_groups_leave_no_cycle(secured: Broker) -> None:
    names = iter(("first", "second"))

    def work() -> None:
        group_id = next(names)
        fields = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer"}
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"x")]
        with Connection(address(secured, "PLAINTEXT")) as connection:
            connection.request(FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id]), 4)
            member_id = ""
            while True:  # the group is loaded meanwhile
                request = JoinGroupRequest(group_id=group_id, member_id=member_id, protocols=protocols, **fields)
                told = connection.request(request, 5)
                member_id = told.member_id or member_id
                if not told.error_code:
                    break

    assert left_by(secured, work) == {}


def test_topics_and_fetch_sessions_leave_no_cycle() -> None:
    names = iter(("first", "second"))

    def work() -> None:
        name = next(names)
        with Connection(broker.bootstrap_servers) as connection:
            make_topic(connection, name, 2)
            assert produce(connection, name, 0, batch(b"x")).error_code == 0
            opened = connection.request(fetch_request({(name, 0): 0}, session_epoch=0), 12)
            assert opened.session_id
            closing = fetch_request({(name, 0): 0}, session_id=opened.session_id, session_epoch=-1)
            assert connection.request(closing, 12).error_code == 0
        broker.delete_topic(name)
        broker.clock.advance("1h")  # the files of deleted topics go later

    with Broker(clock="virtual") as broker:
        assert left_by(broker, work) == {}


def test_refused_records_leave_no_cycle(secured: Broker) -> None:
    def work() -> None:
        with Connection(address(secured, "PLAINTEXT")) as connection:
            assert produce(connection, "t", 0, b"no batch" * 20).error_code
            assert produce(connection, "t", 7, batch(b"x")).error_code

    with Connection(address(secured, "PLAINTEXT")) as connection:
        make_topic(connection, "t", 1)
    assert left_by(secured, work) == {}


@pytest.mark.parametrize("is_known", [True, False])
def test_share_sessions_leave_no_cycle(is_known: bool, caplog: pytest.LogCaptureFixture) -> None:
    groups = iter(("first", "second"))
    caplog.set_level("ERROR", "kafka_shim.share")  # a record of the log would keep its error

    def work() -> None:
        group_id = next(groups)
        if is_known:
            open_share(broker, group_id, topic_id)
        with ShareMember(broker, group_id, "m", topic_id) as member:
            (row,) = member.fetch().responses[0].partitions
            assert bool(row.acquired_records) == is_known
            assert bool(row.error_code) != is_known

    with Broker() as broker:
        with Connection(broker.bootstrap_servers) as connection:
            topic_id = make_topic(connection, "t", 1)
            assert produce(connection, "t", 0, batch(b"x")).error_code == 0
        assert left_by(broker, work) == {}


@pytest.mark.parametrize("clock_of", [VirtualClock, RealClock])
@pytest.mark.parametrize("is_cancelled", [False, True])
def test_timers_of_groups_leave_no_cycle(clock_of: Callable[[], VirtualClock | RealClock], is_cancelled: bool) -> None:
    async def inside() -> list[object]:
        called: list[object] = []
        due = asyncio.Event()

        def on_due(key: object) -> None:
            called.append(key)
            due.set()

        clock = clock_of()
        timers = Timers(clock, on_due)
        gc.collect()
        gc.disable()
        key = ("g", "session", "m")
        timers.schedule(key, 1)
        if is_cancelled:
            timers.cancel(key)
        else:
            if isinstance(clock, VirtualClock):
                clock.advance(1)
            await due.wait()
        await asyncio.sleep(0)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found = [one for one in gc.garbage if type(one).__module__.startswith("kafka_shim")]
        assert called == ([] if is_cancelled else [key])
        return found

    try:
        assert asyncio.run(inside()) == []
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
