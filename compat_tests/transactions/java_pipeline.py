"""Consume, transform, produce with the Java clients: a feeder, a worker in a group that aborts once, and a reader."""

from __future__ import annotations

import time

from kafka_shim.targets.java_transactions import JavaTransactions
from kafka_shim.targets.requests import create_topic
from kafka_shim.wire_client import Connection

SOURCE, SINK, GROUP = "java-source", "java-sink", "java-group"
PARTITIONS = 2
PATIENCE_S = 60


def run(bootstrap: str, rounds: int = 3, records: int = 6) -> list[str]:
    """Creates the topics, writes `rounds` times `records` numbers in transactions, and passes each on exactly once
    although the second round is aborted and read again. Returns the sink's committed values, sorted.
    """
    with Connection(bootstrap) as client:
        for topic in (SOURCE, SINK):
            create_topic(client, topic, PARTITIONS)
    with JavaTransactions(bootstrap) as java:
        for name in ("feeder", "worker"):
            java.producer(name, name)
            java.call("init", name)
        for turn in range(rounds):
            _feed(java, turn, records)
            outcomes = ("abort", "commit") if turn == 1 else ("commit",)
            for attempt, outcome in enumerate(outcomes):
                _pass_on(java, f"c{turn}.{attempt}", records, outcome)
        java.consumer("reader", "java-reader")
        java.call("subscribe", "reader", SINK)
        found = _poll(java, "reader", rounds * records)
        java.call("close-consumer", "reader")
        for name in ("feeder", "worker"):
            java.call("close-producer", name)
    return sorted(found)


def _feed(java: JavaTransactions, turn: int, records: int) -> None:
    java.call("begin", "feeder")
    for number in range(records):
        java.send("feeder", SOURCE, f"{turn}.{number}", number % PARTITIONS)
    java.call("commit", "feeder")


def _pass_on(java: JavaTransactions, name: str, records: int, outcome: str) -> None:
    """Runs one transaction of the worker: what a member of the group reads goes to the sink, with its offsets."""
    java.consumer(name, GROUP)
    java.call("subscribe", name, SOURCE)
    values = _poll(java, name, records)
    java.call("begin", "worker")
    for number, value in enumerate(values):
        java.send("worker", SINK, f"done-{value}", number % PARTITIONS)
    java.call("flush", "worker")
    java.call("offsets-of", "worker", name)
    java.call(outcome, "worker")
    java.call("close-consumer", name)


def _poll(java: JavaTransactions, name: str, count: int) -> list[str]:
    found: list[str] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        found += [word.partition("=")[2] for word in java.call("poll", name, "300")]
    return found
