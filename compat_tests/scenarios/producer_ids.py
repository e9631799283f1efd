"""Rows A1-A10: producer ids and idempotence."""

from __future__ import annotations

from kafka_shim.cext.records import build
from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.scenario_client import NONE, Producer, ScenarioClient, name_of
from kafka_shim.targets import Power
from kafka_shim.targets.requests import make

OUT_OF_ORDER = "OUT_OF_ORDER_SEQUENCE_NUMBER"
# An id that no broker of a run hands out: whether a small one was seen depends on what ran before.
NEVER_GIVEN = 2**50


@scenario("A1")
def fresh_ids(t: ScenarioClient) -> None:
    """InitProducerId without transactional id gives a fresh id at epoch 0, whatever id, epoch and timeout say."""
    seen = set()
    for version in range(6):
        answer = t.init(None, version)
        t.error(answer, NONE)
        t.same(answer.producer_epoch, 0, "epoch")
        seen.add(answer.producer_id)
    answer = t.init(None, 5, producer_id=NEVER_GIVEN, producer_epoch=7)
    seen.add(answer.producer_id)
    t.same(answer.producer_epoch, 0, "epoch of a given one")
    t.error(t.init(None, 5, transaction_timeout_ms=-5), NONE)
    t.same(len(seen), 7, "number of different ids")


@scenario("A1")
def half_given_is_invalid(t: ScenarioClient) -> None:
    """Only one of id and epoch, or an empty transactional id, is INVALID_REQUEST."""
    t.error(t.init(None, 5, producer_id=4, producer_epoch=-1), "INVALID_REQUEST")
    t.error(t.init(None, 5, producer_id=-1, producer_epoch=3), "INVALID_REQUEST")
    fields = {"transactional_id": "", "transaction_timeout_ms": 60_000}
    t.error(t.ask("InitProducerId", 5, **fields), "INVALID_REQUEST")


