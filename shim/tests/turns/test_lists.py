"""Lists of all that the broker has of one kind: their work grows with the broker, not with the request."""

from __future__ import annotations

from typing import Any

from kafka_shim.api.k61_describe_producers import PRODUCERS_PER_STEP
from kafka_shim.api.k65_describe_transactions import PARTITIONS_PER_STEP
from kafka_shim.api.token_requests import ANONYMOUS
from kafka_shim.embedded import Broker
from kafka_shim.internal_topics import TRANSACTION_STATE_TOPIC
from kafka_shim.targets.requests import make
from kafka_shim.tests.turns.harness import answer_when, begun, producer, steps_of, topics
from kafka_shim.txn.transaction import TV2
from kafka_shim.wire_client import Connection

MANY = 60
PARTITIONS = 50  # of __consumer_offsets


def is_done(answer: Any) -> bool:
    return not any(part.error_code for topic in answer.topics for part in topic.partitions)


def test_groups_are_listed_in_steps(broker: Broker) -> None:
    topics(broker, t=1)
    names = [f"group-{number}" for number in range(MANY)]
    entry = {"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=names), 4)
        for name in names:
            answer_when(client, make("OffsetCommit", group_id=name, topics=[entry]), 8, is_done)
        # Between two steps a group goes: it was there when its partition's groups were looked at.
        listing = broker.call(lambda: [begun(broker.state, make("ListGroups", types_filter=["classic"]), 5, MANY)])
        assert client.request(make("DeleteGroups", groups_names=names[:1]), 2).results[0].error_code == 0
        answer, count = broker.call(lambda: steps_of(listing[0]))
        assert sorted(one.group_id for one in answer.groups) == sorted(names)
        # A step for each partition of the groups' topic and one for each group.
        assert MANY + count >= PARTITIONS + MANY
        listed = client.request(make("ListGroups", types_filter=["classic"]), 5)
        assert sorted(one.group_id for one in listed.groups) == sorted(names[1:])


def test_transactions_are_listed_in_steps(broker: Broker) -> None:
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        for number in range(MANY):
            producer(client, f"id-{number}")
        request = make("ListTransactions", duration_filter=-1)
        answer, count = broker.call(lambda: steps_of(begun(broker.state, request, 1, 0)))
        assert sorted(one.transactional_id for one in answer.transaction_states) == sorted(
            f"id-{number}" for number in range(MANY)
        )
        assert count >= MANY


def test_the_partitions_of_a_transaction_are_described_in_steps(broker: Broker) -> None:
    count = 3 * PARTITIONS_PER_STEP
    asked = frozenset((f"t{number % 2}", number) for number in range(count))

    def run(state: Any) -> tuple[dict[str, list[int]], int]:
        state.metadata.ensure_internal_topic(TRANSACTION_STATE_TOPIC)
        transactions = state.transactions
        producer = transactions.init_producer_id("app", 60_000, None).response
        transactions.add_partitions("app", *producer, asked, TV2)
        steps = begun(state, make("DescribeTransactions", transactional_ids=["app"]), 0, 2)
        transactions.decide("app", *producer, False, TV2)  # between two steps
        answer, left = steps_of(steps)
        (described,) = answer.transaction_states
        assert described.transaction_state == "Ongoing"
        return {topic.topic: topic.partitions for topic in described.topics}, left

    described, left = broker.call(run, broker.state)
    assert described == {"t0": [*range(0, count, 2)], "t1": [*range(1, count, 2)]}
    assert left >= 2


def test_the_producers_of_a_partition_are_described_in_steps(broker: Broker) -> None:
    topics(broker, t=1)
    count = 3 * PRODUCERS_PER_STEP

    def run(state: Any) -> tuple[list[int], int]:
        log = state.logs.get("t", 0)
        for producer_id in range(count):
            log.append_marker(producer_id, 0, 0, True, 0, state.clock.now_ms())
        wanted = [{"name": "t", "partition_indexes": [0]}]
        steps = begun(state, make("DescribeProducers", topics=wanted), 0, 2)
        log.producers.expire(1 << 60, 0)  # between two steps, those that are not described yet too
        answer, left = steps_of(steps)
        return [one.producer_id for one in answer.topics[0].partitions[0].active_producers], left

    described, left = broker.call(run, broker.state)
    assert described == list(range(count))
    assert left >= 2


def test_quotas_are_listed_in_steps(broker: Broker) -> None:
    def altered(names: list[str], remove: bool = False) -> Any:
        ops = [{"key": "producer_byte_rate", "value": 1.0, "remove": remove}]
        return make(
            "AlterClientQuotas",
            entries=[{"entity": [{"entity_type": "user", "entity_name": name}], "ops": ops} for name in names],
        )

    names = [f"u{number}" for number in range(MANY)]
    request = make("DescribeClientQuotas", components=[], strict=False)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        assert not any(one.error_code for one in client.request(altered(names), 1).entries)
        whole = client.request(request, 1)
        assert sorted(one.entity[0].entity_name for one in whole.entries) == sorted(names)
        # Between two steps one goes: it was there when the list began.
        listing = broker.call(lambda: [begun(broker.state, request, 1, MANY)])
        assert not any(one.error_code for one in client.request(altered(names[-1:], remove=True), 1).entries)
        answer, count = broker.call(lambda: steps_of(listing[0]))
        assert answer.entries == whole.entries
        assert MANY + count >= 2 * MANY
        listed = client.request(request, 1)
        assert sorted(one.entity[0].entity_name for one in listed.entries) == sorted(names[:-1])


def test_credentials_are_listed_in_steps(broker: Broker) -> None:
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        upsertions = [
            {"name": f"u{number}", "mechanism": 1, "iterations": 4096, "salt": b"s", "salted_password": b"p"}
            for number in range(MANY)
        ]
        client.request(make("AlterUserScramCredentials", deletions=[], upsertions=upsertions), 0)
        request = make("DescribeUserScramCredentials", users=None)
        answer, count = broker.call(lambda: steps_of(begun(broker.state, request, 0, 0)))
        assert [one.user for one in answer.results] == [one["name"] for one in upsertions]
        assert all(len(one.credential_infos) == 1 for one in answer.results)
        assert answer.error_message == "", "as Kafka, which sets none"
        assert count >= MANY


def test_delegation_tokens_are_listed_in_steps() -> None:
    with Broker(sasl="PLAIN", users={"alice": "a"}, delegation_token_secret_key="key") as broker:
        tokens = broker.state.tokens
        made = broker.call(lambda: [tokens.create(ANONYMOUS, ANONYMOUS, [], -1)[0].token_id for _ in range(MANY)])
        request = make("DescribeDelegationToken", owners=None)
        listing = broker.call(lambda: [begun(broker.state, request, 3, MANY // 2)])
        broker.call(lambda: tokens.expire(ANONYMOUS, tokens.hmac_of(made[-1]), -1))
        answer, count = broker.call(lambda: steps_of(listing[0]))
        assert [one.token_id for one in answer.tokens] == made
        assert MANY // 2 + count >= MANY
