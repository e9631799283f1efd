"""Rows B14-B16: what readers of both isolation levels see, and committed offsets of open transactions."""

from __future__ import annotations

from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.scenario_client import NONE, Producer, ScenarioClient, name_of, records_of, visible
from kafka_shim.targets.requests import fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

UNSTABLE = "UNSTABLE_OFFSET_COMMIT"


def offsets_in(answer: Any) -> list[int]:
    """The offsets of all records of a Fetch, markers too."""
    return [record.offset for record, _ in records_of(answer.records or b"")]


def offset_at(t: ScenarioClient, topic: str, timestamp: int, *, committed: bool) -> tuple[int, int]:
    """ListOffsets of partition 0: (offset, timestamp)."""
    row = {"name": topic, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}
    answer = t.ask("ListOffsets", 7, replica_id=-1, isolation_level=int(committed), topics=[row])
    part = answer.topics[0].partitions[0]
    t.error(part, NONE)
    return part.offset, part.timestamp


@scenario("B14", "D5")
def nothing_at_or_above_the_first_open_transaction(t: ScenarioClient) -> None:
    """The last stable offset is an exclusive bound: fetched at LSO - 1, LSO, LSO + 1, and beyond the log's end."""
    topic = t.topic()
    t.produce(topic, [b"a", b"b"])
    p = Producer(t, "x")
    p.send(topic, b"open")
    t.produce(topic, [b"behind"])
    first = t.fetch(topic, 0, committed=True)
    t.same((first.last_stable_offset, first.high_watermark, offsets_in(first)), (2, 4, [0, 1]), "from 0")
    t.same(first.aborted_transactions, [], "no aborted transaction is an empty list")
    t.same(offsets_in(t.fetch(topic, 1, committed=True))[-1], 1, "LSO - 1")
    for offset in (2, 3, 4):
        answer = t.fetch(topic, offset, committed=True)
        t.same((name_of(answer.error_code), offsets_in(answer)), (NONE, []), f"from {offset}")
    t.error(t.fetch(topic, 5, committed=True), "OFFSET_OUT_OF_RANGE")
    everything = t.fetch(topic, 0)
    t.same((offsets_in(everything), everything.aborted_transactions), ([0, 1, 2, 3], None), "read_uncommitted")
    p.end(commit=True)
    t.same(t.values(topic, committed=True), [b"a", b"b", b"open", b"behind"], "after the commit")


@scenario("B14")
def times_and_ends_under_read_committed(t: ScenarioClient) -> None:
    """LATEST is the LSO; a time or MAX_TIMESTAMP that is found at or above it is -1."""
    topic = t.topic()
    t.produce(topic, [b"a"], timestamp_ms=t.epoch_ms)
    p = Producer(t, "x")
    p.send(topic, b"open")
    t.produce(topic, [b"late"], timestamp_ms=t.epoch_ms + 1000)
    t.same(t.end_offset(topic, committed=True), 1, "LATEST, read_committed")
    t.same(t.end_offset(topic), 3, "LATEST, read_uncommitted")
    for timestamp, both in (
        (-2, ((0, -1), (0, -1))),
        (t.epoch_ms, ((0, t.epoch_ms), (0, t.epoch_ms))),
        (t.epoch_ms + 500, ((2, t.epoch_ms + 1000), (-1, -1))),
        (-3, ((2, t.epoch_ms + 1000), (-1, -1))),
        (t.epoch_ms + 5000, ((-1, -1), (-1, -1))),
    ):
        for committed in (False, True):
            t.same(offset_at(t, topic, timestamp, committed=committed), both[committed], f"at {timestamp}")
    p.end(commit=True)
    t.same(t.end_offset(topic, committed=True), 4, "LATEST after the commit")


@scenario("B14", "D6")
def aborted_transactions_come_in_the_order_of_their_markers(t: ScenarioClient) -> None:
    """Three overlapping transactions, aborted in another order than they began: the list is in marker order."""
    topic = t.topic()
    one, two, three, kept = (Producer(t, name) for name in ("one", "two", "three", "kept"))
    for each, value in ((one, b"1"), (two, b"2"), (kept, b"kept"), (three, b"3")):
        each.send(topic, value)
    for each in (three, one):
        each.end(commit=False)
    kept.end(commit=True)
    two.end(commit=False)
    answer = t.fetch(topic, committed=True)
    listed = [(row.producer_id, row.first_offset) for row in answer.aborted_transactions]
    t.same(listed, [(three.id, 3), (one.id, 0), (two.id, 1)], "the list")
    t.same(visible(answer, committed=True), [b"kept"], "what a client shows")
    later = t.fetch(topic, 5, committed=True)
    t.same(visible(later, committed=True), [], "from a marker on")


@scenario("B14")
def the_list_is_complete_for_the_range(t: ScenarioClient) -> None:
    """Each of several aborted transactions of one id is listed for a fetch that covers it."""
    topic = t.topic()
    p = Producer(t, "x")
    for number in range(4):
        p.send(topic, b"%d" % number)
        p.end(commit=number == 2)
    answer = t.fetch(topic, committed=True)
    t.same([row.first_offset for row in answer.aborted_transactions], [0, 2, 6], "first offsets")
    t.same(visible(answer, committed=True), [b"2"], "what a client shows")
    for start in range(8):
        t.fetch(topic, start, committed=True)


