"""Rights that are taken and given back in the middle of a transaction and of a generation of a group: each
answer and what remains, on the shim and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kafka_shim.compat.tests.security.principals import ALICE, ROOT, Rule, Secured
from kafka_shim.errors import ErrorCode
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.targets import requests
from kafka_shim.targets.requests import make
from kafka_shim.targets.secured import SecuredKafka, SecuredShim
from kafka_shim.targets.waiting import right_answer
from kafka_shim.wire_client import check
from kafka_shim.wiretap.compare import Pairs, differences
from kafka_shim.wiretap.frames import error_codes

pytestmark = pytest.mark.java

READ_T = Rule(ResourceType.TOPIC, "t", AclOperation.READ)
WRITE_T = Rule(ResourceType.TOPIC, "t", AclOperation.WRITE)
READ_G = Rule(ResourceType.GROUP, "g", AclOperation.READ)
WRITE_X = Rule(ResourceType.TRANSACTIONAL_ID, "x", AclOperation.WRITE)
ALL = (READ_T, WRITE_T, READ_G, WRITE_X)
# No transaction and no session ends by its time, on whichever broker first.
LONG_MS = 600_000
# What passes by itself while a coordinator starts or a transaction ends.
PASSING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS.name,
    ErrorCode.COORDINATOR_NOT_AVAILABLE.name,
    ErrorCode.NOT_COORDINATOR.name,
    ErrorCode.CONCURRENT_TRANSACTIONS.name,
}


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Secured, Secured]]:
    """A shim and an Apache Kafka with the topic `t` and both coordinators."""
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with ExitStack() as stack:
        shim, kafka = (stack.enter_context(Secured(kind, settings)) for kind in (SecuredShim, SecuredKafka))
        for broker in (shim, kafka):
            topic = {"name": "t", "num_partitions": 2, "replication_factor": 1}
            check(broker.ask(ROOT, make("CreateTopics", topics=[topic], timeout_ms=30_000), 5).topics[0].error_code)
            for key, kind in (("g", 0), ("x", 1)):
                asked = make("FindCoordinator", key=key, key_type=kind)
                right_answer(lambda b=broker, a=asked: b.ask(ROOT, a, 3).error_code, lambda code: code == 0, key)
        yield shim, kafka


class Talk:
    """One side of a conversation: what alice asks, and the answers in their order."""

    def __init__(self, broker: Secured) -> None:
        self.broker = broker
        self.told: list[tuple[str, Any]] = []

    def take(self, *rules: Rule) -> None:
        """Leave alice all rights but these."""
        self.broker.set_acls([rule for rule in ALL if rule not in rules])

    def ask(self, api: str, version: int, user: str = ALICE, **fields: Any) -> Any:
        return self.send(make(api, **fields), version, user)

    def send(self, message: Any, version: int, user: str = ALICE) -> Any:
        answer = right_answer(
            lambda: self.broker.ask(user, message, version),
            lambda found: PASSING.isdisjoint(error_codes(found)),
            f"{type(message).__name__} is settled",
        )
        self.told.append((f"{len(self.told)} {type(message).__name__} v{version}", answer))
        return answer

    def codes(self) -> list[str]:
        """The errors of each answer that has any."""
        return [" ".join(sorted(found)) for _, answer in self.told if (found := set(error_codes(answer)))]


def compare(ours: Talk, theirs: Talk) -> None:
    pairs = Pairs()
    assert [what for what, _ in ours.told] == [what for what, _ in theirs.told]
    for (what, ours_told), (_, theirs_told) in zip(ours.told, theirs.told, strict=True):
        assert differences(theirs_told, ours_told, pairs) == [], what


class Producer:
    """A transactional producer of KIP-890."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        fields = {"transactional_id": "x", "transaction_timeout_ms": LONG_MS, "producer_id": -1, "producer_epoch": -1}
        made = talk.ask("InitProducerId", 5, **fields)
        self.who = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
        self.sequences = [0, 0]

    def write(self, partition: int = 0) -> None:
        batch = {**self.who, "base_sequence": self.sequences[partition], "transactional": True}
        message = requests.produce("t", partition, [(None, b"a")], transactional_id="x", **batch)
        told = self.talk.send(message, 12).responses[0].partition_responses[0]
        self.sequences[partition] += not told.error_code

    def commit_offset(self, offset: int) -> None:
        part = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        topics = [{"name": "t", "partitions": [part]}]
        fields = {"group_id": "g", "generation_id": -1, "member_id": "", "topics": topics}
        self.talk.ask("TxnOffsetCommit", 5, transactional_id="x", **self.who, **fields)

    def end(self, *, committed: bool) -> None:
        told = self.talk.ask("EndTxn", 5, transactional_id="x", **self.who, committed=committed)
        if not told.error_code:
            self.who = {"producer_id": told.producer_id, "producer_epoch": told.producer_epoch}
            self.sequences = [0, 0]

    def look(self) -> None:
        """What others see of it."""
        self.talk.ask("DescribeTransactions", 0, ROOT, transactional_ids=["x"])
        for partition in (0, 1):
            self.talk.send(requests.fetch("t", partition, 0, isolation_level=1), 12, ROOT)
        self.talk.ask("OffsetFetch", 8, ROOT, groups=[{"group_id": "g", "topics": None}])


