"""Rows H: what compaction keeps."""

from __future__ import annotations

from kafka_shim.cext.records import build
from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.looking import OFTEN, ahead_ms, whole
from kafka_shim.compat.scenarios.scenario_client import NONE, Producer, ScenarioClient, records_of
from kafka_shim.targets import Power
from kafka_shim.targets.requests import fetch, produce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DAY_MS = "86400000"


class Compacted:
    """A compacted topic whose records are a second apart, so that each is in a segment of its own."""

    def __init__(self, client: ScenarioClient, **options: str) -> None:
        self.client = client
        self.now_ms = ahead_ms()
        given = {"cleanup_policy": "compact", "segment_ms": "200", "min_cleanable_dirty_ratio": "0.01", **options}
        self.topic = client.topic("compacted", 1, **given)

    def put(self, key: bytes, value: bytes | None) -> None:
        self.now_ms += 1000
        records = build([(key, value, self.now_ms, ())])
        answer = self.client.send(produce(self.topic, 0, bytes(records)), 11).responses[0].partition_responses[0]
        self.client.error(answer, NONE, "Produce")

    def stored(self) -> list[tuple[Any, Any]]:
        """Every record with its batch, markers too."""
        found: list[tuple[Any, Any]] = []
        offset = 0
        while True:
            part = self.client.send(fetch(self.topic, 0, offset), 12).responses[0].partitions[0]
            more = records_of(part.records or b"")
            if not more:
                return found
            found += more
            offset = more[-1][1].next_offset

    def keys(self) -> dict[bytes, list[bytes | None]]:
        values: dict[bytes, list[bytes | None]] = {}
        for record, batch in self.stored():
            if not batch.is_control:
                values.setdefault(record.key, []).append(record.value)
        return values

    def clean(self, number: int) -> None:
        """Waits for a round of the cleaner after everything that was put so far."""
        probe = b"probe-%d" % number
        self.put(probe, b"old")
        self.put(probe, b"new")
        # The active segment is not cleaned; its key comes once.
        self.put(b"end-%d" % number, b"")
        self.put(b"end-%d-" % number, b"")
        self.client.wait(lambda: self.keys().get(probe) == [b"new"], f"round {number} of the cleaner")


@scenario("H1", settings=OFTEN, needs=Power.SETTINGS)
def compaction_keeps_what_it_must(t: ScenarioClient) -> None:
    """Of a key with values the newest stays, of a deleted key the tombstone, for `delete.retention.ms` after the round
    that first saw it; no older value comes back.
    """
    log = Compacted(t, delete_retention_ms=DAY_MS)
    for value in (b"a0", b"a1", b"a2"):
        log.put(b"a", value)
    log.put(b"gone", b"g0")
    log.put(b"gone", None)
    for number in range(2):
        log.clean(number)
        t.same(log.keys()[b"a"], [b"a2"], "the newest value of a")
        t.same(log.keys().get(b"gone"), [None], "the tombstone")


@scenario("H2", settings=OFTEN, needs=Power.SETTINGS)
def a_marker_stays_while_its_data_does(t: ScenarioClient) -> None:
    """A transaction whose records stay keeps its marker through every round, also when markers may go at once."""
    log = Compacted(t, delete_retention_ms="0")
    p = Producer(t, "x")
    p.send(log.topic, b"committed", key=b"c", timestamp_ms=log.now_ms)
    p.end(commit=True)
    # The producer's next transaction: its last batch would stay for another reason.
    p.send(log.topic, b"later", key=b"d", timestamp_ms=log.now_ms)
    p.end(commit=True)
    for number in range(3):
        log.clean(number)
        t.same([record.offset for record, batch in log.stored() if batch.is_control], [1, 3], "markers")
    t.same(whole(t, log.topic, committed=True)[:2], [b"committed", b"later"], "read_committed")


@scenario("H4", settings=OFTEN, needs=Power.SETTINGS)
def compaction_stops_before_the_segment_of_an_open_transaction(t: ScenarioClient) -> None:
    """Only whole segments are cleaned: a record below the last stable offset stays, and takes no older one's place,
    while a transaction is open in its segment.
    """
    log = Compacted(t)
    for value in (b"a0", b"a1", b"a2"):
        log.put(b"a", value)
    p = Producer(t, "x")
    p.send(log.topic, b"open", key=b"open", timestamp_ms=log.now_ms)
    log.put(b"a", b"a3")
    log.put(b"end", b"")
    t.wait(lambda: log.keys()[b"a"][0] == b"a1", "a0 is cleaned")
    t.same(log.keys()[b"a"], [b"a1", b"a2", b"a3"], "what stays of a")
    p.end(commit=True)
    log.clean(0)
    t.same(log.keys()[b"a"], [b"a3"], "once the transaction has ended")
