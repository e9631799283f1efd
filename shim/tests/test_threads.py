"""A thread that finds no memory to begin must not keep the event loop that starts it."""

from __future__ import annotations

import sys
import threading

import pytest

from kafka_shim.threads import Thread


def test_a_thread_runs_and_ends() -> None:
    ran: list[str] = []
    thread = Thread(target=lambda: ran.append(threading.current_thread().name), name="here")
    thread.start()
    thread.join()
    assert ran == ["here"]
    assert not thread.is_alive()


def test_a_thread_that_finds_no_memory_is_one_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(_: threading.Thread) -> None:
        raise MemoryError

    ran: list[str] = []
    ignored: list[type[BaseException]] = []
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "_bootstrap", no_memory)
        patch.setattr(sys, "unraisablehook", lambda found: ignored.append(found.exc_type))
        thread = Thread(target=ran.append, args=("ran",))
        with pytest.raises(RuntimeError, match="no memory"):
            thread.start()
    assert ignored == [MemoryError]
    assert thread not in threading.enumerate()
    assert not thread.is_alive()
    assert ran == []
