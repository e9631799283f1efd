"""A proxy between clients and a broker. It records every frame, and tests can use it to interfere with traffic.

Broker addresses in responses are replaced with addresses of the recorder, one listener for each node, so that all
connections of a client pass through it. `on_request` may change, delay, repeat or drop a request before the broker
receives it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from kafka_shim.cext.wire import WireError
from kafka_shim.protocol.message import Message
from kafka_shim.wiretap.capture import CaptureWriter, Entry, Kind
from kafka_shim.wiretap.frames import Request, build_response, parse_request, parse_response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_FRAME_BYTES = 1 << 30
# Takes a request and its frame; returns the frames to forward to the broker instead. The client gets the response to
# the first frame only. An empty list drops the request.
OnRequest = Callable[[Request, bytes], Awaitable[list[bytes]]]
OnEntry = Callable[[Entry], None]
# Opens a connection to (host, port) of a broker; what it must prove first is done. Raises OSError.
Dial = Callable[[str, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
# Produce, Fetch, Metadata, FindCoordinator, DescribeCluster, and the share APIs that name other leaders.
TELL_ADDRESSES = {0, 1, 3, 10, 60, 78, 79}
# What listens on every address, and is none that another host can connect to.
EVERYWHERE = ("0.0.0.0", "::")


class Recorder:
    """Listens from `start` to `stop`. Clients connect to `bootstrap`. Runs on one event loop."""

    def __init__(
        self,
        upstream: tuple[str, int],
        *,
        listen: tuple[str, int] = ("127.0.0.1", 0),
        writer: CaptureWriter | None = None,
        on_request: OnRequest | None = None,
        on_entry: OnEntry | None = None,
        dial: Dial | None = None,
    ) -> None:
        self.dial = dial or dial_plain
        self._upstream = upstream
        self._listen = listen
        self._writer = writer
        self._on_request = on_request
        self._on_entry = on_entry
        self._servers: dict[tuple[str, int], tuple[asyncio.Server, tuple[str, int]]] = {}
        self._tasks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._is_stopped = False
        self._count = 0

    @property
    def bootstrap(self) -> str:
        host, port = self._servers[self._upstream][1]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def start(self) -> None:
        await self._listener(self._upstream, self._listen)

    async def stop(self) -> None:
        """Closes every listener and connection."""
        self._is_stopped = True
        for server, _ in self._servers.values():
            server.close()
        relays = dict(self._tasks)
        for task in relays:
            task.cancel()
        await asyncio.gather(*relays, return_exceptions=True)
        for writer in relays.values():
            await close(writer)  # a relay that was cancelled early did not close it

    async def _listener(self, upstream: tuple[str, int], listen: tuple[str, int] | None = None) -> tuple[str, int]:
        """Returns the recorder's address for a node. Starts a listener if the node is new."""
        known = self._servers.get(upstream)
        if known is not None:
            return known[1]

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._is_stopped:
                writer.close()
                return
            task = asyncio.ensure_future(_Relay(self, upstream, reader, writer).run())
            self._tasks[task] = writer
            task.add_done_callback(ended)

        def ended(task: asyncio.Task[None]) -> None:
            # A relay that was cancelled before its first step has not closed its writer.
            self._tasks.pop(task).close()
            if not task.cancelled() and (failure := task.exception()) is not None:
                task.get_loop().call_exception_handler({"message": "a relay failed", "exception": failure})

        host, port = listen or (self._listen[0], 0)
        server = await asyncio.start_server(accept, host, port, limit=1 << 20)
        address = server.sockets[0].getsockname()[:2]
        self._servers[upstream] = (server, address)
        return (str(address[0]), int(address[1]))

    def note(self, kind: Kind, connection: int, frame: bytes = b"") -> None:
        if self._writer is not None:
            entry = self._writer.write(kind, connection, frame)
        else:
            entry = Entry(kind, connection, 0, frame)
        if self._on_entry is not None:
            self._on_entry(entry)

    def next_connection(self) -> int:
        self._count += 1
        return self._count

    async def change(self, request: Request, frame: bytes) -> list[bytes]:
        return [frame] if self._on_request is None else await self._on_request(request, frame)

    async def readdress(self, value: Any, dialled: str) -> bool:
        """Replaces broker addresses in a response with the recorder's. `dialled` is where its client has found the
        recorder. Returns False if the response has none."""
        found = False
        if isinstance(value, Message):
            names = {row[0] for row in value.FIELDS}
            if {"host", "port"} <= names and "client_id" not in names and value.host and value.port > 0:  # type: ignore[attr-defined]
                host, port = await self._listener((value.host, value.port))  # type: ignore[attr-defined]
                value.host, value.port = dialled if host in EVERYWHERE else host, port  # type: ignore[attr-defined]
                found = True
            for row in value.FIELDS:
                if row[1][:1].isupper() or row[1][:3].strip("[]")[:1].isupper():
                    found = await self.readdress(getattr(value, row[0]), dialled) or found
        elif isinstance(value, list):
            for each in value:
                found = await self.readdress(each, dialled) or found
        return found


