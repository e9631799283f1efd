"""An application that records its calls and their outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafka_shim.compat.apps.base import App, Producer, Reader, Refused

Note = Callable[[str, Any, Any], None]


class ToldProducer(Producer):
    """Records each call with `done`, or with the client's name of the error."""

    def __init__(self, inner: Producer, note: Note, what: str) -> None:
        self._inner, self._note, self._what = inner, note, what

    @contextmanager
    def _told(self, request: str) -> Iterator[None]:
        try:
            yield
        except Refused as error:
            self._note(self._what, request, error.name)
            raise
        self._note(self._what, request, "done")

    def begin(self) -> None:
        with self._told("begin"):
            self._inner.begin()

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        with self._told(f"send {value[:40]}"):
            self._inner.send(topic, value, partition)

    def offset(self, group: str, topic: str, offset: int) -> None:
        with self._told(f"offset {offset}"):
            self._inner.offset(group, topic, offset)

    def positions(self, reader: Reader) -> None:
        with self._told("positions of a reader"):
            self._inner.positions(reader)

    def commit(self) -> None:
        with self._told("commit"):
            self._inner.commit()

    def abort(self) -> None:
        with self._told("abort"):
            self._inner.abort()

    def close(self) -> None:
        self._inner.close()


class ToldApp(App):
    """`note` gets (client, call, outcome). The records that readers get are not noted; the code that polls them has to
    do it.
    """

    def __init__(self, inner: App, note: Note) -> None:
        super().__init__(inner.bootstrap)
        self.name = inner.name
        self._inner, self._note = inner, note
        self._count = 0

    def _producer(self, transactional_id: str, timeout_ms: int, codec: str) -> Producer:
        self._inner.bootstrap = self.bootstrap
        made = self._inner._producer(transactional_id, timeout_ms, codec)
        self._count += 1
        what = f"{self.name}, producer {self._count}"
        self._note(what, "init", "done")
        return ToldProducer(made, self._note, what)

    def _reader(self, topic: str, group: str | None, committed: bool) -> Reader:
        self._inner.bootstrap = self.bootstrap
        return self._inner._reader(topic, group, committed)

    def committed(self, group: str, topic: str) -> int | None:
        return self._inner.committed(group, topic)
