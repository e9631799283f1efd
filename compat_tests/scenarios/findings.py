"""Rows D3-D18: published findings about systems like Kafka, each as a scenario. D1, D2, D5, D6, D14 and D17
are proved by scenarios of the rows that they come from.
"""

from __future__ import annotations

import struct
import threading

from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.reading import offset_at, offsets_in
from kafka_shim.compat.scenarios.scenario_client import NONE, Producer, ScenarioClient, name_of, records_of
from kafka_shim.compat.scenarios.transactions import state_of
from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.targets import Power
from kafka_shim.targets.requests import make, produce
from kafka_shim.wire_client import Connection, WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@scenario("D3")
def every_acknowledgement_names_its_true_offset(t: ScenarioClient) -> None:
    """Eight connections write at once, each five requests in flight: every ack's offset holds exactly that record."""
    topic = t.topic()
    acknowledged: dict[int, bytes] = {}
    failed: list[str] = []

    def write(number: int) -> None:
        with Connection(t.target.bootstrap, client_id=f"writer-{number}") as connection:
            for first in range(0, 20, 5):
                values = [b"%d-%d" % (number, first + at) for at in range(5)]
                for value in values:
                    connection.send(produce(topic, 0, [(b"k", value)]), 9)
                for value in values:
                    part = connection.receive(0, 9)[1].responses[0].partition_responses[0]
                    if part.error_code or part.base_offset in acknowledged:
                        failed.append(f"{value!r} at {part.base_offset}: {name_of(part.error_code)}")
                    acknowledged[part.base_offset] = value

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    t.same(failed, [], "offsets that were acknowledged twice, and errors")
    t.same(sorted(acknowledged), list(range(160)), "offsets")
    answer = t.send(_whole(topic), 12).responses[0].partitions[0]
    found = {record.offset: bytes(record.value) for record, _ in records_of(answer.records)}
    t.same(found == acknowledged, True, "every record is where its ack says")
    t.note("eight writers", "160 records", sorted(value.decode() for value in found.values()))


def _whole(topic: str) -> Any:
    from kafka_shim.targets.requests import fetch

    return fetch(topic, 0, 0, max_bytes=1 << 24)


@scenario("D7", "B14")
def aborted_data_stays_hidden_under_every_codec(t: ScenarioClient) -> None:
    """Each codec, committed and aborted: only what was committed is shown."""
    topic = t.topic()
    for name, codec in CODECS.items():
        p = Producer(t, name)
        for commit in (False, True):
            values = [f"{name} {commit} {number}".encode() * 20 for number in range(3)]
            p.send(topic, *values, codec=codec)
            p.end(commit=commit)
    shown = t.values(topic, committed=True)
    t.same(sorted({value.split()[1] for value in shown}), [b"True"], "what is shown was committed")
    t.same(len(shown), 12, "number of records")


