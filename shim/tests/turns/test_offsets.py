"""Commits and deletions of very many offsets."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_shim import turns
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group import large_offsets, offset_requests
from kafka_shim.group.runtime import CoordinatorRuntime
from kafka_shim.targets.requests import make
from kafka_shim.tests.turns.harness import answer_when, begun, context_of, producer, steps_of, topics
from kafka_shim.tests.waiting import until
from kafka_shim.wire_client import Connection


@pytest.mark.parametrize("is_transactional", [False, True])
def test_a_commit_that_no_batch_holds_is_refused_before_it_is_built(broker: Broker, is_transactional: bool) -> None:
    """Long names take their part of the batch, too."""
    name, count = "t" * 200, 4500
    topics(broker, **{name: 1})
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
        rows = [{"name": name, "partitions": [{"partition_index": 0, "committed_offset": 1}] * count}]
        if is_transactional:
            who = producer(client, "x")
            join = make("AddOffsetsToTxn", group_id="g", **who)
            answer_when(client, join, 3, lambda answer: not answer.error_code)
            request, version = make("TxnOffsetCommit", group_id="g", **who, topics=rows), 3
        else:
            request, version = make("OffsetCommit", group_id="g", topics=rows), 8
        built: list[int] = []
        broker.call(lambda: setattr(broker.state.groups._runtime, "append_entries", lambda *arguments: built.append(1)))
        answer = client.request(request, version)
    assert {part.error_code for part in answer.topics[0].partitions} == {-1}
    assert built == []


def test_offsets_are_looked_up_in_steps_and_deleted_in_one(broker: Broker) -> None:
    topics(broker, t=30, u=1)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
        parts = [{"partition_index": number, "committed_offset": 1} for number in range(30)]
        commit = make("OffsetCommit", group_id="g", topics=[{"name": "t", "partitions": parts}])
        answer_when(client, commit, 8, lambda answer: not answer.topics[0].partitions[0].error_code)

        def run(state: Any) -> tuple[Any, int]:
            rows = [
                {"name": "u", "partitions": [{"partition_index": 0}]},
                {"name": "t", "partitions": [{"partition_index": number} for number in range(31)]},
            ]
            steps = begun(state, make("OffsetDelete", group_id="g", topics=rows), 0, 20)
            state.metadata.delete_topic("u")
            outcome, count = steps_of(steps)
            codes = {
                (topic.name, part.partition_index): part.error_code
                for topic in outcome.response.topics
                for part in topic.partitions
            }
            return codes, count

        codes, count = broker.call(run, broker.state)
        assert {key: code for key, code in codes.items() if code} == {("t", 30): 3}
        assert len(codes) == 32
        assert count >= 11
        fetch = make("OffsetFetch", groups=[{"group_id": "g", "topics": None}])
        assert client.request(fetch, 8).groups[0].topics == []


MANY = 5 * large_offsets.PARTITIONS_PER_STEP
# Its overhead, and a key of the shortest names.
LEAST_TOMBSTONE_BYTES = 30


def offsets_of(client: Connection) -> dict[int, int]:
    fetch = make("OffsetFetch", groups=[{"group_id": "g", "topics": None}])
    answer = client.request(fetch, 8).groups[0]
    return {part.partition_index: part.committed_offset for topic in answer.topics for part in topic.partitions}


def rows_of(offset: int, count: int = MANY) -> list[dict[str, Any]]:
    return [{"name": "t", "partitions": [{"partition_index": n, "committed_offset": offset} for n in range(count)]}]


def load(client: Connection) -> None:
    """Until the group's log is read."""
    client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
    commit = make("OffsetCommit", group_id="g", topics=rows_of(0, 1))
    answer_when(client, commit, 8, lambda answer: not answer.topics[0].partitions[0].error_code)


def end_of(state: Any) -> int:
    return state.logs.get("__consumer_offsets", state.groups.partition_for("g")).log_end_offset  # type: ignore[no-any-return]


def test_a_commit_is_prepared_in_steps_and_all_of_it_is_seen_at_once(broker: Broker) -> None:
    topics(broker, t=MANY)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        load(client)

        def run(state: Any) -> tuple[set[int], int, int]:
            steps = begun(state, make("OffsetCommit", group_id="g", topics=rows_of(7)), 8, 0)
            offsets = state.groups._runtime.groups_of("g").offsets
            seen, before, count = {0}, end_of(state), 0
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    outcome = end.value
                    break
                seen.add(sum(one.offset == 7 for one in offsets.of_group("g")["t"].values()))
                count += 1
            assert {part.error_code for part in outcome.response.topics[0].partitions} == {0}
            assert len(outcome.response.topics[0].partitions) == MANY
            return seen, end_of(state) - before, count

        seen, records, count = broker.call(run, broker.state)
        assert seen == {0}  # nothing of it before the last step
        assert records == MANY
        assert count >= 10
        assert offsets_of(client) == dict.fromkeys(range(MANY), 7)


