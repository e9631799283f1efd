"""Topics and records as the console shows them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka_shim.cext import builder
from kafka_shim.console import records
from kafka_shim.console.app import Console
from kafka_shim.console.partition_reader import FETCH_BYTES, Found, PartitionReader, marker_of
from kafka_shim.embedded import Broker
from kafka_shim.tests.api.test_fetch_committed import Producer
from kafka_shim.tests.console.asking import console_of, get
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.wire_client import Connection

Row = dict[str, Any]


def offsets(page: dict[str, Any]) -> list[int]:
    return [row["offset"] for row in page["records"]]


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each fetch of the console."""
    sizes: list[int] = []
    fetch = PartitionReader._fetch

    def counted(reader: PartitionReader, isolation: int) -> Any:
        data = fetch(reader, isolation)
        sizes.append(len(data.records or b""))
        return data

    monkeypatch.setattr(PartitionReader, "_fetch", counted)
    return sizes


def test_topics_have_a_filter_and_pages(console: Console, client: Connection) -> None:
    for name in ("b", "a", "ab"):
        make_topic(client, name, 2)
    produce(client, "a", 1, batch(b"x", b"y"))
    found = get(console, "topics", filter="A")
    assert [(one["name"], one["partitions"], one["offsets"]) for one in found["topics"]] == [("a", 2, 2), ("ab", 2, 0)]
    assert found["topics"][0]["bytes"] > 0
    page = get(console, "topics", start=1, limit=1)
    assert (page["total"], [one["name"] for one in page["topics"]]) == (3, ["ab"])
    one = get(console, "topic", name="a")
    assert [(part["earliest"], part["latest"], part["lastStable"]) for part in one["partitions"]] == [
        (0, 0, 0),
        (0, 2, 2),
    ]
    assert get(console, "topic", 404, name="missing")["code"] == "UNKNOWN_TOPIC_OR_PARTITION"


def test_what_became_of_each_transaction_is_shown(console: Console, client: Connection) -> None:
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(b"plain"))
    one, other = Producer(client, "one"), Producer(client, "other")
    one.write(b"kept")
    other.write(b"left")
    one.end(commit=True)
    one.write(b"dropped")
    one.end(commit=False)
    one.write(b"after")
    one.end(commit=True)
    page = get(console, "records", topic="t", direction="forward")
    assert [(row["offset"], row.get("transaction"), row.get("control", {}).get("type")) for row in page["records"]] == [
        (0, None, None),
        (1, "committed", None),
        (2, "open", None),
        (3, None, "COMMIT"),
        (4, "aborted", None),
        (5, None, "ABORT"),
        (6, "committed", None),
        (7, None, "COMMIT"),
    ]
    marker = page["records"][3]
    assert marker["producer"]["id"] == one.producer_id
    assert page["partitions"] == [{"partition": 0, "earliest": 0, "latest": 8, "lastStable": 2}]
    assert offsets(get(console, "records", topic="t", direction="forward", **{"from": "offset:3"}, limit=1)) == [3]
    # Without the marker nobody knows yet how it ended.
    cut = get(console, "records", topic="t", direction="forward", **{"from": "offset:4"}, limit=1)
    assert cut["records"][0]["transaction"] == "ended"
    other.end(commit=False)
    states = {row["offset"]: row.get("transaction") for row in get(console, "records", topic="t")["records"]}
    assert (states[2], states[4], states[6]) == ("aborted", "aborted", "committed")


def test_pages_lead_on_in_both_directions_without_a_gap(console: Console, client: Connection) -> None:
    make_topic(client, "t", 3)
    for number in range(30):
        produce(client, "t", number % 3, batch(b"%d" % number, timestamp_ms=1_000_000 + number))
    for direction, start, onward, over in (
        ("backward", "latest", "older", "atStart"),
        ("forward", "earliest", "newer", "atEnd"),
    ):
        seen: list[tuple[int, int]] = []
        cursor = start
        for _ in range(100):
            page = get(console, "records", topic="t", direction=direction, limit=4, **{"from": cursor})
            seen += [(row["partition"], row["offset"]) for row in page["records"]]
            cursor = page[onward]
            if page[over]:
                break
        assert sorted(seen) == [(part, offset) for part in range(3) for offset in range(10)]
    newest = get(console, "records", topic="t", limit=5)["records"]
    assert [row["value"]["text"] for row in newest] == ["29", "28", "27", "26", "25"]


def test_a_page_starts_at_an_offset_or_a_time(console: Console, client: Connection) -> None:
    make_topic(client, "t", 1)
    for number in range(5):
        produce(client, "t", 0, batch(b"%d" % number, timestamp_ms=1_000 * number))
    for start, expected in (("time:2500", [3, 4]), ("offset:4", [4]), ("time:9999999", []), ("offset:77", [])):
        assert offsets(get(console, "records", topic="t", direction="forward", **{"from": start})) == expected


