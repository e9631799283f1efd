"""Sends the requests of a capture to another broker and compares its responses with the recorded ones.

Requests are sent in the recorded order (see ``order``). A request that was recorded after a response waits for that
response, so that delayed requests and groups go through the same steps. A request after the end of a transaction waits
for the transaction's markers. Ids and epochs that the brokers generate are paired as they appear. Which records a
single fetch returns depends on timing, so records and aborted transactions are compared by partition and offset
(``fetched``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

from kafka_shim.cext.crc32c import crc32c
from kafka_shim.cext.wire import WireError
from kafka_shim.protocol.message import Message
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from kafka_shim.wiretap.capture import CaptureWriter, Entry, Kind
from kafka_shim.wiretap.compare import PASSING, Pairs, answers_differ, batches_of, is_invented
from kafka_shim.wiretap.fetched import Fetched
from kafka_shim.wiretap.frames import Request, build_request, error_codes, parse_request, parse_response
from kafka_shim.wiretap.order import DELETE_TOPICS, END_TXN, FETCH, JOIN_GROUP, arranged, windows
from kafka_shim.wiretap.recorder import Dial, close, dial_plain, read_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

API_VERSIONS, DESCRIBE_TRANSACTIONS = 18, 65
DELETE_RECORDS = 21
# What was fetched before cannot be fetched after them.
DELETIONS = {DELETE_TOPICS, DELETE_RECORDS}
AT_PRODUCER_ID, AT_PRODUCER_EPOCH, AT_CRC, CRC_FROM = 43, 51, 17, 21


@dataclass
class Finding:
    """A response that differs in meaning from the recorded one."""

    entry: int
    request: str
    lines: list[str]

    def __str__(self) -> str:
        return f"entry {self.entry}, {self.request}:\n" + "\n".join(f"  {line}" for line in self.lines)


@dataclass
class Outcome:
    """The result of a replay. `requests` is the number of requests sent, `records` the number of fetched records
    compared.
    """

    requests: int = 0
    findings: list[Finding] = field(default_factory=list)
    records: int = 0


@dataclass
class _Sent:
    """A request that was sent and whose recorded response has not been reached yet."""

    entry: int
    recorded: Request
    live: Request


class Replayer:
    """Replays entries against `target`. `patience_s` is the time in seconds to wait for a response that was recorded.
    `writer` records the traffic with `target` as a capture, which ``diff`` can compare with the recorded one. `dial`
    opens the connections.
    """

    def __init__(
        self,
        target: tuple[str, int],
        *,
        patience_s: float = 30.0,
        attempts: int = 100,
        writer: CaptureWriter | None = None,
        dial: Dial = dial_plain,
    ) -> None:
        self._target = target
        self._dial = dial
        self._patience_s = patience_s
        self._attempts = attempts
        self._writer = writer
        self._pairs = Pairs()
        self._connections: dict[int, _Connection] = {}
        self._own: _Connection | None = None
        self._fetched = Fetched(self._pairs)
        self.outcome = Outcome()

    async def run(self, entries: Iterable[Entry] | AsyncIterator[Entry]) -> Outcome:
        """Replays all entries, then compares the fetched records."""
        number = 0
        try:
            if isinstance(entries, AsyncIterator):
                async for piece in windows(entries):
                    for number, entry in piece:
                        await self._step(number, entry)
            else:
                for number, entry in arranged(list(entries)):
                    await self._step(number, entry)
            await self._compare_records(number)
        finally:
            for connection in (*self._connections.values(), self._own):
                if connection is not None:
                    await connection.close()
        return self.outcome

    async def _step(self, number: int, entry: Entry) -> None:
        if entry.kind == Kind.OPENED:
            self._connections[entry.connection] = await _Connection.open(self._dial, self._target)
            self._note(entry.kind, entry.connection)
        elif entry.kind == Kind.CLOSED:
            self._note(entry.kind, entry.connection)
            connection = self._connections.pop(entry.connection, None)
            if connection is not None:
                await connection.close()
        elif entry.connection not in self._connections:
            return  # the recording started after this connection was opened
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
        if recorded.api_key in DELETIONS:
            await self._fetch_missing(again=False)
        live = parse_request(entry.frame)
        frame = entry.frame
        if live.message is not None:
            self._translate(live.message)
            frame = build_request(live)
        connection.send(frame)
        self._note(Kind.REQUEST, entry.connection, frame)
        if recorded.is_answered:
            connection.waiting.append(_Sent(number, recorded, live))
        if recorded.api_key == JOIN_GROUP:
            # Its response waits for other members, and the first of them leads: the broker has it before the next
            # request of another connection is sent.
            await self._ask(API_VERSIONS, 0, ApiVersionsRequest())

    async def _response(self, number: int, entry: Entry) -> None:
        connection = self._connections[entry.connection]
        if not connection.waiting:
            return
        sent = connection.waiting.popleft()
        recorded = parse_response(sent.recorded, entry.frame)
        frame, live = await self._answer(connection, sent, error_codes(recorded))
        if frame is not None:
            self._note(Kind.RESPONSE, entry.connection, frame)
        if live is None or recorded is None:
            if (live is None) != (recorded is None):
                words = ["the connection was closed or nothing came", "an answer was recorded"]
                self._find(sent, words if live is None else words[::-1])
            return
        if sent.recorded.api_key == API_VERSIONS:
            return  # not compared: docs/api-coverage.md lists the supported versions
        if sent.recorded.api_key == FETCH:
            self._keep(sent, recorded, live)
            return
        if sent.recorded.api_key == END_TXN and not live.error_code:
            await self._await_markers(sent.live.message.transactional_id)
        if sent.recorded.api_key == DELETE_TOPICS:
            for topic in recorded.responses:
                if topic.name and not topic.error_code:
                    self._tell_records(number, self._fetched.end(topic.name))
        lines = answers_differ(recorded, live, self._pairs)
        if lines:
            self._find(sent, lines)

    async def _answer(
        self, connection: _Connection, sent: _Sent, recorded_errors: list[str]
    ) -> tuple[bytes | None, Any]:
        """Returns the live response as (frame, message). Retries while the live response holds only transient errors
        that the recorded one does not have. Retries use the replay's own connection, because the next request may
        already be in flight on this one.
        """
        frame = await connection.receive(self._patience_s, sent.live.correlation_id)
        for _ in range(self._attempts):
            live = None if frame is None else parse_response(sent.live, frame)
            now = set(error_codes(live))
            if not now or not now <= PASSING or now <= set(recorded_errors) or sent.live.api_key == FETCH:
                break
            await asyncio.sleep(0.05)
            frame = await self._exchange(build_request(sent.live))
        return frame, live

    async def _await_markers(self, transactional_id: str) -> None:
        """Waits until all markers of the transaction are written. Kafka responds to EndTxn before that."""
        message = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        while loop.time() < deadline:
            answer = await self._ask(DESCRIBE_TRANSACTIONS, 0, message)
            if answer is None or not answer.transaction_states[0].transaction_state.startswith("Prepare"):
                return
            await asyncio.sleep(0.01)

    async def _ask(self, api_key: int, version: int, message: Message) -> Any:
        """Sends a request of the replay itself, on its own connection. Returns None if there is no response."""
        request = Request(api_key, version, 0, "replay", message)
        frame = await self._exchange(build_request(request))
        return None if frame is None else parse_response(request, frame)

    async def _exchange(self, frame: bytes) -> bytes | None:
        if self._own is None:
            self._own = await _Connection.open(self._dial, self._target)
        self._own.send(frame)
        answer = await self._own.receive(self._patience_s)
        if answer is None:  # a late response would be taken for the next one
            await self._own.close()
            self._own = None
        return answer

    def _note(self, kind: Kind, connection: int, frame: bytes = b"") -> None:
        if self._writer is not None:
            self._writer.write(kind, connection, frame)

    def _find(self, sent: _Sent, lines: list[str]) -> None:
        self.outcome.findings.append(Finding(sent.entry, sent.recorded.name, lines))

    def _translate(self, value: Any) -> None:
        """Replaces recorded ids with live ids, in place."""
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
        """Returns the batches with the live producer id in their headers and with a new CRC."""
        raw = bytearray(records)
        for _, batch in batches_of(records):  # an invalid batch is sent as recorded
            if batch.producer_id >= 0:
                at = batch.position
                live = self._pairs.live("producer_id", batch.producer_id)
                raw[at + AT_PRODUCER_ID : at + AT_PRODUCER_EPOCH] = int(live).to_bytes(8, "big", signed=True)
                crc = crc32c(bytes(raw[at + CRC_FROM : batch.end_position]))
                raw[at + AT_CRC : at + AT_CRC + 4] = crc.to_bytes(4, "big")
        return raw

    def _keep(self, sent: _Sent, recorded: Any, live: Any) -> None:
        """Collects what both sides fetched, and pairs their fetch session ids."""
        if recorded.session_id and live.session_id:
            self._pairs.relearn("session_id", recorded.session_id, live.session_id)
        errors = sorted(set(error_codes(recorded)) - PASSING), sorted(set(error_codes(live)) - PASSING)
        if errors[0] != errors[1]:
            self._find(sent, [f"errors: {errors[0]} recorded, {errors[1]} now"])
        self._fetched.add(sent.recorded.message, recorded, live)

    async def _compare_records(self, number: int) -> None:
        """Compares all records, after those were fetched that are missing."""
        await self._fetch_missing(again=True)
        self._tell_records(number, self._fetched.compare())

    def _tell_records(self, number: int, compared: tuple[int, list[list[str]]]) -> None:
        count, found = compared
        self.outcome.records += count
        self.outcome.findings += [Finding(number, "Fetch", lines) for lines in found]

    async def _fetch_missing(self, *, again: bool) -> None:
        """Fetches the recorded records that no live fetch returned."""
        for question in self._fetched.missing(again=again):
            while question.message is not None:
                question.take(await self._ask(FETCH, question.version, question.message))


class _Connection:
    """One connection to the live broker. Responses come in the order of the requests."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.waiting: deque[_Sent] = deque()

    @classmethod
    async def open(cls, dial: Dial, target: tuple[str, int]) -> _Connection:
        return cls(*await dial(*target))

    def send(self, frame: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            self._writer.write(len(frame).to_bytes(4, "big") + frame)

    async def receive(self, patience_s: float, correlation_id: int | None = None) -> bytes | None:
        """Returns the next response frame, or None if the connection closes or none comes within `patience_s`. With
        `correlation_id` the response to that request: one that came too late for an earlier request is passed over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while (frame := await read_frame(self._reader)) is not None:
                    if correlation_id is None or int.from_bytes(frame[:4], signed=True) == correlation_id:
                        return frame
        return None

    async def close(self) -> None:
        await close(self._writer)