def test_a_group_that_refuses_the_commit_in_the_last_step_has_none_of_it(broker: Broker) -> None:
    """A member joined while the commit was prepared."""
    topics(broker, t=MANY)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        load(client)

        def run(state: Any) -> tuple[set[int], int]:
            _, count = steps_of(begun(state, make("OffsetCommit", group_id="g", topics=rows_of(6)), 8, 0))
            before = end_of(state)
            steps = begun(state, make("OffsetCommit", group_id="g", topics=rows_of(7)), 8, count)
            kind = type(state.groups.find("g"))
            check = kind.check_commit

            def refused(*arguments: Any) -> None:
                raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

            try:
                kind.check_commit = refused
                outcome, _ = steps_of(steps)
            finally:
                kind.check_commit = check
            codes = [part.error_code for topic in outcome.response.topics for part in topic.partitions]
            assert len(codes) == MANY
            return set(codes), end_of(state) - before

        assert broker.call(run, broker.state) == ({ErrorCode.REBALANCE_IN_PROGRESS}, 0)
        assert offsets_of(client) == dict.fromkeys(range(MANY), 6)


def test_offsets_of_a_transaction_are_pending_at_once_and_stay_its_own(broker: Broker) -> None:
    topics(broker, t=MANY)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        load(client)
        who = producer(client, "x")
        join = make("AddOffsetsToTxn", group_id="g", **who)
        answer_when(client, join, 3, lambda answer: not answer.error_code)

        def run(state: Any, offset: int) -> set[int]:
            request = make("TxnOffsetCommit", group_id="g", **who, topics=rows_of(offset))
            steps = begun(state, request, 3, 0)
            offsets = state.groups._runtime.groups_of("g").offsets
            seen = {len(offsets.pending_partitions("g"))}
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    codes = {part.error_code for topic in end.value.response.topics for part in topic.partitions}
                    assert codes == {0}
                    return seen
                seen.add(len(offsets.pending_partitions("g")))

        assert broker.call(run, broker.state, 8) == {0, MANY}
        assert broker.call(run, broker.state, 9) == {MANY}  # the same again
        assert offsets_of(client) == {0: 0}
        assert client.request(make("EndTxn", **who, committed=True), 3).error_code == 0
        until(broker, lambda: not broker.state.groups._runtime.groups_of("g").offsets.has_any_pending("g"))
        assert offsets_of(client) == dict.fromkeys(range(MANY), 9)


def test_a_transaction_that_ends_while_its_offsets_are_prepared_gets_none_of_them(broker: Broker) -> None:
    topics(broker, t=MANY)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        load(client)
        who = producer(client, "x")
        join = make("AddOffsetsToTxn", group_id="g", **who)
        answer_when(client, join, 3, lambda answer: not answer.error_code)

        def run(state: Any) -> tuple[set[int], int]:
            steps = begun(state, make("TxnOffsetCommit", group_id="g", **who, topics=rows_of(8)), 3, 6)
            ended = state.transactions.decide("x", who["producer_id"], who["producer_epoch"], False, 0)
            ended.follow_up()
            before = end_of(state)
            answer, _ = steps_of(steps)
            response = getattr(answer, "response", answer)
            return {part.error_code for topic in response.topics for part in topic.partitions}, end_of(state) - before

        assert broker.call(run, broker.state) == ({ErrorCode.INVALID_TXN_STATE}, 0)


