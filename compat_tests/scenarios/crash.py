"""Rows B12, B21, D4, D10, D12: killed at a step and started again on the same data."""

from __future__ import annotations

import random
from functools import partial

from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.reading import offsets_in
from kafka_shim.compat.scenarios.scenario_client import NONE, Producer, ScenarioClient, name_of, warm_up
from kafka_shim.compat.scenarios.transactions import OLD_EPOCH, state_of
from kafka_shim.compat.transactions import pipeline
from kafka_shim.history import checker
from kafka_shim.history.operations import FAIL, OK, Operation
from kafka_shim.targets import Power


@scenario("B12", needs=Power.KILL)
def transactions_come_back_after_a_kill(t: ScenarioClient) -> None:
    """An open one stays open, an ended one stays ended, and a retried EndTxn v5 answers the bumped epoch again."""
    topic = t.topic(partitions=3)
    opened, committed, aborted = Producer(t, "opened"), Producer(t, "committed"), Producer(t, "aborted")
    for partition, each in enumerate((opened, committed, aborted)):
        each.send(topic, each.transactional_id.split("-")[0].encode(), partition=partition)  # type: ignore[union-attr]
    committed.end(commit=True, adopt=False)
    aborted.end(commit=False, adopt=False)
    t.restart(kill=True)
    for partition in range(3):
        t.wait(partial(t.serves, topic, partition), "partition served")
    t.same(state_of(t, opened.transactional_id), "Ongoing", "the open one")
    for each, direction in ((committed, True), (aborted, False)):
        answer = each.end(commit=direction, adopt=False)
        t.same((answer.producer_id, answer.producer_epoch), (each.id, each.epoch + 1), "the retry's answer")
        each.end(commit=not direction, expect="INVALID_TXN_STATE")
    t.same(t.values(topic, committed=True), [], "opened")
    t.same(t.values(topic, partition=1, committed=True), [b"committed"], "committed")
    t.same(t.values(topic, partition=2, committed=True), [], "aborted")
    opened.send(topic, b"more")
    opened.end(commit=True)
    t.same(t.values(topic, committed=True), [b"opened", b"more"], "committed after the kill")
    committed.send(topic, b"late", partition=1, expect=OLD_EPOCH)


