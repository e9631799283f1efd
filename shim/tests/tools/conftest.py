"""What tests of tools share."""

from __future__ import annotations

import io
from importlib import import_module

import pytest


@pytest.fixture
def run(broker, monkeypatch):
    """Run a line of words against `broker`: (status, stdout). `stdin` is what the tool reads; `first`: the address
    stands before the command; `at`: another broker."""

    def call(line, stdin=b"", *, first=False, at=broker):
        tool, *words = line.split()
        main = import_module(f"kafka_shim.tools.{tool.replace('-', '_')}").main
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            patch.setattr("sys.stdout", out)
            patch.setattr("signal.signal", lambda *_: None)
            try:
                address = ["--bootstrap-server", at.bootstrap_servers]
                status = main([*address, *words] if first else [*words, *address])
            except SystemExit as ended:
                status = ended.code
        return status, out.buffer.getvalue().decode()

    return call
