"""The interface of an application. Calls return when the broker has responded; failures raise ``Refused``."""

from __future__ import annotations

import contextlib
import time

TIMEOUT_S = 30


class Refused(Exception):
    """A call of the client failed. `name` is the client's name of the error: its exception, or librdkafka's error."""

    def __init__(self, name: str, text: str = "") -> None:
        super().__init__(f"{name}: {text}" if text else name)
        self.name = name


class Producer:
    """A transactional producer, initialised."""

    def begin(self) -> None:
        raise NotImplementedError

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        """Returns when it is acknowledged."""
        raise NotImplementedError

    def offset(self, group: str, topic: str, offset: int) -> None:
        """Adds an offset of partition 0 to the transaction, for a group without members."""
        raise NotImplementedError

    def positions(self, reader: Reader) -> None:
        """Adds the reader's positions to the transaction, with its group metadata."""
        raise NotImplementedError

    def commit(self) -> None:
        raise NotImplementedError

    def abort(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Reader:
    """A consumer with assigned partitions or in a group. It commits only on request."""

    def poll(self, timeout_ms: int = 200) -> list[tuple[int, str]]:
        """Returns (partition, value) of the records that have arrived."""
        raise NotImplementedError

    def assigned(self) -> list[int]:
        """The partitions of its topic that it has now."""
        raise NotImplementedError

    def commit(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class App:
    """An application that uses one broker. `close` closes every client that it created."""

    name = ""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._made: list[Producer | Reader] = []

    def producer(self, transactional_id: str, *, timeout_ms: int = 60_000, codec: str = "none") -> Producer:
        made = self._producer(transactional_id, timeout_ms, codec)
        self._made.append(made)
        return made

    def reader(self, topic: str, *, group: str | None = None, committed: bool = True) -> Reader:
        """Returns a consumer. With `group` it is a member that subscribes to the topic; otherwise it reads partition 0
        from the beginning.
        """
        made = self._reader(topic, group, committed)
        self._made.append(made)
        return made

    def committed(self, group: str, topic: str) -> int | None:
        """Returns the group's stable committed offset of partition 0."""
        raise NotImplementedError

    def values(self, topic: str, count: int, *, committed: bool = True) -> list[str]:
        """Returns `count` values of partition 0 from its beginning, plus any that follow shortly after."""
        reader = self.reader(topic, committed=committed)
        found = read(reader, count)
        found += [value for _, value in reader.poll(300)]
        self.drop(reader)
        return found

    def _producer(self, transactional_id: str, timeout_ms: int, codec: str) -> Producer:
        raise NotImplementedError

    def _reader(self, topic: str, group: str | None, committed: bool) -> Reader:
        raise NotImplementedError

    def drop(self, made: Producer | Reader) -> None:
        """Closes one client early."""
        self._made.remove(made)
        made.close()

    def close(self) -> None:
        """Closes all clients. Ignores errors of a fenced client."""
        while self._made:
            with contextlib.suppress(Exception):
                self._made.pop().close()


def read(reader: Reader, count: int) -> list[str]:
    """Polls until `count` values have arrived or the time is up."""
    found: list[str] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(found) < count and time.monotonic() < deadline:
        found += [value for _, value in reader.poll()]
    return found
