"""Rows A1, A9, B6, B7, B9: at a limit, after a time, and between two steps."""

from __future__ import annotations

import os
import time

from kafka_shim.cext.records import build
from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.scenario_client import Parked, Producer, ScenarioClient, records_of
from kafka_shim.compat.scenarios.transactions import MAPPING, log_of_transactions, state_of
from kafka_shim.targets import Power
from kafka_shim.targets.requests import produce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

PRODUCER_ID_LIMIT = 2**63 - 1
LOADING, CONCURRENT, INVALID = "COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS", "INVALID_TXN_STATE"


def seed_next_producer_id(data_dir: Path, next_producer_id: int) -> None:
    """Appends a ProducerIdsRecord to the metadata log of a broker that has stopped."""
    from kafka_shim.cext.batch import scan
    from kafka_shim.protocol.record_frames import encode_metadata
    from kafka_shim.protocol.records.producer_ids_record import ProducerIdsRecord

    path = max((data_dir / "__cluster_metadata-0").glob("*.log"))
    raw = path.read_bytes()
    at, last = 0, None
    while at < len(raw):
        last = scan(raw, at)
        at = last.end_position
    assert last is not None
    record = ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=next_producer_id)
    row = (None, encode_metadata(record, 0), last.max_timestamp, ())
    batch = build([row], base_offset=last.last_offset + 1, leader_epoch=last.leader_epoch)
    with path.open("ab") as file:
        file.write(batch)
        os.fsync(file.fileno())


@scenario("A1", needs=Power.SEEDED | Power.KILL, is_smoke=False, spoils=True)
def producer_ids_run_out(t: ScenarioClient) -> None:
    """With no whole block left below 2^63 InitProducerId answers COORDINATOR_LOAD_IN_PROGRESS and never wraps; a
    transactional id that has its producer id goes on with it."""
    topic = t.topic()
    p = Producer(t, "x")
    t.close()
    t.target.stop()
    seed_next_producer_id(t.target.data_dir, PRODUCER_ID_LIMIT - 999)
    t.target.start()
    t.wait(lambda: t.serves(topic, 0), "partition served")
    again = t.init(p.transactional_id)
    t.same((again.producer_id, again.producer_epoch), (p.id, p.epoch + 1), "the one that has an id")
    for transactional_id in (None, t.name("new")):
        for _ in range(5):
            answer = t.quietly("InitProducerId", 5, transactional_id=transactional_id, transaction_timeout_ms=60_000)
            t.error(answer, LOADING)
            t.same(answer.producer_id, -1, "producer id")
    t.note("InitProducerId v5", "no block left", LOADING)
    p.epoch += 1
    p.send(topic, b"goes on")
    p.end(commit=True)


def producers_of(t: ScenarioClient, topic: str) -> list[int]:
    """Producer ids that a partition knows."""
    row = {"name": topic, "partition_indexes": [0]}
    answer = t.quietly("DescribeProducers", 0, topics=[row])
    return sorted(each.producer_id for each in answer.topics[0].partitions[0].active_producers)


