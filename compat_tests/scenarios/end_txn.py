"""Rows B10-B13, B20, B23-B26: how transactions end, late requests, markers from outside, what is advertised."""

from __future__ import annotations

from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.scenario_client import NONE, Producer, ScenarioClient, name_of
from kafka_shim.compat.scenarios.transactions import FENCED, OLD_EPOCH, state_of
from kafka_shim.targets import Power

STATE = "INVALID_TXN_STATE"


@scenario("B10", "B24")
def a_classic_commit_takes_one_offset(t: ScenarioClient) -> None:
    """A TV1 marker is one control batch at the producer's own epoch, one offset in each partition."""
    topic = t.topic(partitions=2)
    p = Producer(t, "x")
    p.add(topic, 0, 1)
    p.send(topic, b"a", b"b", version=11)
    answer = p.end(commit=True, version=4)
    t.same((answer.producer_id, answer.producer_epoch), (-1, -1), "id and epoch of a TV1 answer")
    t.same([t.end_offset(topic, partition=index) for index in range(2)], [3, 1], "log ends")
    t.fetch(topic)
    t.fetch(topic, partition=1)


@scenario("B10")
def classic_retries(t: ScenarioClient) -> None:
    """TV1 when complete: the same direction is OK, the other INVALID_TXN_STATE; Empty refuses both."""
    topic = t.topic()
    for version in range(5):
        p = Producer(t, f"x{version}")
        p.end(commit=True, version=version, expect=STATE)
        p.end(commit=False, version=version, expect=STATE)
        for direction in (True, False):
            p.add(topic, version=3)
            p.end(commit=direction, version=version)
            p.end(commit=direction, version=version)
            p.end(commit=not direction, version=version, expect=STATE)


@scenario("B23")
def kip_890_retries_from_every_state(t: ScenarioClient) -> None:
    """EndTxn v5 in Empty, CompleteCommit and CompleteAbort, with the current epoch and as a retry."""
    topic = t.topic()
    p = Producer(t, "empty")
    p.end(commit=True, expect=STATE)
    before = p.epoch
    p.end(commit=False)
    t.same(p.epoch, before + 1, "epoch after an abort of nothing")
    for direction in (True, False):
        p = Producer(t, f"x-{direction}".lower())
        p.send(topic, b"data")
        old = p.epoch
        p.end(commit=direction, adopt=False)
        p.end(commit=direction, adopt=False)  # the retry
        p.end(commit=not direction, expect=STATE, adopt=False)
        p.epoch = old + 1
        p.end(commit=True, expect=STATE)
        p.end(commit=False)
        t.same(p.epoch, old + 2, "epoch")
        p.epoch = old
        p.end(commit=True, expect=FENCED)
        p.end(commit=False, expect=FENCED)


@scenario("B23")
def a_retry_in_empty_is_fenced(t: ScenarioClient) -> None:
    """In Empty an EndTxn v5 at the epoch before is PRODUCER_FENCED both ways."""
    p = Producer(t, "x")
    p = Producer(t, "x")
    p.epoch -= 1
    p.end(commit=True, expect=FENCED)
    p.end(commit=False, expect=FENCED)


@scenario("B24")
def markers_of_kip_890_carry_the_next_epoch(t: ScenarioClient) -> None:
    """Data at e, marker at e + 1; a TV2 transaction that is ended with v4 gets a TV1 answer without a bump."""
    topic = t.topic()
    p = Producer(t, "x")
    p.send(topic, b"one")
    p.end(commit=True)
    p.send(topic, b"two")
    answer = p.end(commit=False, version=4)
    t.same(answer.producer_epoch, -1, "epoch of a TV1 answer")
    t.fetch(topic)
    p.add(topic)
    p.end(commit=True, version=4)