def test_a_tail_gets_what_is_new(console: Console, client: Connection) -> None:
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(b"old"))
    cursor = get(console, "records", topic="t", limit=1)["newer"]
    assert get(console, "records", topic="t", direction="forward", **{"from": cursor})["records"] == []
    produce(client, "t", 0, batch(b"new"))
    page = get(console, "records", topic="t", direction="forward", **{"from": cursor})
    assert [row["value"]["text"] for row in page["records"]] == ["new"]
    assert get(console, "records", topic="t", direction="forward", **{"from": page["newer"]})["records"] == []


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_search_finds_keys_values_and_headers(console: Console, client: Connection, direction: str) -> None:
    make_topic(client, "t", 1)
    told = [
        (b"Needle", b"1", 1, []),
        (None, b"a needle", 2, []),
        (b"k", b"v", 3, [("h", b"NEEDLE")]),
        (b"k", b"v", 4, []),
    ]
    produce(client, "t", 0, bytes(builder.build(told)))
    page = get(console, "records", topic="t", direction=direction, contains="needLE")
    assert sorted(offsets(page)) == [0, 1, 2]
    assert page["searched"] == 4


def test_a_search_through_much_ends_and_goes_on(
    console: Console, client: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request reads a bounded part; the next goes on where it ended."""
    monkeypatch.setattr(records, "SEARCH_BYTES", 300_000)
    make_topic(client, "t", 1)
    for number in range(40):
        produce(client, "t", 0, batch(b"%03d" % number + b"x" * 30_000))
    for direction, onward, over in (("backward", "older", "atStart"), ("forward", "newer", "atEnd")):
        found, requests = [], 0
        cursor = "latest" if direction == "backward" else "earliest"
        while requests < 100:
            page = get(console, "records", topic="t", direction=direction, contains="007x", **{"from": cursor})
            found += offsets(page)
            requests += 1
            cursor = page[onward]
            if page[over]:
                break
        assert found == [7]
        assert 1 < requests < 100


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_search_looks_through_as_much_as_one_request_may_read(
    console: Console, client: Connection, monkeypatch: pytest.MonkeyPatch, fetched: list[int], direction: str
) -> None:
    """Backwards all fetches of a stretch were counted as one, so that a request looked through several times as much,
    and fetched it again for each number of offsets that it tried."""
    monkeypatch.setattr(records, "SEARCH_BYTES", limit_bytes := 2 << 20)
    make_topic(client, "t", 1)
    for _ in range(200):
        produce(client, "t", 0, batch(b"y" * 30_000))
    page = get(console, "records", topic="t", direction=direction, contains="nothing")
    assert 0.5 * limit_bytes < page["searched"] * 30_000 < 1.2 * limit_bytes
    assert sum(fetched) < 3 * limit_bytes


# A stretch begins at the large record, holds it in its middle, or ends with it. The large record at offset 500 spends
# the budget, so that the small ones below it are left to the next request.
@pytest.mark.parametrize(("above", "most_fetches"), [(999, 8), (500, 8), (0, 3)])
def test_a_large_record_among_small_ones_costs_a_search_backwards_a_few_fetches(
    console: Console,
    client: Connection,
    monkeypatch: pytest.MonkeyPatch,
    fetched: list[int],
    above: int,
    most_fetches: int,
) -> None:
    """A large record at the old end of the first stretch had the small ones fetched one by one: 16 of a partition in
    a request."""
    partitions = 3
    monkeypatch.setattr(records, "SEARCH_BYTES", partitions * FETCH_BYTES)
    make_topic(client, "t", partitions)
    for number in range(partitions):
        for _ in range(50):
            produce(client, "t", number, batch(*[b"small"] * 10))
        produce(client, "t", number, batch(b"y" * FETCH_BYTES))
        for start in range(0, above, 10):
            produce(client, "t", number, batch(*[b"small"] * min(10, above - start)))
    page = get(console, "records", topic="t", contains="nothing")
    assert page["searched"] == partitions * (above + 1)
    assert len(fetched) <= partitions * most_fetches
    older = get(console, "records", topic="t", contains="nothing", **{"from": page["older"]})
    assert (older["searched"], older["atStart"]) == (partitions * 500, True)


def test_offsets_that_hold_nothing_cost_a_search_backwards_a_few_fetches(
    console: Console, client: Connection, broker: Broker, monkeypatch: pytest.MonkeyPatch, fetched: list[int]
) -> None:
    """Compaction leaves such. A large record behind them had the others fetched one by one: about 16 in a request."""
    monkeypatch.setattr(records, "SEARCH_BYTES", FETCH_BYTES)
    make_topic(client, "t", 1, cleanup_policy="compact")
    keyed = [(b"k%d" % number, b"small", 1_700_000_000_000, []) for number in range(500)]
    produce(client, "t", 0, bytes(builder.build(keyed)))
    for _ in range(10):
        produce(client, "t", 0, bytes(builder.build([(b"same", b"small", 1_700_000_000_000, [])] * 500)))
    produce(client, "t", 0, bytes(builder.build([(b"same", b"y" * (FETCH_BYTES + 40_000), 1_700_000_000_000, [])])))
    log = broker.state.logs.get("t", 0)
    log.roll(1_700_000_000_000)
    broker.state.logs.cleaner.clean_now(log)
    searched, cursor, requests = 0, "latest", 0
    while cursor is not None:
        page = get(console, "records", topic="t", contains="nothing", **{"from": cursor})
        searched += page["searched"]
        requests += 1
        cursor = None if page["atStart"] else page["older"]
    assert searched == 501
    assert (requests <= 4, len(fetched) <= 20) == (True, True), (requests, fetched)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_search_that_takes_long_ends_and_goes_on(
    console: Console, client: Connection, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    monkeypatch.setattr(records, "SEARCH_S", -1.0)
    monkeypatch.setattr(records, "SEARCHED_AT_ONCE", 2)
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(*(b"%d" % number for number in range(6))))
    page = get(console, "records", topic="t", direction=direction, contains="nothing")
    assert (page["searched"], page["atStart"] and page["atEnd"]) == (2, False)


def test_large_records_cost_bounded_reads_and_none_is_skipped(
    console: Console, client: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "PAGE_BYTES", 1 << 18)
    make_topic(client, "t", 1)
    for _ in range(10):
        produce(client, "t", 0, batch(b"y" * 200_000))
    seen: list[int] = []
    cursor = "latest"
    for _ in range(20):
        page = get(console, "records", topic="t", **{"from": cursor})
        assert all(row["value"]["cut"] and len(row["value"]["text"]) == records.LISTED for row in page["records"])
        seen += offsets(page)
        cursor = page["older"]
        if page["atStart"]:
            break
    assert seen == list(range(9, -1, -1))
    whole = get(console, "record", topic="t", partition=0, offset=3)
    assert len(whole["value"]["text"]) == 200_000
    assert get(console, "record", 409, topic="t", partition=0, offset=99)["code"] == "OFFSET_OUT_OF_RANGE"


def test_a_bomb_of_compression_is_not_unpacked(console: Console, client: Connection) -> None:
    make_topic(client, "t", 1, max_message_bytes="10000000")
    bomb = bytes(builder.build([(None, bytes(40 << 20), 1, [])], codec=4))
    assert produce(client, "t", 0, bomb).error_code == 0
    produce(client, "t", 0, batch(b"after"))
    page = get(console, "records", topic="t", direction="forward")
    assert [row["offset"] for row in page["records"]] == [0, 1]
    assert "TOO_LARGE" in page["records"][0]["problem"]
    assert page["records"][1]["value"]["text"] == "after"


def test_the_brokers_own_records_are_readable(console: Console, client: Connection) -> None:
    make_topic(client, "t", 1)
    one = Producer(client, "one")
    one.write(b"x")
    one.end(commit=True)
    rows = [row for row in get(console, "records", topic="__transaction_state")["records"] if row.get("value")]
    assert any('"transactionalId": "one"' in row["key"]["text"] for row in rows)
    assert rows[0]["value"]["kind"] == "internal"


def test_a_broken_idle_connection_is_made_anew(console: Console, broker: Broker, client: Connection) -> None:
    make_topic(client, "t", 1)
    assert get(console, "topics")["total"] == 1
    session = console._sessions.find("")
    assert session is not None
    (idle,) = session.cluster._idle[broker.bootstrap_servers]
    idle.close()
    assert get(console, "topics")["total"] == 1


def test_a_broker_that_is_gone_is_told(broker: Broker) -> None:
    gone = console_of(broker)
    broker.stop()
    told = get(gone, "topics", 502)
    assert "cannot connect" in told["error"]


@pytest.mark.parametrize(("kind", "name"), [(5, "KRAFT_VERSION"), (256, "UNKNOWN_256"), (-2, "UNKNOWN_-2")])
def test_a_control_record_that_ends_nothing_is_named_by_its_kind(kind: int, name: str) -> None:
    record: Any = SimpleNamespace(key=bytes(2) + kind.to_bytes(2, signed=True), value=b"")
    batch_of_it: Any = None
    assert marker_of(Found(0, batch_of_it, record)) == (name, -1)
