from __future__ import annotations

import io
import os
import signal
import threading

import pytest

from kafka_shim.client.lines import CHUNK_BYTES, Lines

LONG = b"x" * CHUNK_BYTES
TEXTS = (b"", b"a", b"a\n", b"a\n\nb", b"\n", b"a\rb\r\n\r\nc\r", LONG + b"\r\ny\r\n", LONG * 3)


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as source, os.fdopen(writer, "wb", buffering=0) as sink:
        yield source, sink


@pytest.mark.parametrize("text", TEXTS)
def test_lines_are_pythons_and_javas(text):
    assert list(Lines(io.BytesIO(text), 60)) == [line.removesuffix(b"\n") for line in io.BytesIO(text)]
    assert list(Lines(io.BytesIO(text), 60, with_returns=True)) == text.splitlines()


def test_of_a_pipe_too_however_it_is_cut(pipe):
    source, sink = pipe
    lines = iter(Lines(source, 60, with_returns=True))
    sink.write(b"a\r")
    assert next(lines) == b"a"
    sink.write(b"\nb")
    sink.write(b"c\r\rd\ne")
    assert [next(lines) for _ in range(3)] == [b"bc", b"", b"d"]
    sink.close()
    assert list(lines) == [b"e"]


def test_a_pause_is_told(pipe):
    source, sink = pipe
    lines = iter(Lines(source, 0.01))
    sink.write(b"a\nb")
    assert [next(lines) for _ in range(3)] == [b"a", None, None]
    sink.write(b"c\n")
    assert next(line for line in lines if line is not None) == b"bc"


def test_who_waits_for_a_line_can_be_told_to_end(pipe):
    source, sink = pipe
    lines = Lines(source, 60)
    found = iter(lines)
    sink.write(b"a\nb")
    assert next(found) == b"a"
    threading.Timer(0.01, lines.stop).start()
    assert list(found) == []
    lines.stop()


@pytest.fixture
def handled():
    """Calls of the handler of SIGUSR1, and a function that makes a thread of its own take the signal: the main thread's
    wait is not interrupted then, as it is not by a signal that comes just before."""
    on_signal = []

    def raise_elsewhere():
        threading.Timer(0.01, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)).start()

    before = signal.signal(signal.SIGUSR1, lambda *_: on_signal.pop(0)())
    yield on_signal, raise_elsewhere
    signal.signal(signal.SIGUSR1, before)


def test_a_signal_that_interrupts_nothing_is_heard(pipe, handled):
    """Its handler ran when the wait was over."""
    source, sink = pipe
    on_signal, raise_elsewhere = handled
    lines = Lines(source, 60)
    lines.hear_signals()
    on_signal.append(lambda: sink.write(b"a\n"))
    raise_elsewhere()
    found = iter(lines)
    assert next(found) == b"a"
    on_signal.append(lines.stop)
    raise_elsewhere()
    assert list(found) == []
    assert signal.set_wakeup_fd(-1) == -1
