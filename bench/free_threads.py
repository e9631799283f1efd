"""What two event loops in two threads of one interpreter do in the time of one: ``python -m bench.free_threads``.

The question of ADR 47 for a CPython without the GIL (way c). Each thread has a broker of its own, in memory, which
shares nothing with the other, so that this is the most that threads could give. A connection's protocol is called with
the frames of requests, and the responses are counted: no socket, no client and no kernel take part. Run it with each
interpreter; `PYTHON_GIL=0` keeps extension modules that do not say that they can do without the GIL from turning it on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import threading
import time
from contextlib import ExitStack

from kafka_shim.cext.records import build
from kafka_shim.embedded import Broker
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.targets import requests
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WARM_UP, ROUNDS = 2_000, 5
RECORD = [(b"key", b"x" * 100, 1, ())]


class Counted(asyncio.Transport):
    """Counts what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written_bytes = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written_bytes += len(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


class Driven:
    """One broker, and a connection that needs no socket."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        with Connection(broker.bootstrap_servers, timeout_s=60) as client:
            requests.create_topic(client, "counted", 1, {"segment.bytes": "2000000000", "retention.bytes": "1000000"})
            client.request(requests.produce("counted", 0, build(RECORD)), 11)
        self._frames = {
            "small produce": encode_request_frame(requests.produce("counted", 0, build(RECORD)), 11, 1, "driven"),
            "fetch of one record": encode_request_frame(requests.fetch("counted", 0, 0, max_bytes=1), 12, 1, "driven"),
        }
        self._transport = Counted()
        self._connection: Any = broker.call(self._connect)

    def _connect(self) -> Any:
        sockets = self._broker._server._socket_server  # type: ignore[union-attr]
        connection = sockets._factory(self._broker.state.listeners[0])()
        connection.connection_made(self._transport)
        return connection

    def kinds(self) -> list[str]:
        return list(self._frames)

    def serve(self, kind: str, count: int, barrier: threading.Barrier) -> float:
        """Handles one request after the other on the broker's loop, once all threads are ready. Returns seconds."""
        return float(self._broker.call(self._serve, self._frames[kind], count, barrier))

    def _serve(self, frame: bytes, count: int, barrier: threading.Barrier) -> float:
        connection, transport = self._connection, self._transport
        barrier.wait()
        began = time.perf_counter()
        for _ in range(count):
            before = transport.written_bytes
            connection.get_buffer(-1)[: len(frame)] = frame
            connection.buffer_updated(len(frame))
            if transport.written_bytes == before:
                raise RuntimeError("a request was not answered at once")
        return time.perf_counter() - began


def together(brokers: list[Driven], kind: str, count: int) -> float:
    """Requests a second of all brokers, each in its thread, at the same time."""
    barrier = threading.Barrier(len(brokers))
    took: list[float] = []
    threads = [threading.Thread(target=lambda one=one: took.append(one.serve(kind, count, barrier))) for one in brokers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(took) < len(brokers):
        raise RuntimeError("a thread failed")
    return len(brokers) * count / max(took)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.free_threads", description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=20_000, help="of each thread in a round")
    given = parser.parse_args()
    gil = getattr(sys, "_is_gil_enabled", lambda: True)
    found: dict[str, Any] = {"python": sys.version, "kinds": {}}
    with ExitStack() as stack:
        brokers = [Driven(stack.enter_context(Broker())) for _ in range(2)]
        for kind in brokers[0].kinds():
            together(brokers, kind, WARM_UP)
            rounds = [
                {"one": together(brokers[:1], kind, given.requests), "two": together(brokers, kind, given.requests)}
                for _ in range(ROUNDS)
            ]
            ratio = statistics.median(one["two"] / one["one"] for one in rounds)
            each_us = statistics.median(1e6 / one["one"] for one in rounds)
            found["kinds"][kind] = {"us_alone": round(each_us, 1), "two_to_one": round(ratio, 2), "rounds": rounds}
        found["gil"] = gil()
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
