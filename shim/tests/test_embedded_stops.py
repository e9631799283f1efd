"""Stops of an embedded broker that fail, take long or meet another thread leave nothing behind."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kafka_shim import Broker, embedded, embedded_process
from kafka_shim.group.coordinator import GroupCoordinator
from kafka_shim.metadata.store import MetadataStore
from kafka_shim.storage.data_dir import CLEAN_SHUTDOWN, DataDir
from kafka_shim.storage.flusher import Flusher
from kafka_shim.storage.moves import Moves
from kafka_shim.storage.offset_checkpoints import OffsetCheckpoints
from kafka_shim.storage.removals import Removals
from kafka_shim.tests.left_behind import running
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.txn.coordinator import TransactionCoordinator
from kafka_shim.wire_client import Connection


@pytest.mark.parametrize("action", ["error", "oserror", "drop"])
def test_a_fault_at_a_stop_leaves_nothing_behind(action: str, tmp_path: Path):
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t")
        assert produce(client, "t", 0, batch(b"a")).error_code == 0
        threads = threading.active_count()
        broker.faults.arm("server.stopping", action)
        broker.restart()
        assert [record.text for record in broker.consume("t")] == ["a"]
        assert threading.active_count() <= threads


@pytest.mark.parametrize(
    ("part", "step"),
    [(GroupCoordinator, "stop"), (TransactionCoordinator, "stop"), (MetadataStore, "stop"), (MetadataStore, "_depart")],
)
def test_a_step_of_a_stop_that_finds_no_memory_ends_none_of_the_rest(
    part: type, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The directories stayed locked, and the next start recovered all partitions."""
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t")
        assert produce(client, "t", 0, batch(b"a")).error_code == 0
        with monkeypatch.context() as patch:
            patch.setattr(part, step, no_memory_left)
            broker.stop()
        assert (tmp_path / CLEAN_SHUTDOWN).exists()
        broker.start()
        assert [record.text for record in broker.consume("t")] == ["a"]


@pytest.mark.parametrize(
    ("part", "step"),
    [
        (OffsetCheckpoints, "write"),
        (DataDir, "mark_clean"),
        (Moves, "stop"),
        (Flusher, "sync_all"),
        (Removals, "cancel_all"),
    ],
)
def test_a_step_of_the_stop_of_the_logs_that_finds_no_memory_leaves_no_directory_locked(
    part: type, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with Broker(data_dir=tmp_path) as broker:
        broker.produce("t", "a")
        with monkeypatch.context() as patch:
            patch.setattr(part, step, no_memory_left)
            broker.stop()
        assert (tmp_path / CLEAN_SHUTDOWN).exists() == (part in (Moves, Removals))
        broker.start()
        assert [record.text for record in broker.consume("t")] == ["a"]


def test_a_start_that_fails_frees_the_directory_although_a_step_back_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    broker = Broker(data_dir=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(TransactionCoordinator, "start", no_start)
        patch.setattr(GroupCoordinator, "stop", no_memory_left)
        with pytest.raises(OSError, match="it cannot start"):
            broker.start()
    with broker:
        assert broker.topics() == []


def no_start(_: object) -> None:
    raise OSError("it cannot start")


def test_a_stop_that_takes_too_long_is_told_and_can_be_waited_for(monkeypatch: pytest.MonkeyPatch):
    """The directory must not be removed, nor a second broker started on it, while the first still writes."""
    monkeypatch.setattr(embedded, "STOP_SECONDS", 0.2)
    going_on = threading.Event()

    def wait(**facts: object) -> None:
        assert going_on.wait(60)

    broker = Broker().start()
    with Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t")
        produce(client, "t", 0, batch(b"a"))
    directory = broker.data_dir
    broker.faults.arm("log.before_fsync", wait)
    for end in (broker.stop, broker.stop, broker.restart, broker.reset):
        with pytest.raises(TimeoutError, match=r"still runs 0\.2 s after it was told to stop"):
            end()
        assert directory.is_dir()
    going_on.set()
    monkeypatch.setattr(embedded, "STOP_SECONDS", 60)
    broker.stop()
    assert not directory.exists()


def test_several_threads_may_start_and_end_a_broker():
    """Each of two restarts started one, of which the first ran on with nobody to stop it."""
    before = running()
    broker = Broker().start()
    failed: list[BaseException] = []

    def life(method: Callable[[], object]) -> None:
        try:
            method()
        except BaseException as error:
            failed.append(error)

    for methods in ([broker.restart, broker.restart, broker.reset], [broker.stop, broker.stop]):
        threads = [threading.Thread(target=life, args=(method,)) for method in methods]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(90)
    assert not failed
    assert running() <= before


def test_a_kill_does_not_wait_for_a_stop_of_another_thread(monkeypatch: pytest.MonkeyPatch):
    broker = Broker(process=True).start()
    child = broker._process.popen
    child.send_signal(signal.SIGSTOP)  # the stop alone would never end it
    waits = threading.Event()

    def terminate() -> None:
        waits.set()

    monkeypatch.setattr(child, "terminate", terminate)
    monkeypatch.setattr(embedded_process, "STOP_SECONDS", 600)
    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(broker.stop)
        assert waits.wait(60)
        broker.kill()
        stopping.result(60)
    assert child.returncode == -signal.SIGKILL


def test_who_waits_for_a_broker_that_is_stopped_is_told():
    broker = Broker().start()
    waits = threading.Event()

    async def wait() -> None:
        waits.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(broker.call, wait)
        assert waits.wait(60)
        broker.stop()
        with pytest.raises(RuntimeError, match="the broker was stopped meanwhile"):
            waiting.result(60)
