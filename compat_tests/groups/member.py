"""One consumer in a process of its own, so that it can be killed: `python -m kafka_shim.compat.groups.member KIND ...`.

It prints a line for each thing that happens to it: `started`, `assigned T:P ...`, `record T P O VALUE`, `committed`,
`error TEXT`, `closed`. It commits what it has printed (and sent on), after each poll. SIGTERM closes it properly.

KIND is kafka-python, aiokafka, confluent or confluent-consumer; options are `key=value`: `forward=TOPIC` sends each
record on before it is committed, `instance=ID`, `session=MS`, `assignor=NAME`.
"""

from __future__ import annotations

import asyncio
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Stop:
    """Whether SIGTERM has come."""

    def __init__(self) -> None:
        self.is_wanted = False
        signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, *_: object) -> None:
        self.is_wanted = True


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")


def say_assigned(partitions: Any) -> None:
    say("assigned", *sorted(f"{topic}:{partition}" for topic, partition in partitions))
    sys.stdout.flush()


class Forwarder:
    """Sends records on to the next topic, all of a poll at once."""

    def __init__(self, bootstrap: str, topic: str | None) -> None:
        self.topic = topic
        if topic is not None:
            from confluent_kafka import Producer

            self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, "enable.idempotence": True})

    def send(self, value: bytes) -> None:
        if self.topic is not None:
            self.producer.produce(self.topic, value)

    def flush(self) -> None:
        if self.topic is not None:
            self.producer.flush()


def confluent(bootstrap: str, group: str, topic: str, protocol: str, options: dict[str, str], stop: Stop) -> None:
    from confluent_kafka import Consumer, KafkaException

    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    if protocol == "classic":
        settings["session.timeout.ms"] = int(options.get("session", 6000))
        settings["heartbeat.interval.ms"] = 500
        settings["partition.assignment.strategy"] = options.get("assignor", "range")
    elif "assignor" in options:
        settings["group.remote.assignor"] = options["assignor"]
    if "instance" in options:
        settings["group.instance.id"] = options["instance"]
    settings["topic.metadata.refresh.interval.ms"] = 500
    consumer = Consumer(settings)

    last: Any = None

    def note(held: Any, _: object) -> None:
        # librdkafka reports only added or revoked partitions. The whole assignment is requested after the poll.
        nonlocal last
        say_assigned([])
        last = None

    consumer.subscribe([topic], on_assign=note, on_revoke=note)
    forwarder = Forwarder(bootstrap, options.get("forward"))
    while not stop.is_wanted:
        messages = consumer.consume(500, 0.1)
        held = sorted((each.topic, each.partition) for each in consumer.assignment())
        if held != last:
            say_assigned(held)
            last = held
        good = []
        for message in messages:
            error = message.error()
            if error is not None:
                say("error", error.name())
                continue
            value = message.value() or b""
            say("record", message.topic(), message.partition(), message.offset(), value.decode())
            forwarder.send(value)
            good.append(message)
        forwarder.flush()
        sys.stdout.flush()
        if good:
            try:
                consumer.commit(asynchronous=False)
                say("committed")
            except KafkaException as error:
                say("error", error.args[0].name())
    consumer.close()


def kafka_python(bootstrap: str, group: str, topic: str, options: dict[str, str], stop: Stop) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.errors import KafkaError

    assignors = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            say_assigned(consumer.assignment())

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id=options.get("instance"),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=int(options.get("session", 6000)),
        heartbeat_interval_ms=500,
        metadata_max_age_ms=500,
        partition_assignment_strategy=[assignors[options.get("assignor", "range")]],
    )
    consumer.subscribe([topic], listener=Listener())
    forwarder = Forwarder(bootstrap, options.get("forward"))
    coordinator = consumer._coordinator
    while not stop.is_wanted:
        found = consumer.poll(100, max_records=500)
        if coordinator.rejoining and not coordinator.need_rejoin():
            # 3.0.12 loses a rejoin for new partitions, and its heartbeat, if the poll times out between a leader's
            # assignment and the SyncGroup response. Any broker would wait for it in vain.
            coordinator.request_rejoin()
        for records in found.values():
            for record in records:
                say("record", record.topic, record.partition, record.offset, record.value.decode())
                forwarder.send(record.value)
        forwarder.flush()
        sys.stdout.flush()
        if found:
            try:
                consumer.commit()
                say("committed")
            except KafkaError as error:
                say("error", type(error).__name__)
    consumer.close()


async def aiokafka(bootstrap: str, group: str, topic: str, options: dict[str, str], stop: Stop) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from aiokafka.errors import KafkaError

    assignors = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            say_assigned(assigned)

    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id=options.get("instance"),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=int(options.get("session", 6000)),
        heartbeat_interval_ms=500,
        metadata_max_age_ms=500,
        partition_assignment_strategy=(assignors[options.get("assignor", "range")],),
    )
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    forwarder = Forwarder(bootstrap, options.get("forward"))
    while not stop.is_wanted:
        found = await consumer.getmany(timeout_ms=100, max_records=500)
        for records in found.values():
            for record in records:
                say("record", record.topic, record.partition, record.offset, record.value.decode())
                forwarder.send(record.value)
        forwarder.flush()
        sys.stdout.flush()
        if found:
            try:
                await consumer.commit()
                say("committed")
            except KafkaError as error:
                say("error", type(error).__name__)
    await consumer.stop()


def main(kind: str, bootstrap: str, group: str, topic: str, *pairs: str) -> None:
    """Consume until SIGTERM."""
    stop = Stop()
    say("started")
    sys.stdout.flush()
    options = dict(pair.split("=", 1) for pair in pairs)
    if kind == "kafka-python":
        kafka_python(bootstrap, group, topic, options, stop)
    elif kind == "aiokafka":
        asyncio.run(aiokafka(bootstrap, group, topic, options, stop))
    elif kind == "confluent":
        confluent(bootstrap, group, topic, "classic", options, stop)
    elif kind == "confluent-consumer":
        confluent(bootstrap, group, topic, "consumer", options, stop)
    else:
        raise SystemExit(f"unknown kind {kind}")
    say("closed")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