@scenario("B11")
def markers_from_outside(t: ScenarioClient) -> None:
    """WriteTxnMarkers: epochs by transaction version, coordinator epochs, unknown partitions and ids."""
    topic = t.topic()
    p = Producer(t, "x")
    p.add(topic)
    p.send(topic, b"open", version=11)

    def mark(epoch: int, *, coordinator_epoch: int = 0, version: int = 1, topic: str = topic, **more: int) -> str:
        row = {
            "producer_id": p.id,
            "producer_epoch": epoch,
            "transaction_result": False,
            "coordinator_epoch": coordinator_epoch,
            "topics": [{"name": topic, "partition_indexes": [0]}],
            **more,
        }
        answer = t.ask("WriteTxnMarkers", version, markers=[row])
        return name_of(answer.markers[0].topics[0].partitions[0].error_code)

    t.same(mark(p.epoch, topic=t.name("absent")), "UNKNOWN_TOPIC_OR_PARTITION", "unknown partition")
    t.same(mark(p.epoch, version=2, transaction_version=2), OLD_EPOCH, "TV2 at the same epoch")
    t.same(mark(p.epoch), NONE, "TV1 at the same epoch")
    t.same(mark(p.epoch), NONE, "a repeat is appended again")
    t.same(mark(p.epoch, version=2, transaction_version=2), NONE, "TV2, equal, nothing open")
    t.same(mark(p.epoch + 1, version=2, transaction_version=2, coordinator_epoch=1), NONE, "TV2 above")
    t.same(mark(p.epoch, coordinator_epoch=1), OLD_EPOCH, "TV1 below")
    t.same(mark(p.epoch + 1, coordinator_epoch=0), "TRANSACTION_COORDINATOR_FENCED", "older coordinator")
    t.fetch(topic)


