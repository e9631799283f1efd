"""Rows A8, B10, B20, D2 with a stock client behind something that delivers its requests twice, or late."""

from __future__ import annotations

from compat_tests.recording import recorder
from compat_tests.scenarios import scenario
from compat_tests.scenarios.talk import Talk
from compat_tests.targets import Power
from shim.wiretap.frames import Request

PRODUCE, ADD_PARTITIONS, ADD_OFFSETS, END_TXN = 0, 24, 25, 26


@scenario("A8", "B10", needs=Power.PROXY)
def every_request_of_a_transaction_arrives_twice(t: Talk) -> None:
    """librdkafka's Produce, AddPartitionsToTxn and EndTxn are each delivered twice: every record is there once, each
    transaction ends once in its direction."""
    from confluent_kafka import Producer

    topic, transactional_id = t.topic(), t.name("twice")
    counts = {PRODUCE: 0, ADD_PARTITIONS: 0, END_TXN: 0}

    async def twice(request: Request, frame: bytes) -> list[bytes]:
        if request.api_key not in counts:
            return [frame]
        counts[request.api_key] += 1
        return [frame, frame]

    with recorder(t.target.bootstrap, on_request=twice) as address:
        options = {"bootstrap.servers": address, "transactional.id": transactional_id, "linger.ms": 0, "log_level": 0}
        producer = Producer(options)
        producer.init_transactions(30)
        for number in range(4):
            producer.begin_transaction()
            for part in range(3):
                producer.produce(topic, f"{number}.{part}", partition=0)
                producer.flush(30)
            if number % 2:
                producer.abort_transaction(30)
            else:
                producer.commit_transaction(30)
        del producer
    t.settle(transactional_id)
    t.same(all(counts.values()), True, "each kind was repeated")
    wanted = [f"{number}.{part}".encode() for number in (0, 2) for part in range(3)]
    t.same(t.values(topic, committed=True), wanted, "committed")
    everything = [f"{number}.{part}".encode() for number in range(4) for part in range(3)]
    t.same(t.values(topic), everything, "all that was written")


@scenario("D2", "B20", needs=Power.PROXY)
def a_produce_is_held_across_the_abort(t: Talk) -> None:
    """A copy of a transaction's Produce arrives when its transaction is aborted and the next is open: nothing of it is
    seen, and nothing hangs."""
    from confluent_kafka import Producer

    topic, transactional_id = t.topic(), t.name("late")
    held: list[bytes] = []
    released: list[int] = []

    async def late(request: Request, frame: bytes) -> list[bytes]:
        if request.api_key == PRODUCE and not held:
            held.append(frame)
        elif request.api_key == PRODUCE and not released:
            released.append(1)
            return [frame, held[0]]
        return [frame]

    with recorder(t.target.bootstrap, on_request=late) as address:
        options = {"bootstrap.servers": address, "transactional.id": transactional_id, "linger.ms": 0, "log_level": 0}
        producer = Producer(options)
        producer.init_transactions(30)
        for value, commit in (("aborted", False), ("committed", True)):
            producer.begin_transaction()
            producer.produce(topic, value, partition=0)
            producer.flush(30)
            if commit:
                producer.commit_transaction(30)
            else:
                producer.abort_transaction(30)
        del producer
    t.settle(transactional_id)
    t.same(released, [1], "the copy was delivered")
    t.same(t.values(topic, committed=True), [b"committed"], "committed")
    t.same(t.end_offset(topic, committed=True), t.end_offset(topic), "nothing hangs")