class _Relay:
    """One client connection and the connection to the broker that belongs to it."""

    def __init__(
        self,
        recorder: Recorder,
        upstream: tuple[str, int],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._recorder = recorder
        self._upstream = upstream
        self._from_client = reader
        self._to_client = writer
        self._number = recorder.next_connection()
        # Requests without a response yet, in order. None marks a response that is not forwarded to the client.
        self._waiting: asyncio.Queue[Request | None] = asyncio.Queue()

    async def run(self) -> None:
        try:
            from_broker, to_broker = await self._recorder.dial(*self._upstream)
        except OSError:
            await close(self._to_client)
            return
        self._recorder.note(Kind.OPENED, self._number)
        work = [
            asyncio.ensure_future(self._requests(to_broker)),
            asyncio.ensure_future(self._responses(from_broker)),
        ]
        try:
            # When one side closes, both are closed.
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in work:
                each.cancel()
            # Close both before the first await, because `stop` may cancel it.
            to_broker.close()
            self._to_client.close()
            try:
                await asyncio.gather(*work, return_exceptions=True)
            finally:
                self._recorder.note(Kind.CLOSED, self._number)
            await close(to_broker)
            await close(self._to_client)

    async def _requests(self, to_broker: asyncio.StreamWriter) -> None:
        while (frame := await read_frame(self._from_client)) is not None:
            self._recorder.note(Kind.REQUEST, self._number, frame)
            try:
                request = parse_request(frame)
            except WireError:
                # Not a valid request header. Forward the frame unchanged; the broker closes the connection.
                to_broker.write(len(frame).to_bytes(4, "big") + frame)
                continue
            frames = await self._recorder.change(request, frame)
            for number, each in enumerate(frames):
                if request.is_answered:
                    self._waiting.put_nowait(request if number == 0 else None)
                to_broker.write(len(each).to_bytes(4, "big") + each)
            await to_broker.drain()

    async def _responses(self, from_broker: asyncio.StreamReader) -> None:
        dialled = self._to_client.get_extra_info("sockname")[0]
        while (frame := await read_frame(from_broker)) is not None:
            request = await self._waiting.get()
            if request is None:
                continue
            self._recorder.note(Kind.RESPONSE, self._number, frame)
            response = parse_response(request, frame) if request.api_key in TELL_ADDRESSES else None
            if response is not None and await self._recorder.readdress(response, dialled):
                frame = build_response(request, response)
            self._to_client.write(len(frame).to_bytes(4, "big") + frame)
            await self._to_client.drain()


async def dial_plain(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Opens a connection to a PLAINTEXT listener."""
    return await asyncio.open_connection(host, port, limit=1 << 20)


async def close(writer: asyncio.StreamWriter) -> None:
    """Closes a stream and waits until its socket is closed. Ignores why it broke, if it did."""
    writer.close()
    with contextlib.suppress(OSError):  # of a host that has vanished it is no ConnectionError
        await writer.wait_closed()


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """Returns the next frame without its length prefix, or None at the end of the stream or if the
    length is invalid.
    """
    try:
        size_bytes = int.from_bytes(await reader.readexactly(4), "big", signed=True)
        if not 0 <= size_bytes <= MAX_FRAME_BYTES:
            return None
        return await reader.readexactly(size_bytes)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
