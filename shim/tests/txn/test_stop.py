"""A clean stop leaves no transaction prepared: Kafka, if it goes on with the directory, does not write its markers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kafka_shim import server
from kafka_shim.embedded import Broker
from kafka_shim.server import Server
from kafka_shim.targets.requests import create_topic, make, produce
from kafka_shim.turns import Turns
from kafka_shim.txn import completion, marking, settling
from kafka_shim.wire_client import Connection, check


def states(broker: Broker, *ids: str) -> list[str]:
    request = make("DescribeTransactions", transactional_ids=list(ids))
    with Connection(broker.bootstrap_servers) as client:
        return [one.transaction_state for one in client.request(request, 0).transaction_states]


def open_transaction(client: Connection, partitions: int) -> dict[str, int]:
    """Writes one of `x` to each partition of a new topic `t`. Returns its producer's id and epoch."""
    create_topic(client, "t", partitions)
    client.request(make("FindCoordinator", key_type=1, coordinator_keys=["x"]), 4)
    begun = client.request(make("InitProducerId", transactional_id="x", transaction_timeout_ms=60_000), 5)
    owner = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
    for partition in range(partitions):
        write = produce(
            "t", partition, [(b"k", b"v")], transactional_id="x", transactional=True, base_sequence=0, **owner
        )
        check(client.request(write, 12).responses[0].partition_responses[0].error_code)
    return owner


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is."""
    monkeypatch.setattr(server, "DRAIN_SECONDS", 60)


def test_a_stop_completes_a_transaction_whose_markers_are_written_on_later_turns(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(marking, "MOST_MARKERS_AT_ONCE", 1)
    once, drain, drained = Turns.run, Server._drain, asyncio.Event()

    async def run_late(self, *arguments):
        await drained.wait()
        return await once(self, *arguments)

    async def tell(self):
        await drain(self)
        drained.set()

    monkeypatch.setattr(Server, "_drain", tell)

    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        owner = open_transaction(client, 3)
        monkeypatch.setattr(Turns, "run", run_late)
        check(client.request(make("EndTxn", transactional_id="x", committed=True, **owner), 5).error_code)
        assert states(broker, "x") == ["PrepareCommit"]
    monkeypatch.setattr(Turns, "run", once)
    # At the start nothing is written before the first request is answered.
    monkeypatch.setattr(completion.Completion, "resume_all", lambda self, slots: slots.clear())
    with Broker(data_dir=tmp_path) as broker:
        assert states(broker, "x") == ["CompleteCommit"]


def test_a_stop_tries_once_more_to_write_a_marker_that_failed(tmp_path: Path, monkeypatch) -> None:
    with Broker(data_dir=tmp_path, clock="virtual") as broker, Connection(broker.bootstrap_servers) as client:
        owner = open_transaction(client, 1)
        broker.faults.arm("log.before_write", "oserror", nth=1, where={"topic": "t"})
        check(client.request(make("EndTxn", transactional_id="x", committed=True, **owner), 5).error_code)
        assert states(broker, "x") == ["PrepareCommit"]
    monkeypatch.setattr(completion.Completion, "resume_all", lambda self, slots: slots.clear())
    with Broker(data_dir=tmp_path) as broker:
        assert states(broker, "x") == ["CompleteCommit"]


def test_a_stop_awaits_what_begins_meanwhile_and_tells_what_is_left(tmp_path: Path, monkeypatch, caplog) -> None:
    """As a retry that is due while the markers of another transaction are written."""

    async def settle(state) -> None:
        own = state.transactions.completion

        def begin(then) -> None:
            task = asyncio.get_running_loop().create_task(then())
            own.tasks.add(task)
            task.add_done_callback(own.tasks.discard)

        async def last() -> None:
            await asyncio.sleep(0.01)
            ended.append(True)

        async def first() -> None:
            begin(last)

        begin(first)
        await settling.settle(state.transactions, 60)

    ended: list[bool] = []
    with Broker(data_dir=tmp_path, clock="virtual") as broker, Connection(broker.bootstrap_servers) as client:
        owner = open_transaction(client, 1)
        broker.faults.arm("log.before_write", "oserror", where={"topic": "t"})
        check(client.request(make("EndTxn", transactional_id="x", committed=True, **owner), 5).error_code)
        broker.call(settle, broker.state)
        assert ended
        assert "transactions that stay prepared until the next start: 1" in caplog.text


def test_what_finds_no_memory_does_not_hold_up_the_stop(tmp_path: Path, monkeypatch) -> None:
    async def lose(state) -> None:
        own = state.transactions.completion
        task = asyncio.get_running_loop().create_task(asyncio.sleep(0))
        own.tasks.add(task)  # memory ends as it is to be watched
        await task

    def no_memory(*_: object) -> None:
        tried.append(True)
        raise MemoryError

    tried: list[bool] = []
    waits, wait = [], asyncio.wait

    async def count(*given, **how):
        waits.append(given)
        return await wait(*given, **how)

    with Broker(data_dir=tmp_path, clock="virtual") as broker, Connection(broker.bootstrap_servers) as client:
        owner = open_transaction(client, 1)
        broker.faults.arm("log.before_write", "oserror", nth=1, where={"topic": "t"})
        check(client.request(make("EndTxn", transactional_id="x", committed=True, **owner), 5).error_code)
        broker.call(lose, broker.state)
        with monkeypatch.context() as patch:
            patch.setattr(completion.Completion, "_finish_marking", no_memory)
            patch.setattr(settling.asyncio, "wait", count)
            broker.call(settling.settle, broker.state.transactions, 0.1)
    assert tried
    assert not waits
