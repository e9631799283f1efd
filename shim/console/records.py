"""`/api/records`: records of a topic, forwards or backwards from an offset, a time or an end; `/api/value`: one whole.

Cost is bounded: rows, partitions, bytes that brokers are asked for and bytes that are shown.
"""

from __future__ import annotations

import heapq
import time

from kafka_shim.client.reading import EARLIEST, LATEST
from kafka_shim.console.cluster import COMMITTED
from kafka_shim.console.decode import pretty_json, shown
from kafka_shim.console.internal_records import texts_of
from kafka_shim.console.parameters import BadRequestError, Query, whole
from kafka_shim.console.partition_reader import FETCH_BYTES, Budget, Found, PartitionReader, marker_of
from kafka_shim.errors import ErrorCode
from kafka_shim.wire_client import RequestError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from kafka_shim.cext.records import Record
    from kafka_shim.console.cluster import Cluster
    from kafka_shim.console.decode import Decoder
    from kafka_shim.console.schemas import Schemas

    Cursor = dict[int, int]

MOST_ROWS = 200
ROWS = 50
MOST_PARTITIONS = 64
# The bytes shown of each key, value and header: in a list, and of one that is asked for alone.
LISTED, WHOLE = 4096, 1 << 20
MOST_HEADERS = 32
HEADER_SHOWN = 512
# Read for one page at most; a search reads more of what it does not show.
PAGE_BYTES, SEARCH_BYTES = 4 << 20, 16 << 20
UNPACKED_BYTES = 64 << 20
# A search shows what it found after this time, and goes on in the next request.
SEARCH_S = 2.0
SEARCHED_AT_ONCE = 1000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def page(cluster: Cluster, query: Query, schemas: Schemas) -> dict[str, Any]:
    """Return `records` in the order of reading and where to go on: `older`, `newer`. Raises BadRequestError,
    RequestError, WireClientError."""
    topic = query.text("topic")
    reading = _Reading(cluster, topic, query, schemas)
    direction = query.choice("direction", ("backward", "forward"), "backward")
    start = query.text("from", "latest" if direction == "backward" else "earliest")
    places = reading.places(start)
    rows = reading.forward(places) if direction == "forward" else reading.backward(places)
    return {
        "topic": topic,
        "records": [reading.row(one, LISTED) for one in rows],
        "older": _cursor_text(reading.older),
        "newer": _cursor_text(reading.newer),
        "atStart": all(offset <= reading.first[number] for number, offset in reading.older.items()),
        "atEnd": all(offset >= reading.last[number] for number, offset in reading.newer.items()),
        "searched": reading.looked_at,
        "partitions": [
            {
                "partition": number,
                "earliest": reading.first[number],
                "latest": reading.last[number],
                "lastStable": reading.stable.get(number),
            }
            for number in sorted(reading.first)
        ],
        "leftOut": reading.left_out,
    }


def whole_record(cluster: Cluster, query: Query, schemas: Schemas) -> dict[str, Any]:
    """Return one record, with up to 1 MB of its key and value. Raises like `page`."""
    topic = query.text("topic")
    reading = _Reading(cluster, topic, query, schemas)
    number, offset = query.number("partition", 0, high=1 << 31), query.number("offset", 0)
    for one in reading.reader(number).read(offset, offset + 1, 1):
        return reading.row(one, WHOLE)
    raise RequestError(ErrorCode.OFFSET_OUT_OF_RANGE, "the record at this offset no longer exists", f"{topic}-{number}")


