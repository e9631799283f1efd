"""Row D16: a chain of three stages with three consumers each, of which some leave, come back, or are static."""

from __future__ import annotations

import time

from kafka_shim.compat.scenarios import scenario
from kafka_shim.targets.waiting import PATIENCE_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.compat.scenarios.scenario_client import ScenarioClient

STAGES, PARTITIONS, COUNT = 3, 3, 30
# A commit into a rebalance that has begun; the record is read again by whoever gets its partition.
ALLOWED = {"REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "_ASSIGNMENT_LOST", "_NO_OFFSET"}


class Chain:
    """Topics c0 to c3 and the consumers of each stage; each forwards a record, then commits, then polls again."""

    def __init__(self, client: ScenarioClient) -> None:
        from confluent_kafka import Producer

        self.client = client
        self.topics = [client.topic(f"c{number}", PARTITIONS) for number in range(STAGES + 1)]
        self.producer = Producer({"bootstrap.servers": client.target.bootstrap, "linger.ms": 0})
        self.stages: list[list[Any]] = [[] for _ in range(STAGES)]
        self.errors: list[str] = []

    def join(self, stage: int, instance: str = "") -> None:
        from confluent_kafka import Consumer

        options = {
            "bootstrap.servers": self.client.target.bootstrap,
            "group.id": f"{self.topics[stage]}-group",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 500,
            "partition.assignment.strategy": "cooperative-sticky",
            "log_level": 0,
        }
        if instance:
            options["group.instance.id"] = f"{instance}-{self.client.nonce}"
        consumer = Consumer(options)
        consumer.subscribe([self.topics[stage]])
        self.stages[stage].append(consumer)

    def fill(self, first: int) -> None:
        for number in range(first, first + COUNT):
            self.producer.produce(self.topics[0], str(number), partition=number % PARTITIONS)
        self.producer.flush(PATIENCE_S)

    def turn(self) -> None:
        """Every consumer polls once."""
        for stage, consumers in enumerate(self.stages):
            for consumer in consumers:
                message = consumer.poll(0.005)
                if message is None:
                    continue
                if message.error():
                    self.errors.append(message.error().name())
                    continue
                self.producer.produce(self.topics[stage + 1], message.value(), partition=message.partition())
                self.producer.flush(PATIENCE_S)
                self._commit(consumer, message)

    def _commit(self, consumer: Any, message: Any) -> None:
        from confluent_kafka import KafkaException

        try:
            consumer.commit(message=message, asynchronous=False)
        except KafkaException as error:
            self.errors.append(error.args[0].name())

    def arrived(self) -> list[int]:
        ends = [self.client.end_offset(self.topics[-1], partition=index) for index in range(PARTITIONS)]
        values = []
        for partition, end in enumerate(ends):
            at = 0
            while at < end:
                found = self.client.read(self.topics[-1], partition, at)
                values += [int(value) for _, value in found]
                at = found[-1][0] + 1
        return values

    def run_until(self, count: int) -> None:
        deadline = time.monotonic() + 90
        while len(set(self.arrived())) < count:
            for _ in range(5):
                self.turn()
            if time.monotonic() > deadline:
                raise AssertionError(f"{len(set(self.arrived()))} of {count} arrived; errors: {self.errors}")

    def close(self) -> None:
        for consumers in self.stages:
            for consumer in consumers:
                consumer.close()


@scenario("D16", is_smoke=False, client="confluent-kafka")
def a_chain_under_churn(t: ScenarioClient) -> None:
    """Members leave, come and come back under their static name in every stage: nothing is lost, nobody who lives is
    told that it is unknown, and nothing comes twice unless a commit was refused."""
    chain = Chain(t)
    try:
        for stage in range(STAGES):
            chain.join(stage, instance=f"static-{stage}")
            chain.join(stage)
            chain.join(stage)
        chain.fill(0)
        chain.run_until(COUNT)
        chain.fill(COUNT)
        for stage in range(STAGES):
            chain.stages[stage].pop().close()
            chain.stages[stage].pop(0).close()
            chain.join(stage, instance=f"static-{stage}")
        chain.run_until(2 * COUNT)
        chain.fill(2 * COUNT)
        for stage in range(STAGES):
            chain.join(stage)
        chain.run_until(3 * COUNT)
        found = chain.arrived()
        errors = {error for error in chain.errors if error not in ALLOWED}
        t.same(errors, set(), "errors of live members")
        t.same(sorted(set(found)), list(range(3 * COUNT)), "what arrived")
        if not chain.errors:
            t.same(len(found), 3 * COUNT, "each once")
        t.note("three stages", f"{3 * COUNT} records", "all arrived")
    finally:
        chain.close()
