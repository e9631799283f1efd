"""A start after a crash that is given up does not recover everything first, and what it left is recovered next time."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from kafka_shim import Broker, embedded, serve
from kafka_shim.storage import recovery
from kafka_shim.storage.data_dir import CLEAN_SHUTDOWN
from kafka_shim.tests.produced import batch, fetch, make_topic, produce
from kafka_shim.wire_client import Connection

PARTITIONS = 40


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """A data directory that has a record in each partition, and no clean stop."""
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t", PARTITIONS)
        for partition in range(PARTITIONS):
            produce(client, "t", partition, batch(b"a"))
    (tmp_path / CLEAN_SHUTDOWN).unlink()
    return tmp_path


@pytest.fixture
def recovered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The partitions of `t` that were recovered, as they come."""
    names: list[str] = []
    load = recovery.load

    def noted(log: Any, *arguments: Any) -> None:
        load(log, *arguments)
        if log.topic == "t":
            names.append(log.name)

    monkeypatch.setattr(recovery, "load", noted)
    return names


def everything_is_there(directory: Path, recovered: list[str]) -> None:
    """The next start recovers all partitions, also those that the one before had come to."""
    assert 0 < len(recovered) < PARTITIONS
    assert not (directory / CLEAN_SHUTDOWN).exists()
    recovered.clear()
    with Broker(data_dir=directory) as broker, Connection(broker.bootstrap_servers) as client:
        assert len(recovered) == PARTITIONS
        assert all(fetch(client, "t", partition, 0).high_watermark == 1 for partition in range(PARTITIONS))


def test_a_signal_ends_a_start_that_recovers(
    crashed: Path,
    recovered: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    load = recovery.load

    def signalled(*arguments: Any) -> None:
        load(*arguments)
        if len(recovered) == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    actions = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    with monkeypatch.context() as patch:
        patch.setattr(recovery, "load", signalled)
        try:
            assert serve.serve(listen="127.0.0.1:0", data_dir=str(crashed), log_level="WARNING") == 0
        finally:
            for number, action in actions.items():
                signal.signal(number, action)
    assert "ready" not in capsys.readouterr().out
    everything_is_there(crashed, recovered)


def test_an_embedded_start_that_is_given_up_ends(
    crashed: Path, recovered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, going_on = threading.Event(), threading.Event()
    load = recovery.load

    def held(*arguments: Any) -> None:
        load(*arguments)
        if len(recovered) == 1:
            reached.set()
            assert going_on.wait(60)

    threads = set(threading.enumerate())
    with monkeypatch.context() as patch:
        patch.setattr(recovery, "load", held)
        patch.setattr(embedded, "START_SECONDS", 0.2)
        with pytest.raises(TimeoutError, match=r"did not start within 0\.2 s"):
            Broker(data_dir=crashed).start()
        assert reached.wait(60)
    (late,) = [thread for thread in set(threading.enumerate()) - threads if thread.name == "kafka-shim"]
    going_on.set()
    late.join(60)
    assert not late.is_alive()
    everything_is_there(crashed, recovered)