@scenario("B15")
def a_parked_reader_wakes_with_its_isolation(t: ScenarioClient) -> None:
    """A long poll of a read_committed reader sleeps over open data and wakes by the marker, aborted list in hand."""
    topic = t.topic()
    p = Producer(t, "x")
    for commit in (True, False):
        start = t.end_offset(topic)
        waits: dict[str, Any] = {"max_wait_ms": 60_000, "min_bytes": 1}
        committed = t.park(fetch(topic, 0, start, isolation_level=1, **waits), 12)
        plain = t.park(fetch(topic, 0, start, isolation_level=0, **waits), 12)
        p.send(topic, b"data")
        woken = plain.answer().responses[0].partitions[0]
        t.same((offsets_in(woken), woken.aborted_transactions), ([start], None), "read_uncommitted")
        t.same(committed.is_waiting, True, "read_committed waits")
        p.end(commit=commit)
        woken = committed.answer().responses[0].partitions[0]
        t.same(offsets_in(woken), [start, start + 1], "read_committed has data and marker")
        t.same(len(woken.aborted_transactions), int(not commit), "aborted transactions")


def offsets_of(
    t: ScenarioClient, group: str, version: int, topics: list[dict[str, Any]] | None
) -> dict[int, tuple[str, int, str]]:
    """OffsetFetch with requireStable: {partition: (error, offset, metadata)}, settled."""
    if version >= 8:
        answer = t.ask("OffsetFetch", version, require_stable=True, groups=[{"group_id": group, "topics": topics}])
        found = answer.groups[0].topics
    else:
        found = t.ask("OffsetFetch", version, require_stable=True, group_id=group, topics=topics).topics
    return {
        part.partition_index: (name_of(part.error_code), part.committed_offset, part.metadata)
        for topic in found
        for part in topic.partitions
    }


@scenario("B16", "D14")
def pending_offsets_are_unstable(t: ScenarioClient) -> None:
    """requireStable in v7-10 and in the all-topics form; the higher record offset of a plain and a transactional commit
    wins."""
    topic, group = t.topic(partitions=3), t.name("g")
    topic_id = t.topic_id(topic)
    t.rename(topic_id, "id of t")
    t.wait(lambda: not t.quietly("FindCoordinator", 3, key=group, key_type=0).error_code, "group coordinator")

    def commit_plain(partition: int, offset: int) -> None:
        row = {"partition_index": partition, "committed_offset": offset, "committed_metadata": "plain"}
        fields = {"generation_id_or_member_epoch": -1, "topics": [{"name": topic, "partitions": [row]}]}
        answer = t.ask("OffsetCommit", 9, group_id=group, **fields)
        t.error(answer.topics[0].partitions[0], NONE)

    def commit(p: Producer, partition: int, offset: int) -> None:
        row = {"partition_index": partition, "committed_offset": offset, "committed_metadata": "tx"}
        fields = {"group_id": group, "topics": [{"name": topic, "partitions": [row]}]}
        answer = t.ask("TxnOffsetCommit", 5, **p.who, **fields, generation_id=-1, member_id="")
        t.error(answer.topics[0].partitions[0], NONE)

    commit_plain(0, 1)
    p = Producer(t, "x")
    commit(p, 0, 5)
    commit(p, 1, 6)
    commit_plain(2, 2)
    for version in range(7, 11):
        name = {"topic_id": topic_id} if version >= 10 else {"name": topic}
        row = {**name, "partition_indexes": [0, 1, 2]}
        wanted = {0: (UNSTABLE, -1, ""), 1: (UNSTABLE, -1, ""), 2: (NONE, 2, "plain")}
        t.same(offsets_of(t, group, version, [row]), wanted, f"OffsetFetch v{version}")
        wanted = {0: (UNSTABLE, -1, ""), 2: (NONE, 2, "plain")}
        t.same(offsets_of(t, group, version, None), wanted, f"OffsetFetch v{version}, all topics")
    commit_plain(1, 7)
    p.end(commit=True)
    asked = [{"name": topic, "partition_indexes": [0, 1, 2]}]
    t.wait(lambda: offsets_stable(t, group, asked), "the offsets are stable")
    wanted = {0: (NONE, 5, "tx"), 1: (NONE, 7, "plain"), 2: (NONE, 2, "plain")}
    t.same(offsets_of(t, group, 9, asked), wanted, "after the commit")
    commit(p, 0, 9)
    p.end(commit=False)
    t.wait(lambda: offsets_stable(t, group, asked), "the offsets are stable")
    t.same(offsets_of(t, group, 9, asked), wanted, "after an abort")


def offsets_stable(t: ScenarioClient, group: str, asked: list[dict[str, Any]]) -> bool:
    """The coordinator has seen the marker."""
    answer = t.quietly("OffsetFetch", 9, require_stable=True, groups=[{"group_id": group, "topics": asked}])
    return not any(part.error_code for part in answer.groups[0].topics[0].partitions)
