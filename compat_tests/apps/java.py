"""The Java clients, all in one JVM: what asks for it first starts it, ``close`` ends it."""

from __future__ import annotations

import atexit
import itertools
import threading
from contextlib import contextmanager

from kafka_shim.compat.apps.base import App, Producer, Reader, Refused
from kafka_shim.targets.java_transactions import JavaClientError, JavaTransactions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_numbers = itertools.count(1)


class Calls:
    """Calls of the JVM, one at a time, from any thread."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._driver: JavaTransactions | None = None

    def __call__(self, *words: str) -> list[str]:
        with self.taken() as driver:
            return driver.call(*words)

    @contextmanager
    def taken(self) -> Iterator[JavaTransactions]:
        """For calls that belong together."""
        with self._turn:
            if self._driver is None:
                self._driver = JavaTransactions("127.0.0.1:1")  # each client has its own address
            try:
                yield self._driver
            except JavaClientError as raised:
                raise Refused(raised.name, str(raised)) from raised

    def close(self) -> None:
        with self._turn:
            if self._driver is not None:
                self._driver.close()
                self._driver = None


call = Calls()
close = call.close
atexit.register(close)


class JavaProducer(Producer):
    def __init__(self, name: str) -> None:
        self.name = name
        call("init", name)

    def begin(self) -> None:
        call("begin", self.name)

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        with call.taken() as driver:
            driver.send(self.name, topic, value, partition)
            driver.call("flush", self.name)

    def offset(self, group: str, topic: str, offset: int) -> None:
        call("offsets", self.name, group, topic, "0", str(offset))

    def positions(self, reader: Reader) -> None:
        assert isinstance(reader, JavaReader)
        call("offsets-of", self.name, reader.name)

    def commit(self) -> None:
        call("commit", self.name)

    def abort(self) -> None:
        call("abort", self.name)

    def close(self) -> None:
        call("close-producer", self.name)


class JavaReader(Reader):
    def __init__(self, name: str) -> None:
        self.name = name

    def poll(self, timeout_ms: int = 200) -> list[tuple[int, str]]:
        found = []
        for word in call("poll", self.name, str(timeout_ms)):
            where, _, value = word.partition("=")
            found.append((int(where.rpartition("@")[0].rpartition("-")[2]), value))
        return found

    def assigned(self) -> list[int]:
        return sorted(int(word) for word in call("assignment", self.name))

    def commit(self) -> None:
        call("commit-consumer", self.name)

    def close(self) -> None:
        call("close-consumer", self.name)


class Java(App):
    name = "java"

    def _producer(self, transactional_id: str, timeout_ms: int, codec: str) -> Producer:
        name = f"p{next(_numbers)}"
        with call.taken() as driver:
            more = {"transaction_timeout_ms": str(timeout_ms), "compression_type": codec}
            driver.producer(name, transactional_id, **more, bootstrap_servers=self.bootstrap)
        return JavaProducer(name)

    def _reader(self, topic: str, group: str | None, committed: bool) -> Reader:
        name = f"c{next(_numbers)}"
        with call.taken() as driver:
            isolation = "read_committed" if committed else "read_uncommitted"
            driver.consumer(name, group, isolation, bootstrap_servers=self.bootstrap, heartbeat_interval_ms="300")
            if group is None:
                driver.call("assign", name, topic, "0")
            else:
                driver.call("subscribe", name, topic)
        return JavaReader(name)

    def committed(self, group: str, topic: str) -> int | None:
        reader = self._reader(topic, group, committed=True)
        assert isinstance(reader, JavaReader)
        try:
            (word,) = call("committed", reader.name, topic, "0")
        finally:
            reader.close()
        return None if word == "none" else int(word)