@scenario("B12", "D10", needs=Power.INSIDE | Power.KILL, unobservable="Kafka cannot be stopped between two markers")
def killed_between_the_markers(t: ScenarioClient) -> None:
    """A commit that was prepared is completed in every partition and for the offsets, wherever the broker died."""
    warm_up(t.target)
    for nth, point in enumerate(("txn.after_prepare", "txn.after_marker", "txn.before_complete")):
        topic, group = t.topic(f"t{nth}", partitions=2), t.name(f"g{nth}")
        p = Producer(t, f"x{nth}")
        for partition in range(2):
            p.send(topic, b"data", partition=partition)
        row = {"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}
        t.ask("TxnOffsetCommit", 5, **p.who, group_id=group, generation_id=-1, member_id="", topics=[row])
        environment = t.target.environment  # type: ignore[attr-defined]
        environment["KAFKA_SHIM_FAULTS"] = f"{point}=kill@1"
        t.restart()
        t.closes("EndTxn", 5, **p.who, committed=True)
        environment.pop("KAFKA_SHIM_FAULTS")
        t.target.kill()
        t.target.start()
        for partition in range(2):
            t.same(t.values(topic, partition=partition, committed=True), [b"data"], f"killed at {point}")
        asked = {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}
        answer = t.ask("OffsetFetch", 9, require_stable=True, groups=[asked])
        part = answer.groups[0].topics[0].partitions[0]
        t.same((name_of(part.error_code), part.committed_offset), (NONE, 1), "the offset agrees")
        t.same(state_of(t, p.transactional_id), "CompleteCommit", "state")


@scenario("B21", needs=Power.KILL, is_smoke=False)
def a_pipeline_outlives_its_broker(t: ScenarioClient) -> None:
    """consume-transform-produce with offsets in the transaction, the broker killed in three transactions: before the
    writes, before EndTxn, after it; output and offsets exactly once. No marker is under way when it dies: Kafka may
    lose those (B12)."""
    count = 12
    t.close()
    pipeline.fill(t.target.bootstrap, count)

    def revive() -> None:
        t.target.kill()
        t.target.start()
        warm_up(t.target)

    app = Killed(t, count, 3, revive)
    try:
        app.run()
    finally:
        app.close()
    t.same(app.deaths >= 3, True, "the broker died three times")
    pipeline.verify(t.target.bootstrap, count)
    with t.connection as client:
        for partition in range(pipeline.SINK_PARTITIONS):
            t.note("sink", partition, pipeline.read_committed(client, pipeline.SINK, partition))


class Killed(pipeline.Pipeline):
    """Kills its broker in its second, third and fourth transaction, at another step each."""

    def __init__(self, client: ScenarioClient, count: int, seed: int, revive) -> None:  # type: ignore[no-untyped-def]
        super().__init__(client.target.bootstrap, count, seed, revive)
        self._scenario = client
        self._left = ["write", "end", "ended"]

    def _write(self, values: list[str]) -> None:
        self._kill("write")
        super()._write(values)

    def _end(self, commit: bool) -> None:
        self._kill("end")
        super()._end(commit)
        self._kill("ended")

    def _kill(self, step: str) -> None:
        if self.transactions and self._left and self._left[0] == step:
            self._left.pop(0)
            self._scenario.wait(lambda: not self._state().startswith("Prepare"), "no marker is under way")
            self._scenario.target.kill()

    def _state(self) -> str:
        answer = self._ask("DescribeTransactions", 0, transactional_ids=[pipeline.TRANSACTIONAL_ID])
        return str(answer.transaction_states[0].transaction_state)


@scenario("D4", needs=Power.KILL)
def the_checker_finds_nothing_after_a_kill(t: ScenarioClient) -> None:
    """Interleaved transactions of three producers, a kill in the middle; the history checker judges what every reader
    saw."""
    topic = t.topic(partitions=2)
    chance = random.Random(11)
    writers = [Producer(t, f"w{number}") for number in range(3)]
    history: list[Operation] = []
    pending: dict[int, list[list[object]]] = {}

    def note(process: int, outcome: str, ops: list[list[object]]) -> None:
        history.append(Operation(len(history), process, outcome, ops))

    for step in range(40):
        number = chance.randrange(3)
        p = writers[number]
        if step == 20:
            t.restart(kill=True)
            for partition in range(2):
                t.wait(partial(t.serves, topic, partition), "partition served")
        ops = pending.setdefault(number, [])
        if len(ops) < 3 and chance.random() < 0.7:
            partition = chance.randrange(2)
            value = f"{number}.{step}"
            offset = p.send(topic, value.encode(), partition=partition).base_offset
            ops.append(["send", f"t-{partition}", offset, value])
        elif ops:
            commit = chance.random() < 0.6
            p.end(commit=commit)
            note(number, OK if commit else FAIL, pending.pop(number))
    for number, ops in pending.items():
        if ops:
            writers[number].end(commit=True)
            note(number, OK, ops)
    for process in (10, 11):
        read: dict[str, list[list[object]]] = {}
        for partition in range(2):
            from kafka_shim.compat.scenarios.scenario_client import records_of

            answer = t.fetch(topic, partition=partition, committed=True)
            shown = set(t.values(topic, partition=partition, committed=True))
            read[f"t-{partition}"] = [
                [record.offset, record.value.decode()]
                for record, batch in records_of(answer.records or b"")
                if not batch.is_control and record.value in shown
            ]
        note(process, OK, [["poll", read]])
    found = checker.check(history)
    t.same([str(each) for each in getattr(found, "errors", [])], [], "anomalies")
    t.note("history", f"{len(history)} operations", str(getattr(found, "errors", [])))


@scenario("D12", "B14", needs=Power.KILL, is_smoke=False)
def read_committed_after_a_restart_at_the_stable_offset(t: ScenarioClient) -> None:
    """A committed offset at the LSO of an open transaction: after a restart the fetch is empty, never out of range."""
    topic = t.topic()
    t.produce(topic, [b"a", b"b"])
    p = Producer(t, "x")
    p.send(topic, b"open")
    t.produce(topic, [b"behind"])
    for kill in (False, True):
        t.restart(kill=kill)
        t.wait(lambda: t.serves(topic, 0), "partition served")
        for offset in (2, 3, 4):
            answer = t.fetch(topic, offset, committed=True)
            t.same((name_of(answer.error_code), offsets_in(answer)), (NONE, []), f"from {offset}")
            t.same(answer.last_stable_offset, 2, "LSO")
        t.error(t.fetch(topic, 5, committed=True), "OFFSET_OUT_OF_RANGE")
    p.end(commit=False)
    t.same(t.values(topic, committed=True), [b"a", b"b", b"behind"], "after the abort")