def transaction(broker: Secured) -> Talk:
    talk = Talk(broker)
    talk.take()
    producer = Producer(talk)
    producer.write()
    producer.commit_offset(1)
    talk.take(WRITE_T)
    producer.write()
    producer.write(1)
    producer.commit_offset(2)
    talk.take(READ_T)
    producer.commit_offset(3)
    talk.take(READ_G)
    producer.commit_offset(3)
    producer.write()
    talk.take(WRITE_X)
    producer.write()
    producer.commit_offset(3)
    producer.end(committed=True)
    producer.look()
    talk.take()
    producer.write()
    producer.end(committed=True)
    # The rights to write are gone: the transaction can be ended all the same.
    producer.write(1)
    producer.commit_offset(9)
    talk.take(WRITE_T, READ_T, READ_G)
    producer.write(1)
    producer.end(committed=False)
    # What is refused begins no transaction.
    producer.write()
    producer.end(committed=True)
    right_answer(
        lambda: broker.ask(ROOT, make("DescribeTransactions", transactional_ids=["x"]), 0).transaction_states[0],
        lambda found: found.transaction_state == "CompleteAbort",
        "the transaction has ended",
    )
    producer.look()
    return talk


def test_rights_are_taken_in_the_middle_of_a_transaction(both: tuple[Secured, Secured]) -> None:
    ours, theirs = (transaction(broker) for broker in both)
    compare(ours, theirs)
    topic, group, transactional_id = (f"{kind}_AUTHORIZATION_FAILED" for kind in ("TOPIC", "GROUP", "TRANSACTIONAL_ID"))
    open_ones = [topic, topic, topic, group, transactional_id, transactional_id, transactional_id]
    assert ours.codes() == [*open_ones, topic, topic, "INVALID_TXN_STATE"]


def generation(broker: Secured) -> Talk:
    talk = Talk(broker)
    talk.take()
    protocols = requests.protocols("range", metadata=requests.subscription("t"))
    joining = {"group_id": "g", "session_timeout_ms": LONG_MS, "rebalance_timeout_ms": LONG_MS}
    joining |= {"protocol_type": "consumer", "protocols": protocols}
    member = talk.ask("JoinGroup", 5, **joining).member_id
    generation_id = talk.ask("JoinGroup", 5, **joining, member_id=member).generation_id
    who = {"group_id": "g", "member_id": member, "generation_id": generation_id}
    assigned = [{"member_id": member, "assignment": b"a"}]
    partition = {"partition_index": 0, "committed_offset": 4, "committed_metadata": ""}
    topics = [{"name": "t", "partitions": [partition]}]

    def live() -> None:
        talk.ask("Heartbeat", 4, **who)
        of_member = {"group_id": "g", "member_id": member, "generation_id_or_member_epoch": generation_id}
        talk.ask("OffsetCommit", 8, **of_member, topics=topics)
        for asked in (None, [{"name": "t", "partition_indexes": [0]}]):
            talk.ask("OffsetFetch", 8, groups=[{"group_id": "g", "topics": asked}])

    talk.ask("SyncGroup", 5, **who, protocol_type="consumer", protocol_name="range", assignments=assigned)
    live()
    talk.take(READ_T, WRITE_T)
    live()
    talk.take(READ_G)
    live()
    talk.ask("SyncGroup", 5, **who, protocol_type="consumer", protocol_name="range", assignments=assigned)
    talk.ask("JoinGroup", 5, **joining, member_id=member)
    talk.ask("LeaveGroup", 4, group_id="g", members=[{"member_id": member}])
    talk.take()
    live()
    talk.ask("LeaveGroup", 4, group_id="g", members=[{"member_id": member}])
    return talk


def test_rights_are_taken_in_the_middle_of_a_generation(both: tuple[Secured, Secured]) -> None:
    ours, theirs = (generation(broker) for broker in both)
    compare(ours, theirs)
    # Without the topic its offsets are neither committed nor shown; with the group back its member is still there.
    expected = ["MEMBER_ID_REQUIRED", *["TOPIC_AUTHORIZATION_FAILED"] * 2, *["GROUP_AUTHORIZATION_FAILED"] * 7]
    assert ours.codes() == expected