@scenario("D8", "B10")
def a_rollback_takes_one_offset(t: ScenarioClient) -> None:
    """After an abort the log's end is one further, and a committed offset is where it was."""
    topic, group = t.topic(), t.name("g")
    t.wait(lambda: not t.quietly("FindCoordinator", 3, key=group, key_type=0).error_code, "group coordinator")
    p = Producer(t, "x")
    p.send(topic, b"1", b"2", b"3")
    row = {"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 3}]}
    for commit in (True, False):
        answer = t.ask("TxnOffsetCommit", 5, **p.who, group_id=group, generation_id=-1, member_id="", topics=[row])
        t.error(answer.topics[0].partitions[0], NONE)
        before = t.end_offset(topic)
        p.end(commit=commit)
        t.same(t.end_offset(topic), before + (1 if commit else 0), "a marker only where there is data")
        row["partitions"][0]["committed_offset"] = 9  # type: ignore[index]
    p.send(topic, b"4")
    p.end(commit=False)
    t.same(t.end_offset(topic), 6, "data, marker, data, marker")
    t.same(t.end_offset(topic, committed=True), 6, "last stable offset")
    t.same(_stable_offset(t, group, topic), 3, "committed offset")


def _stable_offset(t: ScenarioClient, group: str, topic: str) -> int:
    """The group's committed offset of partition 0, once no transaction has one of it pending."""
    asked = {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}
    answer = t.ask_until(
        lambda found: not found.groups[0].topics[0].partitions[0].error_code,
        "OffsetFetch",
        9,
        require_stable=True,
        groups=[asked],
    )
    return int(answer.groups[0].topics[0].partitions[0].committed_offset)


@scenario("D9")
def every_offset_inside_a_batch_can_be_fetched(t: ScenarioClient) -> None:
    """A fetch from the middle of a batch answers the whole batch; a client that skips misses and repeats nothing."""
    topic = t.topic()
    for codec in (0, 1):
        t.produce(topic, [b"%d" % number for number in range(5)], codec=codec)
    for offset in range(10):
        answer = t.fetch(topic, offset)
        first = offset // 5 * 5
        t.same(offsets_in(answer), list(range(first, 10)), f"from {offset}")


@scenario("D11", "B12")
def an_end_whose_answer_is_lost(t: ScenarioClient) -> None:
    """EndTxn was done, its answer did not arrive: the retry is OK, the other direction is refused, nobody rewinds."""
    topic, group = t.topic(), t.name("g")
    t.wait(lambda: not t.quietly("FindCoordinator", 3, key=group, key_type=0).error_code, "group coordinator")
    p = Producer(t, "x")
    p.send(topic, b"data")
    row = {"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}
    t.ask("TxnOffsetCommit", 5, **p.who, group_id=group, generation_id=-1, member_id="", topics=[row])
    with Connection(t.target.bootstrap) as lost:
        lost.send(make("EndTxn", committed=True, **p.who), 5)
        lost.receive_frame()
    t.note("EndTxn v5", "commit", "the answer is lost")
    t.settle(p.transactional_id or "")
    p.end(commit=False, expect="INVALID_TXN_STATE")
    p.end(commit=True, adopt=False)
    t.same(t.values(topic, committed=True), [b"data"], "committed")
    t.same(_stable_offset(t, group, topic), 1, "committed offset")
    fresh = Producer(t, "x")
    t.same(fresh.epoch, p.epoch + 2, "a new instance")
    t.same(t.values(topic, committed=True), [b"data"], "committed, still")


@scenario("D13")
def hostile_bytes(t: ScenarioClient) -> None:
    """Cut-off bodies, absurd lengths and counts, unknown APIs: the connection closes or the request fails, and the
    broker serves the next.
    """
    answer = t.quietly("ApiVersions", 3, client_software_name="scenario", client_software_version="1")
    ranges = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    for key, (low, high) in sorted(ranges.items()):
        name = API_KEYS[key][0]
        for version in sorted({max(low, API_KEYS[key][1]), high}):
            head = struct.pack(">hhih", key, version, 1, len("hostile")) + b"hostile"
            t.same(t.raw(f"{name} v{version}, no body", head) in ("answered", "closed the connection"), True, name)
            t.raw(f"{name} v{version}, absurd", head + b"\x7f\xff\xff\xff" * 8)
    t.raw("an unknown API", b"\x03\xe7\x00\x00\x00\x00\x00\x01\xff\xff")
    t.raw("a negative API", b"\xff\xff\x00\x00\x00\x00\x00\x01\xff\xff")
    t.raw("half a header", b"\x00\x12")
    for length in (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x00"):
        try:
            t.connection.send_bytes(length)
            t.connection.receive_frame()
        except WireClientError:
            t.note("a length", length.hex(), "closed the connection")
        t.close()
    named = {"client_software_name": "scenario", "client_software_version": "1"}
    t.error(t.quietly("ApiVersions", 3, **named), NONE, "the broker still serves")


@scenario("D15", "C6")
def metadata_of_commits_comes_back(t: ScenarioClient) -> None:
    """Commit metadata round trip: empty, null, unicode, at and over the limit."""
    topic, group = t.topic(partitions=5), t.name("g")
    t.wait(lambda: not t.quietly("FindCoordinator", 3, key=group, key_type=0).error_code, "group coordinator")
    given: list[str | None] = ["", None, "größe ☃", "x" * 4096, "x" * 4097]
    rows = [
        {"partition_index": at, "committed_offset": at, "committed_metadata": text} for at, text in enumerate(given)
    ]
    fields = {"generation_id_or_member_epoch": -1, "topics": [{"name": topic, "partitions": rows}]}
    answer = t.ask("OffsetCommit", 9, group_id=group, **fields)
    errors = {part.partition_index: name_of(part.error_code) for part in answer.topics[0].partitions}
    t.same(errors, {0: NONE, 1: NONE, 2: NONE, 3: NONE, 4: "OFFSET_METADATA_TOO_LARGE"}, "errors")
    asked = {"group_id": group, "topics": [{"name": topic, "partition_indexes": list(range(5))}]}
    t.wait(
        lambda: t.quietly("OffsetFetch", 9, groups=[asked]).groups[0].topics[0].partitions[0].committed_offset == 0,
        "the commit is applied",
    )
    answer = t.ask("OffsetFetch", 9, groups=[asked])
    found = {part.partition_index: part.metadata for part in answer.groups[0].topics[0].partitions}
    t.same(found, {0: "", 1: "", 2: "größe ☃", 3: "x" * 4096, 4: ""}, "metadata")


@scenario("D15")
def keyless_records_on_a_compacted_topic(t: ScenarioClient) -> None:
    """INVALID_RECORD with the index of each bad record, and nothing of the batch is written."""
    topic = t.topic("compact", cleanup_policy="compact")
    t.error(t.produce(topic, [b"a", b"b"], key=None), "INVALID_RECORD")
    t.same(t.end_offset(topic), 0, "log end")


@scenario("D15")
def empty_admin_requests(t: ScenarioClient) -> None:
    """CreatePartitions and DescribeConfigs that name nothing answer nothing."""
    for version in (2, 3):
        t.same(len(t.ask("CreatePartitions", version, topics=[], timeout_ms=5000).results), 0, "results")
    for version in (1, 4):
        t.same(len(t.ask("DescribeConfigs", version, resources=[]).results), 0, "results")


@scenario("D15")
def offsets_by_time(t: ScenarioClient) -> None:
    """ListOffsets by time: the first record at or after it, inside compressed batches too; EARLIEST, LATEST, MAX."""
    topic = t.topic()
    for number in range(3):
        t.produce(topic, [b"a", b"b"], timestamp_ms=t.epoch_ms + 100 * number, codec=number)
    for timestamp, wanted in (
        (t.epoch_ms - 5, (0, t.epoch_ms)),
        (t.epoch_ms + 1, (2, t.epoch_ms + 100)),
        (t.epoch_ms + 100, (2, t.epoch_ms + 100)),
        (t.epoch_ms + 150, (4, t.epoch_ms + 200)),
        (t.epoch_ms + 201, (-1, -1)),
        (-1, (6, -1)),
        (-2, (0, -1)),
        (-3, (4, t.epoch_ms + 200)),
    ):
        t.same(offset_at(t, topic, timestamp, committed=False), wanted, f"at {timestamp}")


@scenario("D18", "B11", needs=Power.KILL, is_smoke=False, spoils=True)
def an_external_abort_strands_the_coordinator(t: ScenarioClient) -> None:
    """A marker from outside with a higher coordinator epoch: EndTxn is answered, and the transaction stays in
    PrepareCommit, also after a restart; unless Kafka's coordinator comes before its metadata, and takes the
    partition for deleted. Nothing of it is ever committed.
    """
    topic = t.topic()
    p = Producer(t, "x")
    p.send(topic, b"data")
    marker = {
        "producer_id": p.id,
        "producer_epoch": p.epoch,
        "transaction_result": False,
        "coordinator_epoch": 1000,
        "topics": [{"name": topic, "partition_indexes": [0]}],
    }
    answer = t.ask("WriteTxnMarkers", 1, markers=[marker])
    t.error(answer.markers[0].topics[0].partitions[0], NONE)
    p.end(commit=True, settle=False, adopt=False)
    t.same(state_of(t, p.transactional_id), "PrepareCommit", "state")
    t.same(t.values(topic, committed=True), [], "aborted from outside")
    t.restart()
    described = t.quietly("DescribeTransactions", 0, transactional_ids=[p.transactional_id]).transaction_states[0]
    t.same(described.transaction_state in ("PrepareCommit", "CompleteCommit"), True, "state after a restart")
    t.same(t.values(topic, committed=True), [], "aborted from outside")
