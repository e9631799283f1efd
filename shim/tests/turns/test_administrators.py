"""Changes of the metadata in turns: decided again if others change it, committed in one batch."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_shim.api import (
    k19_create_topics,
    k20_delete_topics,
    k37_create_partitions,
    k44_incremental_alter_configs,
    k49_alter_client_quotas,
    k51_alter_user_scram_credentials,
)
from kafka_shim.embedded import Broker
from kafka_shim.metadata import large_changes, replication_control
from kafka_shim.targets.requests import make
from kafka_shim.tests.turns.harness import (
    altered,
    context_of,
    entry,
    steps_of,
    topics,
)
from kafka_shim.turns import at_once
from kafka_shim.wire_client import Connection


def alter_steps(state: Any, request: Any) -> Any:
    return k44_incremental_alter_configs._alter(context_of(state, request, 1), request)


def test_options_are_decided_again_when_a_topic_goes_between_two_steps_and_committed_in_one_batch(
    broker: Broker,
) -> None:
    names = [f"t{number}" for number in range(40)]
    topics(broker, **dict.fromkeys(names, 1))

    def run(state: Any) -> tuple[Any, int, int]:
        steps = alter_steps(state, altered(names, "77"))
        for _ in range(60):  # 40 are authorised, 20 decided
            next(steps)
        state.metadata.delete_topic("t3")
        before = state.metadata.partition_log.log_end_offset
        result, count = steps_of(steps)
        return result, count, state.metadata.partition_log.log_end_offset - before

    result, count, records = broker.call(run, broker.state)

    async def wait() -> Any:
        return await result

    answer = broker.call(wait)
    assert [one.error_code for one in answer.responses] == [3 if name == "t3" else 0 for name in names]
    assert records == 39
    assert count >= 39 * 3  # decided again, encoded, applied

    def stored(state: Any) -> tuple[set[str], set[int]]:
        image = state.metadata.image
        return (
            {image.config_of(2, name)["retention.ms"] for name in image.topics},
            {state.metadata.topic_config(name).retention_ms for name in image.topics},
        )

    assert broker.call(stored, broker.state) == ({"77"}, {77})


def test_a_decision_ends_although_others_change_the_metadata_at_every_step(broker: Broker) -> None:
    topics(broker, a=1, b=1)

    def run(state: Any) -> Any:
        steps = alter_steps(state, altered(["a", "b"], "78"))
        for number in range(1000):
            try:
                next(steps)
            except StopIteration as end:
                return number, end.value
            state.metadata.next_producer_id_block()
        raise AssertionError("it never ends")

    number, result = broker.call(run, broker.state)
    assert number <= 2 + 9 * large_changes.TRIES + 5

    async def wait() -> Any:
        return await result

    assert [one.error_code for one in broker.call(wait).responses] == [0, 0]


def credential(name: str) -> dict[str, Any]:
    return {"name": name, "mechanism": 1, "iterations": 4096, "salt": b"s", "salted_password": b"p"}


@pytest.mark.parametrize("kind", ["options", "quotas", "credentials"])
def test_more_records_than_one_change_may_have_are_refused_and_none_is_stored(
    broker: Broker, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (large_changes, k51_alter_user_scram_credentials):
        monkeypatch.setattr(module, "MAX_RECORDS", 10)
    names = [f"t{number}" for number in range(11)]
    topics(broker, **dict.fromkeys(names, 1))
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:

        def change(count: int) -> Any:
            if kind == "options":
                return client.request(altered(names[:count], "79"), 1).responses
            if kind == "quotas":
                rows = [entry(name) for name in names[:count]]
                return client.request(make("AlterClientQuotas", entries=rows), 1).entries
            rows = [credential(name) for name in names[:count]]
            return client.request(make("AlterUserScramCredentials", upsertions=rows), 0).results

        before = broker.call(lambda: broker.state.metadata.next_offset)
        refused = change(11)
        code = -1 if kind == "credentials" else 44  # POLICY_VIOLATION
        assert {one.error_code for one in refused} == {code}
        if kind == "options":
            assert {one.error_message for one in refused} == {"Unable to perform excessively large batch operation."}
        assert broker.call(lambda: broker.state.metadata.next_offset) == before
        assert {one.error_code for one in change(10)} == {0}


def test_quotas_that_two_requests_change_in_turns_all_hold(broker: Broker) -> None:
    def run(state: Any) -> Any:
        request = make("AlterClientQuotas", entries=[entry(f"u{number}") for number in range(40)])
        steps = k49_alter_client_quotas.handle(context_of(state, request, 1), request)
        while ("user", "u0") not in {entity[0] for entity in state.metadata.image.quotas}:
            next(steps)
        # Stored, and not in force yet.
        other = make("AlterClientQuotas", entries=[entry("other")])
        at_once(k49_alter_client_quotas.handle(context_of(state, other, 1), other)).close()  # type: ignore[union-attr]
        held = state.quotas
        steps_of(steps)[0].close()
        return held is state.quotas, len(state.quotas.produce._bounds)

    assert broker.call(run, broker.state) == (True, 41)


def test_a_topic_that_is_made_anew_between_two_steps_is_not_deleted_for_the_one_that_was_asked_for(
    broker: Broker,
) -> None:
    topics(broker, a=1, b=1, c=1)

    def run(state: Any) -> Any:
        metadata = state.metadata
        request = make(
            "DeleteTopics",
            topics=[
                {"name": None, "topic_id": metadata.image.topics["a"].topic_id},
                {"name": "b"},
                {"name": "c"},
            ],
            timeout_ms=1000,
        )
        steps = k20_delete_topics._delete(context_of(state, request, 6), request)
        while "a" in metadata.image.topics:
            next(steps)
        metadata.delete_topic("b")
        anew = metadata.create_topic("b", 1)
        answer, _ = steps_of(steps)
        return answer, "b" in metadata.image.topics and metadata.image.topics["b"] is anew, "c" in metadata.image.topics

    answer, stays, is_there = broker.call(run, broker.state)
    assert [one.error_code for one in answer.responses] == [0, 100, 0]  # UNKNOWN_TOPIC_ID
    assert (stays, is_there) == (True, False)


def test_topics_are_decided_a_step_each_and_again_when_another_request_takes_a_name(broker: Broker) -> None:
    names = [f"t{number}" for number in range(20)]

    def run(state: Any) -> tuple[Any, int, int]:
        rows = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
        request = make("CreateTopics", topics=rows, timeout_ms=1000)
        steps = k19_create_topics._create(context_of(state, request, 5), request, None)
        for _ in range(15):
            next(steps)
        state.metadata.create_topic("t3", 1)
        before = state.metadata.partition_log.log_end_offset
        answer, count = steps_of(steps)
        return answer, count, state.metadata.partition_log.log_end_offset - before

    answer, count, records = broker.call(run, broker.state)
    assert [(one.name, one.error_code) for one in answer.topics] == [
        (name, 36 if name == "t3" else 0) for name in names
    ]
    assert records == 19 * 2  # of a topic and its partition
    assert count >= 20 + 19 * 2  # decided again, and encoded
    assert all(one.configs for one in answer.topics if not one.error_code)


def test_topics_grow_in_steps_in_one_batch_and_are_decided_again_when_another_request_grows_one(broker: Broker) -> None:
    """One turn of the event loop added ten thousand partitions, and each topic was a batch of its own."""
    topics(broker, a=1, b=2, c=1, d=1)

    def run(state: Any) -> tuple[Any, int, int, int]:
        rows = [{"name": name, "count": 300, "assignments": None} for name in "abcd"]
        request = make("CreatePartitions", topics=rows, timeout_ms=1000)
        steps = k37_create_partitions._grow(context_of(state, request, 3), request)
        for _ in range(100):
            next(steps)
        metadata = state.metadata
        metadata.create_partitions("b", 300)
        metadata.create_partitions("c", 9)
        metadata.delete_topic("d")
        before = metadata.partition_log.log_end_offset
        answer, count = steps_of(steps)
        return answer, count, before, metadata.partition_log.log_end_offset

    answer, count, before, end = broker.call(run, broker.state)
    assert [(one.name, one.error_code) for one in answer.results] == [("a", 0), ("b", 37), ("c", 0), ("d", 3)]
    assert count >= 2 * (299 + 291)  # encoded, and made
    assert end - before == 299 + 291

    def there(state: Any) -> tuple[list[int], int, bool]:
        image = state.metadata.image
        batches = list(state.metadata.partition_log.batches(before))
        counts = [len(image.topics[name].partitions) for name in "abc"]
        is_counted = image.partition_count == sum(len(topic.partitions) for topic in image.topics.values())
        return counts, len(batches), is_counted

    assert broker.call(there, broker.state) == ([300, 300, 300], 1, True)


@pytest.mark.parametrize("deletes_at", [None, 1, 5])
def test_a_topic_of_many_partitions_is_made_few_of_them_a_step(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, deletes_at: int | None
) -> None:
    """One step made the records of all, and one their logs. `deletes_at`: when so many parts of its logs are made."""
    most = replication_control.PARTITIONS_PER_STEP
    count = 10 * most + 1
    made: list[str] = []
    work: list[int] = []
    partition_records = replication_control.topics.partition_records

    def counted(topic_id: bytes, first: int, replicas: Any, *others: Any) -> Any:
        work.append(len(replicas))
        return partition_records(topic_id, first, replicas, *others)

    monkeypatch.setattr(replication_control.topics, "partition_records", counted)

    def run(state: Any) -> tuple[list[int], Any, int]:
        metadata = state.metadata
        metadata.on_topic_created.append(lambda topic: made.append(topic.name))
        create = metadata._partition_logs.create
        logs: list[int] = []

        def create_some(topic: Any, partitions: Any, *, later: bool) -> Any:
            assert later
            logs.append(len(partitions))
            return create(topic, partitions, later=later)

        metadata._partition_logs.create = create_some
        row = {"name": "wide", "num_partitions": count, "replication_factor": 1}
        request = make("CreateTopics", topics=[row], timeout_ms=60_000)
        steps = k19_create_topics._create(context_of(state, request, 7), request, None)
        most_at_once = 0
        while True:
            before = len(work), len(logs)
            try:
                next(steps)
            except StopIteration as end:
                answer = end.value.topics[0]
                break
            assert "wide" not in metadata.image.topics or len(metadata.image.topics["wide"].partitions) == count
            most_at_once = max(most_at_once, sum(work[before[0] :]) + sum(logs[before[1] :]))
            if len(logs) == deletes_at and "wide" in metadata.image.topics:
                metadata.delete_topic("wide", later=True)
        waiting = [key for key in state.logs.partitions.to_create if key[0] == "wide"]
        return logs, (answer.error_code, answer.num_partitions, most_at_once), len(waiting)

    logs, answer, waiting = broker.call(run, broker.state)
    assert answer == (0, count, most)
    assert sum(work) == count
    if deletes_at is None:
        assert (sum(logs), waiting, made) == (count, count, ["wide"])
    else:
        assert (len(logs), waiting, made) == (deletes_at, 0, [])