@scenario("A1", needs=Power.KILL)
def a_restart_takes_a_new_block(t: ScenarioClient) -> None:
    """Ids come in blocks of 1000; none is handed out twice, also after a kill."""
    before = t.init(None).producer_id
    t.restart(kill=True)
    after = t.init(None).producer_id
    t.same((after // 1000) > (before // 1000), True, "a later block after the kill")
    t.restart()
    t.same(t.init(None).producer_id // 1000 > after // 1000, True, "a later block after a clean stop")


@scenario("A2", "A6")
def an_epoch_change_empties_the_cache(t: ScenarioClient) -> None:
    """State is per id and partition; a new epoch forgets the five batches of the old one."""
    topic = t.topic(partitions=2)
    p = Producer(t)
    p.send(topic, b"a")
    p.send(topic, b"b", partition=1)
    p.send(topic, b"c", partition=1)
    p.epoch += 1
    p.send(topic, b"d", sequence=0)
    p.send(topic, b"c", partition=1, sequence=0)
    p.epoch -= 1
    p.send(topic, b"a", sequence=0, expect="INVALID_PRODUCER_EPOCH")


@scenario("A2")
def a_marker_for_an_unknown_id_makes_an_entry(t: ScenarioClient) -> None:
    """WriteTxnMarkers for an id without state creates one with last sequence -1."""
    topic = t.topic()
    row = {"name": topic, "partition_indexes": [0]}
    marker = {"producer_id": 999_999_999, "producer_epoch": 3, "transaction_result": False, "topics": [row]}
    t.ask("WriteTxnMarkers", 1, markers=[{**marker, "coordinator_epoch": 0}])
    answer = t.ask("DescribeProducers", 0, topics=[row])
    producers = answer.topics[0].partitions[0].active_producers
    t.same([(p.producer_epoch, p.last_sequence) for p in producers], [(3, -1)], "producers")


@scenario("A3")
def the_sequence_wraps(t: ScenarioClient) -> None:
    """After 2147483647 comes 0."""
    topic = t.topic()
    p = Producer(t)
    p.send(topic, b"x", b"y", sequence=2_147_483_646)
    p.send(topic, b"z", sequence=0)
    p.send(topic, b"again", b"and", sequence=2_147_483_646)
    p.send(topic, b"next", sequence=1)


@scenario("A3")
def a_batch_across_the_wrap(t: ScenarioClient) -> None:
    """One batch may hold the sequences on both sides of the wrap."""
    topic = t.topic()
    p = Producer(t)
    p.send(topic, b"a", b"b", b"c", sequence=2_147_483_646)
    p.send(topic, b"d", sequence=1)
    p.send(topic, b"a", b"b", b"c", sequence=2_147_483_646)


@scenario("A4", "A5")
def five_batches_are_remembered(t: ScenarioClient) -> None:
    """Each of the last five is a duplicate with its original offset; the sixth back and overlaps are out of order."""
    topic = t.topic()
    p = Producer(t)
    for number in range(6):
        p.send(topic, b"%d" % number, b"%d'" % number, timestamp_ms=1_000_000_000_000 + number)
    for number in range(1, 6):
        answer = p.send(topic, b"other content", b"same sequences", sequence=2 * number)
        t.same(answer.base_offset, 2 * number, "original offset")
        t.same(answer.log_append_time_ms, 1_000_000_000_000 + number, "time of the cached batch")
    p.send(topic, b"0", b"0'", sequence=0, expect=OUT_OF_ORDER)
    p.send(topic, b"half", sequence=10, expect=OUT_OF_ORDER)
    p.send(topic, b"a", b"b", b"c", sequence=10, expect=OUT_OF_ORDER)
    t.same(t.end_offset(topic), 12, "log end")


@scenario("A5")
def gaps_and_steps_back_in_every_version(t: ScenarioClient) -> None:
    """A sequence that is neither next nor cached is out of order, in every Produce version."""
    topic = t.topic()
    p = Producer(t)
    p.send(topic, b"0")
    for version in range(3, 14):
        p.send(topic, b"gap", sequence=2, version=version, expect=OUT_OF_ORDER)
        p.send(topic, b"far", sequence=1000, version=version, expect=OUT_OF_ORDER)
    p.send(topic, b"1")


@scenario("A6")
def epochs_up_and_down(t: ScenarioClient) -> None:
    """A higher epoch starts at sequence 0; a lower one is INVALID_PRODUCER_EPOCH, also for a former duplicate."""
    topic = t.topic()
    p = Producer(t)
    p.send(topic, b"old")
    p.epoch = 5
    p.send(topic, b"new", sequence=1, expect=OUT_OF_ORDER)
    p.send(topic, b"new", sequence=0)
    p.epoch = 4
    for version in (3, 9, 11, 12, 13):
        p.send(topic, b"old", sequence=0, version=version, expect="INVALID_PRODUCER_EPOCH")
    p.epoch = 0
    p.send(topic, b"old", sequence=0, expect="INVALID_PRODUCER_EPOCH")


@scenario("A7")
def without_state_anything_goes(t: ScenarioClient) -> None:
    """With no state on the partition any first sequence and epoch is accepted, also for an id never issued."""
    topic = t.topic()
    p = Producer(t)
    p.epoch = 3
    p.send(topic, b"late start", sequence=17)
    p.id, p.epoch = 7_777_777_777, 9
    p.send(topic, b"never issued", sequence=5)


@scenario("A7", "B9")
def tv2_starts_at_zero(t: ScenarioClient) -> None:
    """A transactional Produce v12 with no cached batch starts at 0; the refused one has added the partition anyway."""
    topic = t.topic()
    p = Producer(t, "x")
    p.send(topic, b"late start", sequence=17, expect=OUT_OF_ORDER)
    answer = t.ask("DescribeTransactions", 0, transactional_ids=[p.transactional_id])
    t.same(answer.transaction_states[0].transaction_state, "Ongoing", "state")
    p.end(commit=False)


@scenario("A8")
def five_in_flight_retried_in_any_order(t: ScenarioClient) -> None:
    """Five requests that are all sent again, backwards, end up appended once and in order."""
    topic = t.topic()
    p = Producer(t)
    for number in range(5):
        p.send(topic, b"%d" % number)
    for number in reversed(range(5)):
        answer = p.send(topic, b"%d" % number, sequence=number)
        t.same(answer.base_offset, number, "offset")
    t.same(t.values(topic), [b"%d" % number for number in range(5)], "the log")


@scenario("A9", "D17", needs=Power.KILL)
def the_snapshot_knows_the_last_batch(t: ScenarioClient) -> None:
    """After a clean restart only the newest of the five is a duplicate, the others are out of order."""
    topic = t.topic()
    p = Producer(t)
    for number in range(5):
        p.send(topic, b"%d" % number)
    t.restart()
    t.wait(lambda: t.serves(topic, 0), "partition served")
    p.send(topic, b"3", sequence=3, expect=OUT_OF_ORDER)
    answer = p.send(topic, b"4", sequence=4)
    t.same(answer.base_offset, 4, "offset of the duplicate")
    p.send(topic, b"5")


@scenario("A9", needs=Power.KILL)
def what_is_cached_after_a_kill(t: ScenarioClient) -> None:
    """After a kill the newest batch is a duplicate; the four before it are where replay cached them (the shim), and out
    of order where recovery took a snapshot on its way (Kafka). None is appended again."""
    topic = t.topic()
    p = Producer(t)
    for number in range(5):
        p.send(topic, b"%d" % number)
    t.restart(kill=True)
    t.wait(lambda: t.serves(topic, 0), "partition served")
    for number in range(4):
        answer = p.send(topic, b"%d" % number, sequence=number, expect=None)
        found = name_of(answer.error_code), answer.base_offset
        t.same(found in ((NONE, number), (OUT_OF_ORDER, -1)), True, f"{found} for batch {number}")
    answer = p.send(topic, b"4", sequence=4)
    t.same(answer.base_offset, 4, "offset of the duplicate")
    p.send(topic, b"5")
    t.same(t.end_offset(topic), 6, "log end")


def lying_batches() -> dict[str, bytearray]:
    """Batches that a broker must refuse, by what is wrong with them."""
    rows = [(b"k", b"v%d" % number, 1_000_000_000_000, ()) for number in range(3)]
    made = {"crc": build(rows)}
    made["crc"][-1] ^= 1
    made["magic 1"] = build(rows)
    made["magic 1"][16] = 1
    made["count too high"] = _with(build(rows), 57, 4)
    made["count zero"] = _with(build(rows), 57, 0)
    made["last offset delta"] = _with(build(rows), 23, 7)
    made["control"] = build(rows, control=True)
    made["negative sequence with an id"] = build(rows, producer_id=5, producer_epoch=0, base_sequence=-1)
    made["two batches"] = build(rows) + build(rows)
    made["base offset 5"] = build(rows, base_offset=5)
    made["transactional without an id"] = build(
        rows, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True
    )
    made["empty"] = bytearray()
    return made


def _with(batch: bytearray, at: int, value: int) -> bytearray:
    """The batch with a four-byte field changed and its CRC right."""
    from kafka_shim.cext.crc32c import crc32c

    batch[at : at + 4] = value.to_bytes(4, "big")
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return batch


@scenario("A10")
def lies_are_refused_whole(t: ScenarioClient) -> None:
    """Each lie has its error, nothing of it is written, and the connection goes on."""
    topic = t.topic()
    for what, batch in lying_batches().items():
        for version in (3, 9, 12):
            answer = t.produce(topic, bytearray(batch), version=version)
            t.note(what, f"Produce v{version}", name_of(answer.error_code))
    t.produce(topic, [b"honest"])
    t.values(topic)


@scenario("A10")
def zstd_needs_version_seven(t: ScenarioClient) -> None:
    """zstd below Produce v7 is UNSUPPORTED_COMPRESSION_TYPE."""
    topic = t.topic()
    for version in (3, 6, 7, 13):
        answer = t.produce(topic, [b"z" * 50], version=version, codec=4)
        t.error(answer, NONE if version >= 7 else "UNSUPPORTED_COMPRESSION_TYPE")


@scenario("A10")
def limits_of_the_topic(t: ScenarioClient) -> None:
    """max.message.bytes, message.timestamp.* and the keys of compacted topics."""
    small = t.topic("small", max_message_bytes="200")
    t.error(t.produce(small, [b"x" * 300]), "MESSAGE_TOO_LARGE")
    t.error(t.produce(small, [b"x" * 100]), NONE)
    compact = t.topic("compact", cleanup_policy="compact")
    t.error(t.produce(compact, [b"no key"], key=None), "INVALID_RECORD")
    t.error(t.produce(compact, [b"key"]), NONE)
    early = t.topic("early", message_timestamp_before_max_ms="1000")
    for timestamp_ms in (1_000_000_000_000, -2):  # -1 is no time
        t.error(t.produce(early, [b"old"], timestamp_ms=timestamp_ms), "INVALID_TIMESTAMP")
    t.error(t.produce(early, [b"timeless"], timestamp_ms=-1), NONE)
    late = t.topic("late", message_timestamp_after_max_ms="1000")
    t.error(t.produce(late, [b"future"], timestamp_ms=9_000_000_000_000), "INVALID_TIMESTAMP")
    append = t.topic("append", message_timestamp_type="LogAppendTime")
    t.error(t.produce(append, [b"stamped"]), NONE)


@scenario("A10", "B10")
def plain_batch_of_an_id_in_a_transaction(t: ScenarioClient) -> None:
    """A non-transactional batch of an id with an open transaction is INVALID_TXN_STATE."""
    topic = t.topic()
    p = Producer(t, "x")
    p.send(topic, b"open")
    answer = t.produce(topic, [b"plain"], producer_id=p.id, producer_epoch=p.epoch, base_sequence=1)
    t.error(answer, "INVALID_TXN_STATE")
    p.end(commit=True)


@scenario("A10")
def two_producers_in_one_request(t: ScenarioClient) -> None:
    """More than one (id, epoch) among the transactional batches of a request is INVALID_PRODUCER_ID_MAPPING."""
    topic = t.topic(partitions=2)
    p = Producer(t, "x")
    rows = [(b"k", b"v", 1, ())]
    batches = [
        build(rows, producer_id=p.id, producer_epoch=epoch, base_sequence=0, transactional=True) for epoch in (0, 1)
    ]
    parts = [{"index": index, "records": bytes(batch)} for index, batch in enumerate(batches)]
    message = make(
        "Produce",
        acks=-1,
        timeout_ms=5000,
        transactional_id=p.transactional_id,
        topic_data=[{"name": topic, "partition_data": parts}],
    )
    answer = t.send(message, 12)
    errors = [name_of(part.error_code) for part in answer.responses[0].partition_responses]
    t.note("Produce v12", "two epochs in one request", errors)
    t.same(errors, ["INVALID_PRODUCER_ID_MAPPING"] * 2, "errors")