def test_offsets_that_come_while_a_deletion_is_prepared_are_deleted_with_the_others(broker: Broker) -> None:
    topics(broker, t=MANY)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        load(client)
        half = MANY // 2
        client.request(make("OffsetCommit", group_id="g", topics=rows_of(3, half)), 8)

        def run(state: Any) -> tuple[set[int], int, list[int]]:
            parts = [{"partition_index": number} for number in range(MANY)]
            request = make("OffsetDelete", group_id="g", topics=[{"name": "t", "partitions": parts}])
            steps = begun(state, request, 0, MANY + 3)
            commit = make("OffsetCommit", group_id="g", topics=rows_of(4, half + 1))
            steps_of(begun(state, commit, 8, 0))
            offsets = state.groups._runtime.groups_of("g").offsets
            there = len(offsets.of_group("g")["t"])
            before = end_of(state)
            outcome, _ = steps_of(steps)
            codes = {part.error_code for topic in outcome.response.topics for part in topic.partitions}
            return codes, end_of(state) - before, [there, len(offsets.of_group("g"))]

        assert broker.call(run, broker.state) == ({0}, half + 1, [half + 1, 0])
        assert offsets_of(client) == {}


@pytest.mark.parametrize("most_bytes", [2000, 1_000_000])
def test_tombstones_are_divided_into_batches_only_if_one_does_not_hold_them(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, most_bytes: int
) -> None:
    topics(broker, t=MANY)
    sizes: list[int] = []
    looked_at: list[int] = []
    append, divided = CoordinatorRuntime.append_entries, offset_requests.divided

    def append_entries(self: Any, partition: int, entries: Any, *others: Any) -> Any:
        sizes.append(len(entries))
        return append(self, partition, entries, *others)

    def divide(pairs: Any, *limits: int) -> Any:
        looked_at.append(len(pairs))
        return divided(pairs, *limits)

    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        load(client)
        client.request(make("OffsetCommit", group_id="g", topics=rows_of(3, MANY)), 8)
        monkeypatch.setattr(CoordinatorRuntime, "append_entries", append_entries)
        monkeypatch.setattr(CoordinatorRuntime, "max_batch_bytes", lambda _: most_bytes)
        monkeypatch.setattr(offset_requests, "divided", divide)

        def run(state: Any) -> None:
            parts = [{"partition_index": number} for number in range(MANY)]
            steps_of(
                begun(state, make("OffsetDelete", group_id="g", topics=[{"name": "t", "partitions": parts}]), 0, 0)
            )

        broker.call(run, broker.state)
        assert sum(sizes) == MANY
        if most_bytes == 2000:
            assert max(sizes) * LEAST_TOMBSTONE_BYTES < 2000
            assert looked_at == [MANY]
        else:
            assert (sizes, looked_at) == ([MANY], [])
        assert offsets_of(client) == {}


