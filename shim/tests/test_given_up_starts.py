"""A start after a crash that is given up does not recover everything first, and what it left is recovered next time."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from kafka_shim import Broker, embedded, serve
from kafka_shim.server import Server
from kafka_shim.storage import recovery
from kafka_shim.storage.data_dir import CLEAN_SHUTDOWN
from kafka_shim.storage.loader import Loader
from kafka_shim.tests.produced import batch, fetch, make_topic, produce
from kafka_shim.tests.waiting import PATIENCE_S
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
def signals_kept() -> Iterator[None]:
    """`serve` takes them for good."""
    actions = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, action in actions.items():
        signal.signal(number, action)


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


@pytest.mark.usefixtures("signals_kept")
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

    with monkeypatch.context() as patch:
        patch.setattr(recovery, "load", signalled)
        assert serve.serve(listen="127.0.0.1:0", data_dir=str(crashed), log_level="WARNING") == 0
    assert "ready" not in capsys.readouterr().out
    everything_is_there(crashed, recovered)


@pytest.mark.usefixtures("signals_kept")
def test_a_signal_ends_a_start_that_looks_at_its_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """All were looked at first, and those that the metadata does not know set aside, of which each is a rename."""
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t", PARTITIONS)
        for partition in range(PARTITIONS):
            produce(client, "t", partition, batch(b"a"))
    looked_at: list[str] = []
    look = Loader._found

    def signalled(loader: Loader, *arguments: Any) -> None:
        look(loader, *arguments)
        looked_at.append(str(arguments[1]))
        if len(looked_at) == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Loader, "_found", signalled)
        assert serve.serve(listen="127.0.0.1:0", data_dir=str(tmp_path), log_level="WARNING") == 0
    assert "ready" not in capsys.readouterr().out
    assert len(looked_at) == 1
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        assert all(fetch(client, "t", partition, 0).high_watermark == 1 for partition in range(PARTITIONS))


BATCHES = 30


@pytest.fixture
def long_log(tmp_path: Path) -> Path:
    """A data directory that has many batches in one partition, and no clean stop."""
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t", 1)
        for _ in range(BATCHES):
            produce(client, "t", 0, batch(b"a"))
    (tmp_path / CLEAN_SHUTDOWN).unlink()
    return tmp_path


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The logs of which a batch was recovered, as they come."""
    names: list[str] = []
    replay = recovery.replay_batch

    def noted(log: Any, *arguments: Any) -> Any:
        names.append(log.name)
        return replay(log, *arguments)

    monkeypatch.setattr(recovery, "replay_batch", noted)
    return names


@pytest.mark.parametrize("log", ["t-0", "__cluster_metadata-0"])
@pytest.mark.usefixtures("signals_kept")
def test_a_signal_ends_a_start_in_the_middle_of_one_log(
    long_log: Path, replayed: list[str], monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    replay = recovery.replay_batch

    def signalled(*arguments: Any) -> Any:
        result = replay(*arguments)
        if replayed.count(log) == 1 and replayed[-1] == log:
            os.kill(os.getpid(), signal.SIGTERM)
        return result

    before = open_files()
    with monkeypatch.context() as patch:
        patch.setattr(recovery, "replay_batch", signalled)
        assert serve.serve(listen="127.0.0.1:0", data_dir=str(long_log), log_level="WARNING") == 0
    assert replayed.count(log) == 1
    assert open_files() == before
    one_log_is_there(long_log, replayed)


def test_an_embedded_start_is_given_up_in_the_middle_of_one_log(
    long_log: Path, replayed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, going_on = threading.Event(), threading.Event()
    replay = recovery.replay_batch

    def held(*arguments: Any) -> Any:
        result = replay(*arguments)
        if replayed[-1] == "t-0" and not reached.is_set():
            reached.set()
            assert going_on.wait(PATIENCE_S)
        return result

    threads = set(threading.enumerate())
    before = open_files()
    with monkeypatch.context() as patch:
        patch.setattr(recovery, "replay_batch", held)
        impatient_once(reached, patch)
        with pytest.raises(TimeoutError, match=r"did not start within 0\.2 s"):
            Broker(data_dir=long_log).start()
        assert reached.is_set()
    (late,) = [thread for thread in set(threading.enumerate()) - threads if thread.name == "kafka-shim"]
    going_on.set()
    late.join(PATIENCE_S)
    assert not late.is_alive()
    assert replayed.count("t-0") == 1
    assert open_files() == before
    one_log_is_there(long_log, replayed)


def impatient_once(reached: threading.Event, patch: pytest.MonkeyPatch) -> None:
    """Have a start given up after it has come to this point, however long a busy machine takes to come there: one that
    is given up earlier recovers nothing."""

    class Started(Future[None]):
        def result(self, timeout: float | None = None) -> None:
            reached.wait(PATIENCE_S)
            super().result(timeout)

    patch.setattr(embedded, "Future", Started)
    patch.setattr(embedded, "START_SECONDS", 0.2)


def open_files() -> list[str]:
    """The files of a data directory that this process has open."""
    found = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return sorted(str(path) for path in found if path.suffix in {".log", ".index", ".timeindex"})


def one_log_is_there(directory: Path, replayed: list[str]) -> None:
    """The next start recovers all of the partition."""
    assert not (directory / CLEAN_SHUTDOWN).exists()
    replayed.clear()
    with Broker(data_dir=directory) as broker, Connection(broker.bootstrap_servers) as client:
        assert replayed.count("t-0") == BATCHES
        assert fetch(client, "t", 0, 0).high_watermark == BATCHES


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
        impatient_once(reached, patch)
        with pytest.raises(TimeoutError, match=r"did not start within 0\.2 s"):
            Broker(data_dir=crashed).start()
        assert reached.is_set()
    (late,) = [thread for thread in set(threading.enumerate()) - threads if thread.name == "kafka-shim"]
    going_on.set()
    late.join(60)
    assert not late.is_alive()
    everything_is_there(crashed, recovered)


def test_a_broker_that_cannot_be_told_ready_stops_cleanly(
    tmp_path: Path, signals_kept: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in an image whose output ends behind the ready line. The next start had to recover."""

    def fail(server: Server) -> None:
        assert server.ready_line.startswith("ready ")
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    assert serve.serve(listen="127.0.0.1:0", data_dir=str(tmp_path), log_level="ERROR", on_started=fail) == 1
    assert capsys.readouterr().err == "error: Broken pipe\n"
    assert (tmp_path / CLEAN_SHUTDOWN).exists()
