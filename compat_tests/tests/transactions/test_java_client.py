"""Java's transactional producer reaches the states that Kafka brings it to (B22), and readers see what is committed."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from kafka_shim.targets import Target
from kafka_shim.targets.java_transactions import JavaClientError, JavaTransactions
from kafka_shim.targets.waiting import PATIENCE_S, right_answer

pytestmark = pytest.mark.java


def read(java: JavaTransactions, name: str, topic: str, count: int, isolation: str = "read_committed") -> list[str]:
    """`count` values of partition 0 from its beginning, then nothing more for a while."""
    java.consumer(name, isolation=isolation)
    java.call("assign", name, topic, "0")
    values: list[str] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(values) < count and time.monotonic() < deadline:
        values += [word.partition("=")[2] for word in java.call("poll", name, "200")]
    values += [word.partition("=")[2] for word in java.call("poll", name, "300")]
    java.call("close-consumer", name)
    return values


def begin(java: JavaTransactions, name: str, topic: str, value: str) -> None:
    java.call("begin", name)
    java.send(name, topic, value)
    java.call("flush", name)


def settle(java: JavaTransactions, name: str, *states: str) -> None:
    """Waits until a producer is in one of `states`: the client answers its caller a moment before its machine has
    moved on."""
    right_answer(lambda: java.state(name), lambda state: state in states, f"{name} is in one of {states}")


def test_commit_and_abort(
    java_clients: JavaTransactions, new_topic: Callable[..., str], new_name: Callable[[str], str]
) -> None:
    java, topic, name = java_clients, new_topic(), new_name("p")
    java.producer(name, name)
    settle(java, name, "UNINITIALIZED")
    java.call("init", name)
    settle(java, name, "READY")
    begin(java, name, topic, "a")
    settle(java, name, "IN_TRANSACTION")
    java.call("commit", name)
    settle(java, name, "READY")
    begin(java, name, topic, "aborted")
    java.call("abort", name)
    settle(java, name, "READY")
    begin(java, name, topic, "b")
    java.call("commit", name)
    assert read(java, new_name("c"), topic, 2) == ["a", "b"]
    assert read(java, new_name("c"), topic, 3, "read_uncommitted") == ["a", "aborted", "b"]
    java.call("close-producer", name)


def test_empty_transactions(java_clients: JavaTransactions, new_name: Callable[[str], str]) -> None:
    java, name = java_clients, new_name("p")
    java.producer(name, name)
    java.call("init", name)
    for call in ("commit", "abort", "commit"):
        java.call("begin", name)
        java.call(call, name)
        settle(java, name, "READY")
    java.call("close-producer", name)


@pytest.mark.parametrize("inside", [False, True], ids=["between transactions", "inside a transaction"])
def test_a_second_instance_fences_the_first(
    java_clients: JavaTransactions, new_topic: Callable[..., str], new_name: Callable[[str], str], inside: bool
) -> None:
    java, topic, name, other = java_clients, new_topic(), new_name("p"), new_name("p")
    java.producer(name, name)
    java.call("init", name)
    if inside:
        begin(java, name, topic, "lost")
    java.producer(other, name)
    java.call("init", other)
    if not inside:
        java.call("begin", name)
        java.send(name, topic, "lost")
    with pytest.raises(JavaClientError, match=r"ProducerFenced|InvalidProducerEpoch"):
        java.call("commit", name)
    settle(java, name, "FATAL_ERROR", "ABORTABLE_ERROR")
    begin(java, other, topic, "kept")
    java.call("commit", other)
    assert read(java, new_name("c"), topic, 1) == ["kept"]
    for each in (name, other):
        java.call("close-producer", each)


def test_a_timed_out_transaction(
    java_clients: JavaTransactions, new_topic: Callable[..., str], new_name: Callable[[str], str]
) -> None:
    """The broker aborts it within ten seconds of its time; the producer learns it, aborts, and goes on."""
    java, topic, name = java_clients, new_topic(), new_name("p")
    java.producer(name, name, transaction_timeout_ms="1000")
    java.call("init", name)
    begin(java, name, topic, "late")
    values: list[str] = []
    reader = new_name("c")
    java.consumer(reader)
    java.call("assign", reader, topic, "0")
    other = new_name("p")
    java.producer(other, other)
    java.call("init", other)
    begin(java, other, topic, "behind")
    java.call("commit", other)
    deadline = time.monotonic() + PATIENCE_S
    while not values and time.monotonic() < deadline:
        values = java.call("poll", reader, "500")
    assert [word.partition("=")[2] for word in values] == ["behind"]
    java.send(name, topic, "too late")
    with pytest.raises(JavaClientError):
        java.call("commit", name)
    settle(java, name, "ABORTABLE_ERROR", "FATAL_ERROR")
    if java.state(name) == "ABORTABLE_ERROR":
        java.call("abort", name)
        begin(java, name, topic, "again")
        java.call("commit", name)
        values = right_answer(lambda: java.call("poll", reader, "500"), bool, "what the next transaction wrote comes")
        assert [word.partition("=")[2] for word in values] == ["again"]
    for each in (name, other):
        java.call("close-producer", each)
    java.call("close-consumer", reader)


def test_sending_outside_of_a_transaction_is_the_client_s_own_error(
    java_clients: JavaTransactions, new_topic: Callable[..., str], new_name: Callable[[str], str]
) -> None:
    java, topic, name = java_clients, new_topic(), new_name("p")
    java.producer(name, name)
    java.call("init", name)
    with pytest.raises(JavaClientError, match="IllegalState"):
        java.send(name, topic, "x")
    java.call("close-producer", name)


def test_many_partitions_in_one_transaction(
    java_clients: JavaTransactions, new_topic: Callable[..., str], new_name: Callable[[str], str]
) -> None:
    java, topic, name = java_clients, new_topic(20), new_name("p")
    java.producer(name, name)
    java.call("init", name)
    for offset, outcome in ((0, "commit"), (2, "abort"), (4, "commit")):
        java.call("begin", name)
        for partition in range(20):
            java.send(name, topic, f"{outcome}-{partition}", partition)
        # Between two records of a partition there is one marker. Java would not even send what it is to abort.
        assert java.call("flush", name) == [str(offset)] * 20
        java.call(outcome, name)
    assert read(java, new_name("c"), topic, 2) == ["commit-0", "commit-0"]
    java.call("close-producer", name)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_aborted_compressed_batches_stay_unseen(
    java_clients: JavaTransactions, new_topic: Callable[..., str], new_name: Callable[[str], str], codec: str
) -> None:
    """D7."""
    java, topic, name = java_clients, new_topic(), new_name("p")
    java.producer(name, name, compression_type=codec, linger_ms="20")
    java.call("init", name)
    expected = []
    for number, outcome in enumerate(("commit", "abort", "commit")):
        java.call("begin", name)
        for record in range(50):
            java.send(name, topic, f"{number}-{record}")
        java.call(outcome, name)
        if outcome == "commit":
            expected += [f"{number}-{record}" for record in range(50)]
    assert read(java, new_name("c"), topic, 100) == expected
    java.call("close-producer", name)


def test_offsets_in_a_transaction(
    java_clients: JavaTransactions, new_topic: Callable[..., str], new_name: Callable[[str], str]
) -> None:
    """Consume, transform, produce: what the transaction did not commit is read again."""
    java, source, sink = java_clients, new_topic(), new_topic()
    feeder, worker, group = new_name("p"), new_name("p"), new_name("group")
    java.producer(feeder, feeder)
    java.call("init", feeder)
    java.call("begin", feeder)
    for number in range(6):
        java.send(feeder, source, str(number))
    java.call("commit", feeder)
    java.producer(worker, worker)
    java.call("init", worker)
    for outcome in ("abort", "commit"):
        reader = new_name("c")
        java.consumer(reader, group)
        java.call("subscribe", reader, source)
        got: list[str] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(got) < 6 and time.monotonic() < deadline:
            got += [word.partition("=")[2] for word in java.call("poll", reader, "300")]
        assert got == [str(number) for number in range(6)]
        java.call("begin", worker)
        for value in got:
            java.send(worker, sink, f"done-{value}")
        java.call("offsets-of", worker, reader)
        java.call(outcome, worker)
        java.call("close-consumer", reader)
    reader = new_name("c")
    java.consumer(reader, group)
    java.call("subscribe", reader, source)
    for _ in range(10):
        assert java.call("poll", reader, "100") == []
    java.call("close-consumer", reader)
    assert read(java, new_name("c"), sink, 6) == [f"done-{number}" for number in range(6)]
    for each in (feeder, worker):
        java.call("close-producer", each)


def test_a_producer_survives_a_restart_of_the_broker(
    target: Target, java_clients: JavaTransactions, new_topic: Callable[..., str], new_name: Callable[[str], str]
) -> None:
    java, topic, name = java_clients, new_topic(), new_name("p")
    java.producer(name, name)
    java.call("init", name)
    for kill in (False, True):
        begin(java, name, topic, f"before-{kill}")
        target.restart(kill=kill)
        java.send(name, topic, f"after-{kill}")
        java.call("commit", name)
        settle(java, name, "READY")
    assert read(java, new_name("c"), topic, 4) == ["before-False", "after-False", "before-True", "after-True"]
    java.call("close-producer", name)