@pytest.mark.parametrize("is_transactional", [False, True])
@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_topic_that_is_deleted_while_its_commit_is_prepared_keeps_no_offset(
    broker: Broker, is_transactional: bool, is_made_anew: bool
) -> None:
    """A consumer of a later topic of the name would begin there, and skip records."""
    topics(broker, t=MANY, other=2)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        load(client)
        other = {"name": "other", "partitions": [{"partition_index": n, "committed_offset": 5} for n in range(2)]}
        rows = [*rows_of(7), other]
        commit, version = make("OffsetCommit", group_id="g", topics=rows), 8
        who: dict[str, Any] = {}
        if is_transactional:
            who = producer(client, "x")
            assert client.request(make("AddOffsetsToTxn", **who, group_id="g"), 3).error_code == 0
            commit, version = make("TxnOffsetCommit", **who, group_id="g", generation_id=-1, topics=rows), 3

        def run(state: Any, taken: int) -> dict[str, set[int]]:
            steps = begun(state, commit, version, taken)
            state.metadata.delete_topic("t")
            if is_made_anew:
                state.metadata.create_topic("t", MANY)
            (outcome, _) = steps_of(steps)
            return {topic.name: {part.error_code for part in topic.partitions} for topic in outcome.response.topics}

        def steps_in_all(state: Any) -> int:
            return steps_of(begun(state, commit, version, 0))[1]

        count = broker.call(steps_in_all, broker.state)
        assert broker.call(run, broker.state, count // 2) == {"t": {3}, "other": {0}}
        if is_transactional:
            assert client.request(make("EndTxn", **who, committed=True), 3).error_code == 0
        fetch = make("OffsetFetch", groups=[{"group_id": "g", "topics": None}])
        until(broker, lambda: not broker.state.groups._runtime.groups_of("g").offsets.has_any_pending("g"))
        until(broker, lambda: "t" not in broker.state.groups._runtime.groups_of("g").offsets.of_group("g"))
        answer = client.request(fetch, 8).groups[0]
        assert {topic.name: len(topic.partitions) for topic in answer.topics} == {"other": 2}


def test_a_topic_that_is_made_anew_while_a_transactional_commit_looks_at_its_topics_keeps_no_offset(
    broker: Broker,
) -> None:
    topics(broker, t=MANY, other=2)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        load(client)
        other = {"name": "other", "partitions": [{"partition_index": n, "committed_offset": 5} for n in range(2)]}
        who = producer(client, "x")
        assert client.request(make("AddOffsetsToTxn", **who, group_id="g"), 3).error_code == 0
        commit = make("TxnOffsetCommit", **who, group_id="g", generation_id=-1, topics=[*rows_of(7), other])

        def run(state: Any) -> dict[str, set[int]]:
            steps = begun(state, commit, 3, 3)
            state.metadata.delete_topic("t")
            state.metadata.create_topic("t", MANY)
            (outcome, _) = steps_of(steps)
            return {topic.name: {part.error_code for part in topic.partitions} for topic in outcome.response.topics}

        assert broker.call(run, broker.state) == {"t": {3}, "other": {0}}


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_topic_that_is_deleted_while_a_transactional_commit_waits_for_the_disk_keeps_no_offset(
    is_made_anew: bool,
) -> None:
    """A consumer of a later topic of the name would begin at its offset."""
    options = {"auto_create_topics_enable": False, "log_flush_interval_messages": 1}
    with Broker(**options) as broker, Connection(broker.bootstrap_servers, timeout_s=60) as client:  # type: ignore[arg-type]
        topics(broker, t=1, other=1)
        load(client)
        who = producer(client, "x")
        rows = [
            {"name": name, "partitions": [{"partition_index": 0, "committed_offset": 5}]} for name in ("t", "other")
        ]
        commit = make("TxnOffsetCommit", **who, group_id="g", generation_id=-1, topics=rows)

        async def run(state: Any) -> dict[str, set[int]]:
            from kafka_shim.api import k28_txn_offset_commit as api

            waiting = api.handle(context_of(state, commit, 5), commit)
            state.metadata.delete_topic("t")
            if is_made_anew:
                state.metadata.create_topic("t", 1)
            outcome = await waiting  # type: ignore[misc]
            return {topic.name: {part.error_code for part in topic.partitions} for topic in outcome.response.topics}

        assert broker.call(run, broker.state) == {"t": {3}, "other": {0}}
        offsets = broker.state.groups._runtime.groups_of("g").offsets
        assert offsets.pending_partitions("g") == [("other", 0)]


@pytest.mark.parametrize("api", ["OffsetCommit", "OffsetDelete", "TxnOffsetCommit", "AddPartitionsToTxn"])
def test_many_entries_that_take_little_memory_are_served_in_steps_too(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, api: str
) -> None:
    """10,000 partitions of four bytes each held the loop for 25 ms."""
    count = 4500
    topics(broker, t=count)
    shares: list[int] = []
    take = turns.Turns._take_share

    def take_share(self: Any, steps: Any) -> None:
        shares.append(1)
        take(self, steps)

    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        load(client)
        who = producer(client, "x")
        assert client.request(make("AddOffsetsToTxn", **who, group_id="g"), 3).error_code == 0
        commits = [{"name": "t", "partitions": [{"partition_index": n, "committed_offset": 5} for n in range(count)]}]
        deletes = [{"name": "t", "partitions": [{"partition_index": n} for n in range(count)]}]
        first = {f"v3_and_below_{name}": text for name, text in who.items()}
        added = [{"name": "t", "partitions": list(range(count))}]
        fields, version = {
            "OffsetCommit": ({"group_id": "g", "topics": commits}, 8),
            "OffsetDelete": ({"group_id": "g", "topics": deletes}, 0),
            "TxnOffsetCommit": ({**who, "group_id": "g", "generation_id": -1, "topics": commits}, 3),
            "AddPartitionsToTxn": ({**first, "v3_and_below_topics": added}, 3),
        }[api]
        request = make(api, **fields)
        monkeypatch.setattr(turns.Turns, "_take_share", take_share)
        monkeypatch.setattr(turns, "STEPS_BETWEEN_LOOKS", 1)
        monkeypatch.setattr(turns, "MOST_LOOKS", 1)
        answer = client.request(request, version)
        found = answer.results_by_topic_v3_and_below if api == "AddPartitionsToTxn" else answer.topics
        (topic,) = found
        parts = topic.results_by_partition if api == "AddPartitionsToTxn" else topic.partitions
        assert len(parts) == count
        # A step has 64 partitions.
        assert len(shares) > count / 64 / 4