@scenario("B13", settings={"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}, needs=Power.SETTINGS)
def a_transaction_times_out(t: ScenarioClient) -> None:
    """After its time it is aborted at epoch + 1; a late TV2 producer is told, and recovers by InitProducerId."""
    topic = t.topic()
    p = Producer(t, "x", transaction_timeout_ms=2000)
    p.send(topic, b"late")
    t.wait(lambda: t.end_offset(topic, committed=True) == 2, "the abort marker")
    t.settle(p.transactional_id or "")
    t.same(state_of(t, p.transactional_id), "CompleteAbort", "state")
    p.send(topic, b"later", expect=OLD_EPOCH)
    p.end(commit=True, expect=STATE)
    answer = p.end(commit=False, adopt=False)
    t.same(answer.producer_epoch, p.epoch + 1, "the bumped epoch")
    back = t.init(p.transactional_id, 5, producer_id=p.id, producer_epoch=p.epoch)
    t.error(back, NONE, "recovery")
    t.same(t.values(topic, committed=True), [], "committed")


@scenario("B13", settings={"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}, needs=Power.SETTINGS)
def a_classic_transaction_times_out(t: ScenarioClient) -> None:
    """A TV1 client is aborted at the server's level, epoch + 1: EndTxn and AddPartitions are fenced by version."""
    topic = t.topic()
    # Its time begins with the partition, and the record has to come before it ends.
    p = Producer(t, "x", transaction_timeout_ms=10_000)
    p.add(topic)
    p.send(topic, b"late", version=11)
    t.wait(lambda: t.end_offset(topic, committed=True) == 2, "the abort marker")
    t.settle(p.transactional_id or "")
    for version in range(5):
        p.end(commit=True, version=version, expect=FENCED if version >= 2 else OLD_EPOCH)
    for version in range(4):
        p.add(topic, version=version, expect=FENCED if version >= 2 else OLD_EPOCH)


@scenario("B20", "D1")
def a_delayed_end_reaches_the_next_transaction(t: ScenarioClient) -> None:
    """EndTxn(n) arrives in n + 1: fenced at TV2 both ways; at TV1 it has the same epoch and ends it."""
    topic = t.topic()
    p = Producer(t, "new")
    old = p.epoch
    p.send(topic, b"n")
    p.end(commit=True)
    p.send(topic, b"n+1")
    current, p.epoch = p.epoch, old
    p.end(commit=True, expect=FENCED)
    p.end(commit=False, expect=FENCED)
    p.epoch = current
    t.same(state_of(t, p.transactional_id), "Ongoing", "state after the late ones")
    p.end(commit=False)
    t.same(t.values(topic, committed=True), [b"n"], "committed")
    q = Producer(t, "classic")
    for _ in range(2):
        q.add(topic)
        q.end(commit=True, version=4)
    q.add(topic)
    q.end(commit=True, version=4)
    t.same(state_of(t, q.transactional_id), "CompleteCommit", "the classic one is ended by it")


@scenario("B20", "D2")
def a_delayed_produce_after_the_end(t: ScenarioClient) -> None:
    """Produce of n after its end: TV2 INVALID_PRODUCER_EPOCH, also elsewhere; TV1 by version; nothing hangs."""
    topic = t.topic(partitions=2)
    p = Producer(t, "new")
    old = p.epoch
    p.send(topic, b"n")
    p.end(commit=False)
    current, p.epoch = p.epoch, old
    p.send(topic, b"late", sequence=1, expect=OLD_EPOCH)
    p.send(topic, b"late", sequence=0, partition=1, expect=OLD_EPOCH)
    p.epoch = current
    q = Producer(t, "classic")
    q.add(topic)
    q.send(topic, b"q", version=10)
    q.end(commit=False, version=4)
    q.send(topic, b"late", version=10, expect=STATE)
    q.send(topic, b"late", version=11, expect="TRANSACTION_ABORTABLE")
    for partition in range(2):
        ends = [t.end_offset(topic, partition=partition, committed=which) for which in (False, True)]
        t.same(ends[0], ends[1], "nothing is left open")


@scenario("B25")
def kip_939_is_not_there(t: ScenarioClient) -> None:
    """InitProducerId v6 is unstable: not advertised, and a request closes the connection."""
    answer = t.quietly("ApiVersions", 4, client_software_name="scenario", client_software_version="1")
    versions = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    t.same(versions[22], (0, 5), "advertised")
    t.closes("InitProducerId", 6, transactional_id=t.name("x"), transaction_timeout_ms=60_000, enable2_pc=True)


@scenario("B26")
def advertised_versions(t: ScenarioClient) -> None:
    """The ranges of every API that this project's rows name, and the finalised features."""
    answer = t.quietly("ApiVersions", 4, client_software_name="scenario", client_software_version="1")
    keys = (0, 1, 2, 8, 9, 10, 22, 24, 25, 26, 27, 28, 61, 65, 66)
    found = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys if row.api_key in keys}
    t.note("ApiVersions v4", "ranges", {str(key): list(found[key]) for key in keys})
    wanted = dict(
        zip(
            keys,
            [(0, 13), (4, 18), (1, 11), (2, 10), (1, 10), (0, 6), (0, 5), (0, 5), (0, 4), (0, 5), (1, 2)],
            strict=False,
        )
    )
    t.same({key: found[key] for key in wanted}, wanted, "ranges")
    features = {row.name: row.max_version_level for row in answer.finalized_features}
    t.same(
        {name: features.get(name) for name in ("transaction.version", "group.version")},
        {"transaction.version": 2, "group.version": 1},
        "features",
    )
    t.same(features.get("metadata.version"), 30, "metadata.version")
    t.same(answer.finalized_features_epoch >= 0, True, "a features epoch")


@scenario("B26")
def produce_below_three_is_refused(t: ScenarioClient) -> None:
    """Produce 0-2 is advertised for old librdkafka, and closes the connection."""
    t.note("Produce v2", "raw", "")
    from kafka_shim.wire_client import WireClientError

    t.connection.send_bytes(b"\x00\x00\x00\x0e\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00")
    try:
        t.connection.receive_frame()
    except WireClientError:
        t.close()
        t.note("Produce v2", "raw", "closed")
    else:
        t.same("an answer", "a closed connection", "Produce v2")
