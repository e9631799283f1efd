"""Sends a capture's requests to another broker and compares its answers with the recorded ones.

Requests leave in the recorded order; one that was recorded after an answer waits for that answer, so that parked
requests and groups go through the same steps. Ids and epochs that the brokers invent are paired as they appear. What
two fetches returned at a time is chance: records are compared by partition and offset at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

from cext.batch import BatchError, scan
from cext.crc32c import crc32c
from cext.wire import WireError
from shim.protocol.message import Message
from shim.wiretap.capture import Entry, Kind
from shim.wiretap.compare import Pairs, differences, is_invented, records_of
from shim.wiretap.frames import Request, build_request, error_codes, parse_request, parse_response
from shim.wiretap.recorder import close, read_frame

FETCH, METADATA, API_VERSIONS = 1, 3, 18
# A broker says these while it is getting ready; another may be ready sooner or later.
PASSING = {
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "CONCURRENT_TRANSACTIONS",
    "LEADER_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "UNSTABLE_OFFSET_COMMIT",
}
AT_PRODUCER_ID, AT_PRODUCER_EPOCH, AT_CRC, CRC_FROM = 43, 51, 17, 21


@dataclass
class Finding:
    """An answer that means something else than the recorded one."""

    entry: int
    request: str
    lines: list[str]

    def __str__(self) -> str:
        return f"entry {self.entry}, {self.request}:\n" + "\n".join(f"  {line}" for line in self.lines)


@dataclass
class Outcome:
    """What a replay found. `requests` counts what was sent."""

    requests: int = 0
    findings: list[Finding] = field(default_factory=list)
    records: int = 0


@dataclass
class _Sent:
    """A request whose recorded answer has not come yet."""

    entry: int
    recorded: Request
    live: Request


class Replayer:
    """Feeds entries to `target`. `patience_s` is how long an answer may take that was recorded."""

    def __init__(self, target: tuple[str, int], *, patience_s: float = 30.0, attempts: int = 100) -> None:
        self._target = target
        self._patience_s = patience_s
        self._attempts = attempts
        self._pairs = Pairs()
        self._connections: dict[int, _Connection] = {}
        self._fetched: tuple[dict[Any, Any], dict[Any, Any]] = ({}, {})
        self._names: dict[bytes, str] = {}
        self.outcome = Outcome()

    async def run(self, entries: Iterable[Entry] | AsyncIterator[Entry]) -> Outcome:
        """Replays everything, then compares what was fetched."""
        number = 0
        try:
            if isinstance(entries, AsyncIterator):
                async for entry in entries:
                    await self._step(number, entry)
                    number += 1
            else:
                for entry in entries:
                    await self._step(number, entry)
                    number += 1
        finally:
            for connection in self._connections.values():
                await connection.close()
        self._compare_records(number)
        return self.outcome

    async def _step(self, number: int, entry: Entry) -> None:
        if entry.kind == Kind.OPENED:
            self._connections[entry.connection] = await _Connection.open(self._target)
        elif entry.kind == Kind.CLOSED:
            connection = self._connections.pop(entry.connection, None)
            if connection is not None:
                await connection.close()
        elif entry.connection not in self._connections:
            return  # the recording began in the middle of this connection
        elif entry.kind == Kind.REQUEST:
            await self._request(number, entry)
        else:
            await self._response(number, entry)

    async def _request(self, number: int, entry: Entry) -> None:
        connection = self._connections[entry.connection]
        self.outcome.requests += 1
        try:
            recorded = parse_request(entry.frame)
        except WireError:
            connection.send(entry.frame)
            return
        live = parse_request(entry.frame)
        frame = entry.frame
        if live.message is not None:
            self._translate(live.message)
            frame = build_request(live)
        connection.send(frame)
        if recorded.is_answered:
            connection.waiting.append(_Sent(number, recorded, live))

    async def _response(self, number: int, entry: Entry) -> None:
        connection = self._connections[entry.connection]
        if not connection.waiting:
            return
        sent = connection.waiting.popleft()
        recorded = parse_response(sent.recorded, entry.frame)
        live = await self._answer(connection, sent, error_codes(recorded))
        if live is None or recorded is None:
            if (live is None) != (recorded is None):
                words = ["the connection was closed or nothing came", "an answer was recorded"]
                self._find(sent, words if live is None else words[::-1])
            return
        if sent.recorded.api_key == API_VERSIONS:
            return  # what each broker offers is the coverage page's matter
        if sent.recorded.api_key == FETCH:
            self._keep(sent, recorded, live)
            return
        if set(error_codes(recorded)) <= PASSING and set(error_codes(live)) <= PASSING and error_codes(recorded):
            # The recorded client asked again; here the broker was ready at once, or not yet either.
            differences(recorded, live, self._pairs)
            return
        lines = differences(recorded, live, self._pairs)
        if lines:
            self._find(sent, lines)

    async def _answer(self, connection: _Connection, sent: _Sent, recorded_errors: list[str]) -> Any:
        """The live answer; asks again while the broker is getting ready and the recorded one was not."""
        live = None
        for _ in range(self._attempts):
            try:
                async with asyncio.timeout(self._patience_s):
                    frame = await connection.receive(sent.live.correlation_id)
            except TimeoutError:
                return None
            live = None if frame is None else parse_response(sent.live, frame)
            now = set(error_codes(live))
            if live is None or not now or not now <= PASSING or now <= set(recorded_errors) or connection.waiting:
                return live
            await asyncio.sleep(0.05)
            connection.send(build_request(sent.live))
        return live

    def _find(self, sent: _Sent, lines: list[str]) -> None:
        self.outcome.findings.append(Finding(sent.entry, sent.recorded.name, lines))

    def _translate(self, value: Any) -> None:
        """Says the live broker's ids instead of the recorded ones, in place."""
        for row in value.FIELDS:
            name = row[0]
            inner = getattr(value, name)
            if isinstance(inner, Message):
                self._translate(inner)
            elif isinstance(inner, list) and inner and isinstance(inner[0], Message):
                for each in inner:
                    self._translate(each)
            elif name == "records" and inner is not None:
                setattr(value, name, self._stamp(inner))
            elif is_invented(name) and isinstance(inner, int | str | bytes):
                setattr(value, name, self._pairs.live(name, inner))

    def _stamp(self, records: Any) -> bytearray:
        """Batches with the live producer id in their headers."""
        raw = bytearray(records)
        at = 0
        while at < len(raw):
            try:
                batch = scan(raw, at)
            except BatchError:
                break  # a batch that was wrong when it was recorded stays so
            if batch.producer_id >= 0:
                live = self._pairs.live("producer_id", batch.producer_id)
                raw[at + AT_PRODUCER_ID : at + AT_PRODUCER_EPOCH] = int(live).to_bytes(8, "big", signed=True)
                crc = crc32c(bytes(raw[at + CRC_FROM : batch.end_position]))
                raw[at + AT_CRC : at + AT_CRC + 4] = crc.to_bytes(4, "big")
            at = batch.end_position
        return raw

    def _keep(self, sent: _Sent, recorded: Any, live: Any) -> None:
        """Collects what was fetched on both sides, and pairs the fetch sessions."""
        if recorded.session_id and live.session_id:
            self._pairs.relearn("session_id", recorded.session_id, live.session_id)
        errors = sorted(set(error_codes(recorded)) - PASSING), sorted(set(error_codes(live)) - PASSING)
        if errors[0] != errors[1]:
            self._find(sent, [f"errors: {errors[0]} recorded, {errors[1]} now"])
        for side, answer in zip(self._fetched, (recorded, live), strict=True):
            for topic in answer.responses:
                for part in topic.partitions:
                    key = topic.topic or self._topic_key(topic.topic_id, side is self._fetched[0])
                    side.setdefault((key, part.partition_index), {}).update(records_of(part.records))

    def _topic_key(self, topic_id: bytes, is_recorded: bool) -> bytes:
        return self._pairs.live("topic_id", topic_id) if is_recorded else topic_id

    def _compare_records(self, number: int) -> None:
        before, now = self._fetched
        for key, recorded in before.items():
            live = now.get(key, {})
            shared = sorted(recorded.keys() & live.keys())
            self.outcome.records += len(shared)
            wrong = [offset for offset in shared if recorded[offset] != live[offset]]
            if wrong:
                first = wrong[0]
                lines = [f"{key} offset {first}: {recorded[first]!r} recorded, {live[first]!r} now"]
                self.outcome.findings.append(Finding(number, "Fetch", lines))


class _Connection:
    """One connection to the live broker. Answers come in the order of requests."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.waiting: deque[_Sent] = deque()

    @classmethod
    async def open(cls, target: tuple[str, int]) -> _Connection:
        return cls(*await asyncio.open_connection(*target, limit=1 << 20))

    def send(self, frame: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            self._writer.write(len(frame).to_bytes(4, "big") + frame)

    async def receive(self, correlation_id: int) -> bytes | None:
        return await read_frame(self._reader)

    async def close(self) -> None:
        await close(self._writer)
