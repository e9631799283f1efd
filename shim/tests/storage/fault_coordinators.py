"""The injector of `fault_injection` under a whole node: metadata store, group and transaction coordinator.

`run(path, seed, nth, kind)` makes one run of a seeded workload: topics made, deleted and configured, offsets committed,
transactions with markers. One call of storage fails on the way; then comes a kill, and the next start must find what
the model holds: every acknowledged change, none that was refused, and each transaction as a whole or not at all."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka_shim.errors import KafkaError
from kafka_shim.metadata.image import RESOURCE_TOPIC
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.tests.group import harness as group_harness
from kafka_shim.tests.metadata.test_store import facts
from kafka_shim.tests.storage.fault_injection import Injector
from kafka_shim.tests.txn import harness as txn_harness

STEPS = 40


class Node(group_harness.Node, txn_harness.Node):
    """A node with both coordinators."""

    topic_name = group_harness.TOPIC

    def __init__(self, path: Path) -> None:
        super().__init__(path, transaction_state_log_num_partitions=2)

    def start_coordinator(self) -> None:
        group_harness.Node.start_coordinator(self)
        self.metadata.ensure_internal_topic(txn_harness.TOPIC)
        txn_harness.Node.start_coordinator(self)

    def stop_coordinator(self) -> None:
        txn_harness.Node.stop_coordinator(self)
        group_harness.Node.stop_coordinator(self)


class Run:
    """One run. `wanted` is what must be found; of `either` each set of values is found whole or not at all."""

    def __init__(self, path: Path, seed: int, injector: Injector) -> None:
        self.node = Node(path)
        self.node.topic("orders")
        self.random = random.Random(seed)
        self.injector = injector
        self.number = 0
        self.kills = 0
        self.offsets: dict[str, int] = {}
        # Values of transactions: acknowledged, not to be seen, and those of ends that failed.
        self.committed: set[str] = set()
        self.hidden: set[str] = set()
        self.either: list[set[str]] = []
        self.producer: tuple[int, int] | None = None
        self.pending: set[str] = set()

    def value(self) -> str:
        self.number += 1
        return f"v{self.number}"

    # --- steps

    def make_topic(self) -> None:
        name = f"made-{self.random.randrange(4)}"
        topics = self.node.metadata.image.topics
        if name in topics:
            done, _ = self.injector.attempt(lambda: self.node.metadata.delete_topic(name))
            assert not done or name not in topics
        else:
            done, _ = self.injector.attempt(lambda: self.node.metadata.create_topic(name, 2, 1, {"retention.ms": "7"}))
            assert not done or name in topics

    def configure(self) -> None:
        self.number += 1
        record = ConfigRecord(
            resource_type=RESOURCE_TOPIC, resource_name="orders", name="retention.ms", value=f"{10**12 + self.number}"
        )
        done, _ = self.injector.attempt(lambda: self.node.metadata.alter_configs([record]))
        stored = self.node.metadata.image.config_of(RESOURCE_TOPIC, "orders").get("retention.ms")
        assert not done or stored == record.value

    def commit_offset(self) -> None:
        group = f"g{self.random.randrange(3)}"
        self.number += 1
        done, code = self.injector.attempt(lambda: self.node.commit(group, "orders", self.number))
        assert not done or code == 0 or self.injector.fired, code
        if done and code == 0:
            self.offsets[group] = self.number

    def produce(self) -> None:
        if self.producer is None:
            done, self.producer = self.injector.attempt(lambda: self.node.call(self.node.init, "app"))
            if not done:
                self.producer = None
                return
        value, producer, partition = self.value(), self.producer, self.random.randrange(2)
        done, _ = self.injector.attempt(
            lambda: self.node.call(self.node.produce, "app", producer, "orders", partition, value)
        )
        if done:
            self.pending.add(value)
        else:
            # The transaction cannot be relied on any more, as a client would see it.
            self.hidden.add(value)
            self.end(commit=False)

    def end(self, *, commit: bool) -> None:
        if self.producer is None:
            return
        producer, values = self.producer, self.pending
        self.producer, self.pending = None, set()
        done, _ = self.injector.attempt(lambda: self.node.call(self.node.end, "app", producer, commit))
        if not done:
            self.either.append(values) if commit else self.hidden.update(values)
        elif commit:
            self.committed |= values
        else:
            self.hidden |= values

    def step(self) -> None:
        steps: list[tuple[int, Callable[[], Any]]] = [
            (3, self.make_topic),
            (2, self.configure),
            (4, self.commit_offset),
            (6, self.produce),
            (3, lambda: self.end(commit=self.random.random() < 0.7)),
            (1, lambda: self.node.advance(200)),
            (1, self.restart),
        ]
        self.random.choices([one for _, one in steps], [weight for weight, _ in steps])[0]()

    def restart(self) -> None:
        """A kill, and a start that no fault meets."""
        was_active, self.injector.is_active = self.injector.is_active, False
        before = facts(self.node.metadata)
        self.node.crash()
        self.kills += 1
        assert facts(self.node.metadata) == before, "the metadata"
        self.injector.is_active = was_active

    # --- what must hold

    def heal(self) -> None:
        """With the fault over, everything works without a restart, and no transaction hangs."""
        self.injector.is_active, self.injector.fired = False, ""
        node = self.node
        for log in node.logs.partitions.loaded.values():
            if not log.is_offline and log.sync_error is not None:
                self.attempt_quietly(log.latest)
        self.attempt_quietly(node.logs.metadata_log.latest)
        assert node.logs.reopen_offline(), "a partition stays offline"
        node.advance(1000)

    def attempt_quietly(self, step: Callable[[], Any]) -> None:
        try:
            step()
        except KafkaError:
            return

    def go_on(self) -> None:
        """Every kind of step, none of which may be refused."""
        self.heal()
        self.hidden |= self.pending
        self.producer, self.pending = None, set()
        for _ in range(3):  # the open one of a client that is gone is fenced first
            try:
                self.node.call(self.node.init, "app")
                break
            except KafkaError:
                self.node.advance(1000)
        for step in (self.make_topic, self.configure, self.commit_offset, self.produce, self.produce):
            step()
        self.end(commit=True)

    def check(self) -> None:
        node = self.node
        seen = set(node.visible("orders", 0)) | set(node.visible("orders", 1))
        assert self.committed <= seen, f"acknowledged and lost: {self.committed - seen}"
        shown = seen & (self.hidden | self.pending)
        assert not shown, f"aborted, refused or open, and shown: {shown}"
        for values in self.either:
            assert not values & seen or values <= seen, f"half a transaction: {values & seen} of {values}"
        for group, offset in self.offsets.items():
            assert node.committed(group, "orders") == (offset, 0), f"{group} at {node.committed(group, 'orders')}"
        assert not self.injector.is_active


def run(path: Path, seed: int, nth: int, kind: str, *, kill_at_once: bool = False) -> tuple[int, str, int]:
    """One run: the calls counted, what failed first, kills. AssertionError, or whatever else escapes, is a finding."""
    injector = Injector()
    injector.nth, injector.kind = nth, kind
    with injector.installed():
        one = Run(path, seed, injector)
        try:
            injector.is_active = True
            for _ in range(STEPS):
                one.step()
                if kill_at_once and injector.fired:
                    break
            fired, injector.is_active = injector.fired, False
            if not kill_at_once:
                one.go_on()
                one.check()
            for _ in range(2):
                one.restart()
                one.heal()
                one.check()
                one.go_on()
                one.check()
        finally:
            injector.is_active = False
            one.node.close()
    return injector.count, fired, one.kills