@scenario(
    "A9",
    needs=Power.SETTINGS,
    settings={"producer.id.expiration.ms": "1000", "producer.id.expiration.check.interval.ms": "100"},
)
def producers_expire(t: ScenarioClient) -> None:
    """A producer whose last record is older than producer.id.expiration.ms is forgotten at the next check, and any
    sequence is right again; one with an open transaction is kept until its marker is as old."""
    topic = t.topic()
    old, opened = Producer(t), Producer(t, "opened")
    recent = Producer(t)
    opened.send(topic, b"open")
    old.send(topic, b"an hour ago")
    recent.send(topic, b"later", timestamp_ms=time.time_ns() // 1_000_000 + 600_000)
    kept = sorted([opened.id, recent.id])
    t.wait(lambda: producers_of(t, topic) == kept, "the old one's end")
    old.send(topic, b"any sequence", sequence=40, version=11)
    t.wait(lambda: producers_of(t, topic) == kept, "its end once more")
    opened.send(topic, b"still open", version=12)
    opened.end(commit=True)
    t.wait(lambda: producers_of(t, topic) == [recent.id], "the end of the marker's time")
    recent.send(topic, b"is known", sequence=2, version=11, expect="OUT_OF_ORDER_SEQUENCE_NUMBER")
    recent.send(topic, b"later", sequence=0)


@scenario(
    "B7",
    needs=Power.SETTINGS,
    settings={
        "transactional.id.expiration.ms": "5000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
    },
)
def transactional_ids_expire(t: ScenarioClient) -> None:
    """Unused for transactional.id.expiration.ms an id in Empty, CompleteCommit or CompleteAbort is forgotten, and a
    tombstone says so; one in Ongoing stays. What comes back gets a new producer id."""
    topic = t.topic()
    opened = Producer(t, "opened")
    opened.send(topic, b"open")
    committed = Producer(t, "committed")
    committed.send(topic, b"committed")
    committed.end(commit=True)
    aborted = Producer(t, "aborted")
    aborted.send(topic, b"aborted")
    aborted.end(commit=False)
    empty = Producer(t, "empty")
    ids = [each.transactional_id for each in (empty, committed, aborted)]

    def are_gone() -> bool:
        answer = t.quietly("DescribeTransactions", 0, transactional_ids=ids)
        return all(row.error_code for row in answer.transaction_states)

    t.wait(are_gone, "their end")
    answer = t.ask("DescribeTransactions", 0, transactional_ids=ids)
    t.same({row.error_code for row in answer.transaction_states}, {105}, "TRANSACTIONAL_ID_NOT_FOUND")
    t.same(state_of(t, opened.transactional_id), "Ongoing", "the open one")
    for each in (empty, committed, aborted):
        last = log_of_transactions(t, each.transactional_id)[-1]
        t.same(last, None, f"the last record of {t.plain(each.transactional_id)}")
        each.end(commit=True, expect=MAPPING)
    back = Producer(t, "committed")
    t.same((back.id != committed.id, back.epoch), (True, 0), "a new producer id")
    opened.end(commit=True)
    t.same(t.values(topic, committed=True), [b"open", b"committed"], "committed")


def strand(t: ScenarioClient, p: Producer, topic: str, version: int = 5) -> None:
    """Ends a transaction so that it stays in PrepareCommit: a marker from outside with a higher coordinator epoch is
    there already (B11)."""
    row = {"name": topic, "partition_indexes": [0]}
    marker = {"producer_id": p.id, "producer_epoch": p.epoch, "transaction_result": False, "topics": [row]}
    t.ask("WriteTxnMarkers", 1, markers=[{**marker, "coordinator_epoch": 1000}])
    p.end(commit=True, version=version, settle=False, adopt=False)
    t.same(state_of(t, p.transactional_id), "PrepareCommit", "state")


@scenario("B6", "B10", "B8", needs=Power.KILL, is_smoke=False, spoils=True)
def no_way_out_of_prepare_but_its_own(t: ScenarioClient) -> None:
    """While the markers of PrepareCommit are under way either end, more partitions or offsets, and InitProducerId are
    CONCURRENT_TRANSACTIONS: it leaves for CompleteCommit alone."""
    for name, version in (("classic", 4), ("newer", 5)):
        topic, other = t.topic(f"{name}-a"), t.topic(f"{name}-b")
        p = Producer(t, name)
        p.add(topic)
        p.send(topic, b"data", version=11)
        strand(t, p, topic, version)
        p.end(commit=True, version=version, expect=CONCURRENT, adopt=False)
        p.end(commit=False, version=version, expect=CONCURRENT, adopt=False)
        p.add(other, expect=CONCURRENT)
        fields = {**p.who, "group_id": t.name("g")}
        t.same(t.ask("AddOffsetsToTxn", 4, **fields).error_code, 51, "AddOffsetsToTxn")
        answer = t.ask("InitProducerId", 5, transactional_id=p.transactional_id, transaction_timeout_ms=60_000)
        t.error(answer, CONCURRENT)
        t.same(state_of(t, p.transactional_id), "PrepareCommit", "state")


@scenario("B6", "B10", "B23")
def moves_that_no_state_allows(t: ScenarioClient) -> None:
    """By EndTxn v4: no end from Empty, none in the other direction from Complete*, and the state stays."""
    topic = t.topic()
    p = Producer(t, "x")
    for commit in (True, False):
        p.end(commit=commit, version=4, expect=INVALID)
    t.same(state_of(t, p.transactional_id), "Empty", "state")
    for direction, wanted in ((True, "CompleteCommit"), (False, "CompleteAbort")):
        p.add(topic)
        p.send(topic, b"data", version=11)
        p.end(commit=direction, version=4)
        p.end(commit=not direction, version=4, expect=INVALID)
        p.end(commit=direction, version=4)
        t.same(state_of(t, p.transactional_id), wanted, "state")
    t.same(t.end_offset(topic), 4, "one marker for each")


@scenario(
    "B9",
    needs=Power.SETTINGS | Power.KILL,
    settings={"add.partitions.to.txn.retry.backoff.max.ms": "1500"},
    is_smoke=False,
    spoils=True,
)
def a_produce_tries_again_while_the_end_is_under_way(t: ScenarioClient) -> None:
    """While the transaction before is being ended a Produce v12 is tried again inside the broker, for as long as
    add.partitions.to.txn.retry.backoff.max.ms says, and v11 is refused at once as NOT_ENOUGH_REPLICAS."""
    topic, other = t.topic(), t.topic("other")
    p = Producer(t, "x")
    p.send(topic, b"data")
    strand(t, p, topic)
    p.epoch += 1  # as the end answered
    p.send(other, b"classic", version=11, expect="NOT_ENOUGH_REPLICAS")
    rows = [(b"k", b"later", t.epoch_ms, ())]
    batch = build(rows, producer_id=p.id, producer_epoch=p.epoch, base_sequence=0, transactional=True)
    request = produce(other, 0, bytes(batch), transactional_id=p.transactional_id)
    began = time.monotonic()
    tried = t.park(request, 12)
    t.same(tried.is_waiting, True, "it is tried again")
    answer = tried.receive()
    part = answer.responses[0].partition_responses[0]
    t.error(part, CONCURRENT)
    t.same(1.3 < time.monotonic() - began < 15, True, "for as long as the option says")
    t.note("Produce v12", "parked", t.plain(part))


def _held_before_its_append(t: ScenarioClient, topic: str, value: bytes) -> tuple[Producer, Parked]:
    """A producer of a classic transaction whose first batch is verified, and held."""
    environment = t.target.environment  # type: ignore[attr-defined]
    environment["KAFKA_SHIM_FAULTS"] = "produce.verified=hold:1500@1"
    t.restart()
    environment.pop("KAFKA_SHIM_FAULTS")
    p = Producer(t, "x")
    p.add(topic)
    rows = [(b"k", value, t.epoch_ms, ())]
    batch = build(rows, producer_id=p.id, producer_epoch=p.epoch, base_sequence=0, transactional=True)
    held = t.park(produce(topic, 0, bytes(batch), transactional_id=p.transactional_id), 11)
    t.same(held.is_waiting, True, "it is held")
    return p, held


@scenario(
    "B9",
    needs=Power.INSIDE | Power.KILL,
    unobservable="Kafka cannot be held between a partition's verification and its append",
)
def a_marker_between_verification_and_append(t: ScenarioClient) -> None:
    """A batch that was verified, and held until the marker of its transaction was written, is INVALID_TXN_STATE: the
    marker has dropped its guard, and nothing of it stays behind."""
    topic = t.topic()
    p, held = _held_before_its_append(t, topic, b"held")
    p.end(commit=False, version=4)
    part = held.receive().responses[0].partition_responses[0]
    t.error(part, INVALID)
    t.same(t.end_offset(topic), 1, "the marker alone")
    t.same(t.end_offset(topic, committed=True), 1, "nothing is open")
    found = [record.offset for record, _ in records_of(t.fetch(topic).records or b"")]
    t.same(found, [0], "the log")
    p.add(topic)
    p.send(topic, b"next", version=11, sequence=0)
    p.end(commit=True, version=4)


@scenario(
    "B9",
    "A8",
    needs=Power.INSIDE | Power.KILL,
    unobservable="Kafka cannot be held between a partition's verification and its append",
)
def a_later_batch_does_not_overtake_the_first(t: ScenarioClient) -> None:
    """While the first batch of a transaction is verified and not appended, a later one is out of order: the guard knows
    the lowest sequence. Sent again behind it, it is right."""
    topic = t.topic()
    p, held = _held_before_its_append(t, topic, b"first")
    p.send(topic, b"second", version=11, sequence=1, expect="OUT_OF_ORDER_SEQUENCE_NUMBER")
    t.error(held.receive().responses[0].partition_responses[0], "NONE")
    p.send(topic, b"second", version=11, sequence=1)
    p.end(commit=True, version=4)
    t.same(t.values(topic, committed=True), [b"first", b"second"], "committed")