class _Reading:
    """One request's way through a topic."""

    def __init__(self, cluster: Cluster, topic: str, query: Query, schemas: Schemas) -> None:
        self._cluster = cluster
        self._topic = topic
        self._key_decoder = schemas.decoder(topic, is_key=True)
        self._value_decoder = schemas.decoder(topic, is_key=False)
        self._most = query.number("limit", ROWS, 1, MOST_ROWS)
        self._wanted = query.text("contains", "").lower()
        self._deadline_s = time.monotonic() + SEARCH_S
        self._budget_bytes = SEARCH_BYTES if self._wanted else PAGE_BYTES
        leaders = cluster.leaders(topic)
        chosen = query.text("partition", "")
        self.left_out = 0
        if chosen:
            number = whole(chosen, "partition")
            if number not in leaders:
                raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, f"{topic}-{number}")
            leaders = {number: leaders[number]}
        elif len(leaders) > MOST_PARTITIONS:
            self.left_out = len(leaders) - MOST_PARTITIONS
            leaders = dict(list(leaders.items())[:MOST_PARTITIONS])
        self._leaders = leaders
        self.first = self._offsets(EARLIEST)
        self.last = {number: end for number, end in self._offsets(LATEST).items() if number in self.first}
        self.first = {number: offset for number, offset in self.first.items() if number in self.last}
        if not self.first:
            raise RequestError(ErrorCode.LEADER_NOT_AVAILABLE, "no partition has a leader that answers", topic)
        self.stable = self._offsets(LATEST, COMMITTED)
        self.older: Cursor = {}
        self.newer: Cursor = {}
        self.looked_at = 0
        # What lies below these offsets was more than a guess may read.
        self._costly: Cursor = {}

    def reader(self, number: int) -> PartitionReader:
        """Return a reader of one partition, with the partition's share of the budget. Raises RequestError."""
        if number not in self._leaders:
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, f"{self._topic}-{number}")
        parts = len(self._leaders)
        budget = Budget(max(FETCH_BYTES, self._budget_bytes // parts), UNPACKED_BYTES // parts)
        return PartitionReader(self._cluster, self._topic, number, self._leaders[number], budget)

    def places(self, start: str) -> Cursor:
        """Return an offset for each partition from `earliest`, `latest`, `time:MS`, `offset:N` or a cursor. Raises
        BadRequestError for anything else."""
        kind, _, rest = start.partition(":")
        if start == "earliest":
            return dict(self.first)
        if start == "latest":
            return dict(self.last)
        if kind == "time":
            found = self._offsets(whole(rest, "time"))
            # Where no record is as late: behind the last.
            return {number: end if found.get(number, -1) < 0 else found[number] for number, end in self.last.items()}
        if kind == "offset":
            offset = whole(rest, "offset")
            return {number: self._inside(number, offset) for number in self.first}
        if kind != "at":
            raise BadRequestError("from must be earliest, latest, time:MS, offset:N or at:PARTITION.OFFSET,...")
        cursor = {}
        for part in rest.split(","):
            number, _, offset_text = part.partition(".")
            cursor[whole(number, "from")] = whole(offset_text, "from")
        return {number: self._inside(number, cursor.get(number, end)) for number, end in self.last.items()}

    def forward(self, places: Cursor) -> list[Found]:
        """Return records from these offsets on, the earliest first."""
        streams, readers = [], {}
        share = self._share()
        for number, start in places.items():
            readers[number] = reader = self.reader(number)
            streams.append(self._wanted_of(reader, start, share))
        taken = self._merge(streams, reverse=False)
        shown_ids = set(map(id, taken))
        # A partition of which not all was taken goes on behind its last record that was.
        self.newer = {number: reader.next_offset for number, reader in readers.items()}
        for number, stream in zip(readers, streams, strict=True):
            left = [one for one in stream if id(one) not in shown_ids]
            if left:
                self.newer[number] = left[0].offset
        self.older = dict(places)
        return taken

    def backward(self, places: Cursor) -> list[Found]:
        """Return records below these offsets, the latest first."""
        streams, begins = [], {}
        for number, end in places.items():
            stream, begins[number] = self._last_below(number, end)
            streams.append(stream)
        taken = self._merge([list(reversed(stream)) for stream in streams], reverse=True)
        shown_ids = set(map(id, taken))
        self.older = begins
        for number, stream in zip(places, streams, strict=True):
            left = [one for one in stream if id(one) not in shown_ids]
            if left:
                self.older[number] = left[-1].offset + 1
        self.newer = dict(places)
        return taken

    def row(self, found: Found, most: int) -> dict[str, Any]:
        """Return a record as the page takes it."""
        batch, record = found.batch, found.record
        row: dict[str, Any] = {
            "partition": found.partition,
            "offset": found.offset,
            "timestamp": found.timestamp,
            "timestampType": "LogAppendTime" if batch.is_log_append_time else "CreateTime",
            "codec": CODECS[batch.compression] if batch.compression < len(CODECS) else str(batch.compression),
            "batch": {"first": batch.base_offset, "last": batch.last_offset, "bytes": batch.size_bytes},
        }
        if batch.producer_id >= 0:
            sequence = batch.base_sequence
            row["producer"] = {"id": batch.producer_id, "epoch": batch.producer_epoch}
            if sequence >= 0:
                row["producer"]["sequence"] = sequence + found.offset - batch.base_offset
        if found.state:
            row["transaction"] = found.state
        if record is None:
            row["problem"] = found.problem
            return row
        if batch.is_control:
            kind, epoch = marker_of(found)
            row["control"] = {"type": kind, "coordinatorEpoch": epoch}
            return row
        internal = texts_of(self._topic, record)
        if internal is not None:
            for name, data, text in (("key", record.key, internal[0]), ("value", record.value, internal[1])):
                row[name] = None if data is None else shown(data, most, _as_json(text))
        else:
            row["key"] = shown(record.key, most, self._key_decoder)
            row["value"] = shown(record.value, most, self._value_decoder)
        row["headers"] = [
            [name.encode(errors="surrogateescape").decode(errors="replace")[:HEADER_SHOWN], shown(value, HEADER_SHOWN)]
            for name, value in record.headers[:MOST_HEADERS]
        ]
        if len(record.headers) > MOST_HEADERS:
            row["moreHeaders"] = len(record.headers) - MOST_HEADERS
        return row

    # --- parts

    def _offsets(self, timestamp: int, isolation: int = 0) -> Cursor:
        leaders = {(self._topic, number): leader for number, leader in self._leaders.items()}
        found = self._cluster.offsets(dict.fromkeys(leaders, timestamp), leaders, isolation)
        return {number: offset for (_, number), offset in found.items()}

    def _inside(self, number: int, offset: int) -> int:
        return min(max(offset, self.first[number]), self.last[number])

    def _share(self) -> int:
        """How many records of each partition are looked at for one page."""
        parts = len(self.first)
        return self._most if parts == 1 else max(4, 2 * self._most // parts)

    def _last_below(self, number: int, end: int) -> tuple[list[Found], int]:
        """Return the last wanted records below `end`, and where what was looked at begins."""
        if not self._wanted:
            return self._window_below(number, end, self._share())
        rows: list[Found] = []
        left_bytes = self._budget_bytes // len(self._leaders)
        length = SEARCHED_AT_ONCE
        while end > self.first[number] and len(rows) < self._most and left_bytes > 0:
            read, begin = self._window_below(number, end, length)
            if time.monotonic() > self._deadline_s:
                left_bytes = 0
            # `position` of a batch is that in the answer to one of several fetches.
            read_bytes = sum({one.batch.base_offset: one.batch.size_bytes for one in read}.values())
            read_bytes += FETCH_BYTES // 16  # a stretch that holds nothing costs too
            left_bytes -= read_bytes
            # A few large records do not keep the stretches short. The last stretch is as long as what is left.
            length = max(1, min(2 * (end - begin), SEARCHED_AT_ONCE, left_bytes * (end - begin) // read_bytes))
            end = begin
            rows[:0] = [one for one in read if self._holds(one)]
        return rows, end

    def _window_below(self, number: int, end: int, length: int) -> tuple[list[Found], int]:
        """Return all records of some offsets below `end`, and where these begin. A number of offsets is guessed; if
        they hold too many bytes, somewhat fewer are read than the budget was enough for: each guess costs a read."""
        # One large record at the old end says little about the others. A second such guess is believed: where all
        # records are large, each guess more costs a fetch, of the partition's whole share.
        fewest = min(length, end - self.first[number]) // 8
        while True:
            begin = max(self.first[number], end - length)
            if begin < self._costly.get(number, 0) < end:
                # It would be too much again.
                begin = self._costly[number]
            reader = self.reader(number)
            rows = reader.read(begin, end, length)
            if reader.next_offset >= end or length == 1 or not reader.budget.is_spent:
                self.looked_at += len(rows)
                return rows, begin
            self._costly[number] = reader.next_offset
            length = max(1, fewest, min((reader.next_offset - begin) * 3 // 4, (end - begin) // 2))
            fewest = 0

    def _wanted_of(self, reader: PartitionReader, start: int, most: int) -> list[Found]:
        """Return the wanted records from `start` on."""
        end = self.last[reader.partition]
        reader.next_offset = start
        rows: list[Found] = []
        while start < end and len(rows) < most and not reader.budget.is_spent:
            read = reader.read(start, end, SEARCHED_AT_ONCE if self._wanted else most)
            self.looked_at += len(read)
            rows += [one for one in read if not self._wanted or self._holds(one)]
            if reader.next_offset == start or not self._wanted or time.monotonic() > self._deadline_s:
                break
            start = reader.next_offset
        return rows

    def _holds(self, found: Found) -> bool:
        record = found.record
        if record is None or found.batch.is_control:
            return False
        return any(self._wanted in text.lower() for text in self._texts(record))

    def _texts(self, record: Record) -> Iterable[str]:
        for data, decoder in ((record.key, self._key_decoder), (record.value, self._value_decoder)):
            if data is None:
                continue
            if decoder is not None:
                one = shown(data, WHOLE, decoder)
                if one is not None:
                    yield one["text"]
            yield data.decode(errors="replace")
        for name, value in record.headers:
            yield name
            if value is not None:
                yield value.decode(errors="replace")

    def _merge(self, streams: list[list[Found]], *, reverse: bool) -> list[Found]:
        key: Callable[[Found], tuple[int, int]] = _by_time
        merged = heapq.merge(*streams, key=key, reverse=reverse)
        return [one for _, one in zip(range(self._most), merged, strict=False)]


def _by_time(found: Found) -> tuple[int, int]:
    return found.timestamp, found.partition


def _as_json(text: str | None) -> Decoder:
    def decode(data: bytes) -> tuple[str, str] | None:
        return None if text is None else ("internal", pretty_json(text) or text)

    return decode


def _cursor_text(cursor: Cursor) -> str:
    return "at:" + ",".join(f"{number}.{offset}" for number, offset in sorted(cursor.items()))
