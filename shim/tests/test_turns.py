"""Requests in turns: what one step does of them is bounded, and what others change between two steps is seen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from copy import deepcopy
from types import CoroutineType
from typing import Any

import pytest

from kafka_shim import connection
from kafka_shim.api import (
    APIS,
    k01_fetch,
    k03_metadata,
    k19_create_topics,
    k20_delete_topics,
    k24_add_partitions_to_txn,
    k31_delete_acls,
    k44_incremental_alter_configs,
    k49_alter_client_quotas,
    k51_alter_user_scram_credentials,
)
from kafka_shim.authorization import NAMES_PER_STEP, authorized_in_steps
from kafka_shim.clock import VirtualClock
from kafka_shim.context import Context
from kafka_shim.embedded import Broker
from kafka_shim.errors import KafkaError
from kafka_shim.group import runtime
from kafka_shim.group.decision import Decision
from kafka_shim.group.purgatory import DelayedResponse
from kafka_shim.metadata import large_changes
from kafka_shim.protocol.records.partition_change_record import PartitionChangeRecord
from kafka_shim.quota import request_throttle
from kafka_shim.quota.request_throttle import RequestThrottle
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.security.acl_binding import AclFilter
from kafka_shim.security.acl_control import SLICE
from kafka_shim.session import Session
from kafka_shim.storage import partitions
from kafka_shim.targets.requests import create_topic, make
from kafka_shim.tests.produced import batch, fetch_request, produce
from kafka_shim.turns import STEPS_BETWEEN_LOOKS, Turns, at_once
from kafka_shim.wire_client import Connection

OPTIONS = {"auto_create_topics_enable": False}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(**OPTIONS) as running:  # type: ignore[arg-type]
        yield running


def context_of(state: Any, request: Any, version: int) -> Context:
    session = Session(state.listeners[0], ("127.0.0.1", 1), ("127.0.0.1", 2))
    return Context(state, session, request.API_KEY, version, 1, "c", state.clock.now_ms())


def begun(state: Any, request: Any, version: int, steps: int) -> Any:
    """The steps of the request's handler, so many of them taken."""
    api = next(api for api in APIS if api.key == request.API_KEY)
    if not api.is_loaded:
        api.load()
    context = context_of(state, request, version)
    context.is_large = True
    taken = api.handle(context, request)
    for _ in range(steps):
        next(taken)
    return taken


def steps_of(taken: Any) -> tuple[Any, int]:
    """The result of all further steps, and their number."""
    count = 0
    while True:
        try:
            next(taken)
        except StopIteration as end:
            return end.value, count
        count += 1


def topics(broker: Broker, **counts: int) -> None:
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        for name, count in counts.items():
            create_topic(client, name, count)


# --- Metadata


def test_metadata_of_a_large_topic_takes_many_steps_and_shows_it_as_it_was(broker: Broker) -> None:
    topics(broker, large=10 * k03_metadata.PARTITIONS_PER_STEP, other=1)

    def run(state: Any) -> tuple[Any, int]:
        steps = begun(state, make("Metadata", topics=None), 12, 3)
        state.metadata.create_partitions("large", 11 * k03_metadata.PARTITIONS_PER_STEP)
        state.metadata.delete_topic("other")
        return steps_of(steps)

    answer, count = broker.call(run, broker.state)
    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [
        ("large", 10 * k03_metadata.PARTITIONS_PER_STEP)
    ]
    assert count >= 7
    # What was described before the change is not kept for those who ask after it.
    again, _ = broker.call(lambda: steps_of(begun(broker.state, make("Metadata", topics=None), 12, 0)))
    assert [len(topic.partitions) for topic in again.topics] == [11 * k03_metadata.PARTITIONS_PER_STEP]


# --- Fetch

MANY = k01_fetch.MANY + 100


def fetch_of(count: int, topic: str = "t", **how: Any) -> Any:
    return fetch_request({(topic, number): 0 for number in range(count)}, **how)


def test_a_large_fetch_is_that_of_a_small_one_and_opens_a_session_that_knows_of_later_news(broker: Broker) -> None:
    topics(broker, t=MANY)
    records = batch(b"a")
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        for number in (3, MANY - 1):
            produce(client, "t", number, records)

        def run(state: Any) -> tuple[Any, int]:
            steps = begun(state, fetch_of(MANY, session_epoch=0), 11, MANY + 200)
            # It has read this partition, and has not said so yet.
            state.logs.get("t", 5).append_as_leader(records, now_ms=state.clock.now_ms(), version=9)
            return steps_of(steps)

        answer, count = broker.call(run, broker.state)
        (topic,) = answer.responses
        assert [part.partition_index for part in topic.partitions] == list(range(MANY))
        assert [part.partition_index for part in topic.partitions if part.records] == [3, MANY - 1]
        assert count >= MANY // k01_fetch.PARTITIONS_PER_STEP
        following = fetch_request({}, session_id=answer.session_id, session_epoch=1)
        news = client.request(following, 11)
        assert news.error_code == 0
        assert sorted(part.partition_index for part in news.responses[0].partitions) == [3, 5, MANY - 1]


def test_a_topic_that_is_deleted_while_a_large_fetch_reads_is_unknown_for_the_rest(broker: Broker) -> None:
    topics(broker, t=MANY, u=1)

    def run(state: Any) -> Any:
        request = fetch_of(MANY, session_epoch=-1)
        request.topics += fetch_of(1, "u").topics
        steps = begun(state, request, 11, 2 * MANY - 100)
        state.metadata.delete_topic("t")
        return steps_of(steps)[0]

    answer = broker.call(run, broker.state)
    codes = {part.error_code for topic in answer.responses if topic.topic == "t" for part in topic.partitions}
    assert codes == {0, 3}
    assert sum(len(topic.partitions) for topic in answer.responses) == MANY + 1
    # Kafka lists unknown partitions last.
    assert [topic.partitions[0].error_code for topic in answer.responses][-1] == 3
    assert broker.call(lambda: broker.state.metrics.errors_unexpected) == 0


def test_a_request_of_a_session_that_comes_while_another_is_answered_makes_that_one_a_duplicate(broker: Broker) -> None:
    topics(broker, t=MANY)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        opened = client.request(fetch_of(MANY, session_epoch=0), 11)
        assert opened.session_id

        def run(state: Any) -> tuple[Any, Any]:
            moved = fetch_of(MANY, session_id=opened.session_id, session_epoch=1)
            steps = begun(state, moved, 11, 2 * MANY)
            later = fetch_request({}, session_id=opened.session_id, session_epoch=2)
            context = context_of(state, later, 11)
            context.is_large = True
            second = at_once(k01_fetch._in_steps(context, later))  # type: ignore[arg-type]
            return steps_of(steps)[0], second

        first, second = broker.call(run, broker.state)
        assert first.error_code == 71  # INVALID_FETCH_SESSION_EPOCH
        assert second.error_code == 0


def test_a_session_that_is_gone_before_its_partitions_joined_follows_no_log(broker: Broker) -> None:
    topics(broker, t=MANY)

    def run(state: Any) -> tuple[Any, int, int]:
        sessions = state.fetch_sessions
        steps = begun(state, fetch_of(MANY, session_epoch=0), 11, 0)
        while not len(sessions):
            next(steps)
        next(steps)
        for session_id in list(sessions._sessions):
            sessions._sessions.pop(session_id).close()
        answer = steps_of(steps)[0]
        followed = sum(len(log._readers or ()) for log in state.logs.loaded())
        return answer, followed, len(sessions)

    answer, followed, count = broker.call(run, broker.state)
    assert (answer.error_code, followed, count) == (0, 0, 0)


def test_a_large_fetch_waits_for_records_as_a_small_one_does(broker: Broker) -> None:
    topics(broker, t=MANY)
    with (
        Connection(broker.bootstrap_servers, timeout_s=60) as reader,
        Connection(broker.bootstrap_servers, timeout_s=60) as writer,
    ):
        reader.send(fetch_of(MANY, session_epoch=0, max_wait_ms=60_000), 11)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        produce(writer, "t", MANY - 1, batch(b"a"))
        answer = reader.receive(1, 11)[1]
        parts = [part for topic in answer.responses for part in topic.partitions]
        assert len(parts) == MANY
        assert [part.partition_index for part in parts if part.records] == [MANY - 1]
        assert answer.session_id


def test_a_response_of_many_small_parts_is_sent_on_many_turns(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two megabytes of small parts are tens of thousands of calls of the system."""
    calls: list[int] = []
    send_more = connection.Connection._send_more

    def counted(self: connection.Connection) -> None:
        before = sent[0]
        send_more(self)
        calls.append(sent[0] - before)

    sent = [0]
    send_file = connection.NetworkSend.send_file

    def noted(self: Any, socket_fd: int, limit_bytes: int) -> int:
        sent[0] += 1
        return send_file(self, socket_fd, limit_bytes)

    monkeypatch.setattr(connection.Connection, "_send_more", counted)
    monkeypatch.setattr(connection.NetworkSend, "send_file", noted)
    topics(broker, t=1000)
    records = batch(b"x" * 1000)  # beyond 64 kB in all they are sent from their files
    data = [{"index": number, "records": records} for number in range(1000)]
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        client.request(make("Produce", acks=1, topic_data=[{"name": "t", "partition_data": data}]), 9)
        answer = client.request(fetch_of(1000, session_epoch=-1), 11)
    assert sum(len(part.records or b"") for topic in answer.responses for part in topic.partitions) == 1000 * len(
        records
    )
    assert sum(calls) > 800
    assert max(calls) <= connection.TURN_BYTES // connection.CALL_BYTES + 1


# --- answers of a large group


def test_members_of_a_large_group_have_their_answers_at_once_and_are_sent_them_in_turns() -> None:
    count = 5 * runtime.REPLIES_PER_TURN
    woken: list[int] = []

    async def member(delayed: DelayedResponse, number: int) -> Any:
        outcome = await delayed.wait()
        woken.append(number)
        return outcome.response

    async def run(state: Any) -> None:
        groups = state.groups._runtime
        waiting = [DelayedResponse(lambda code: code) for _ in range(count)]
        tasks = [asyncio.ensure_future(member(each, number)) for number, each in enumerate(waiting)]
        await asyncio.sleep(0)
        decision = Decision()
        for number, each in enumerate(waiting):
            decision.reply(each, f"answer {number}")
        groups.carry_out(0, groups.loader.groups(0), decision, 0)
        assert all(each.outcome is not None for each in waiting)
        waiting[-1].fail(None)  # type: ignore[arg-type]
        turns = []
        while len(woken) < count:
            before = len(woken)
            await asyncio.sleep(0)
            turns.append(len(woken) - before)
        assert max(turns) <= runtime.REPLIES_PER_TURN
        assert [await task for task in tasks] == [f"answer {number}" for number in range(count)]
        # A stop sends the rest at once.
        last = [DelayedResponse(lambda code: code) for _ in range(count)]
        tasks = [asyncio.ensure_future(member(each, number)) for number, each in enumerate(last)]
        await asyncio.sleep(0)
        decision = Decision()
        for each in last:
            decision.reply(each, "last")
        groups.carry_out(0, groups.loader.groups(0), decision, 0)
        groups.scheduler.stop()
        groups.dismiss()
        assert {await asyncio.wait_for(task, 60) for task in tasks} == {"last"}

    with Broker() as running:
        with Connection(running.bootstrap_servers, timeout_s=60) as client:
            client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
            while client.request(make("DescribeGroups", groups=["g"]), 5).groups[0].error_code == 14:
                pass
        running.call(run, running.state)


# --- administrators


def altered(names: list[str], value: str) -> Any:
    rows = [
        {
            "resource_type": 2,
            "resource_name": name,
            "configs": [{"name": "retention.ms", "config_operation": 0, "value": value}],
        }
        for name in names
    ]
    return make("IncrementalAlterConfigs", resources=rows)


def finish(broker: Broker, steps: Any) -> Any:
    """The response of steps that end in a wait for the disk."""

    async def wait(result: Any) -> Any:
        return await result if isinstance(result, CoroutineType) else result

    return broker.call(wait, steps_of(steps)[0])


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
    assert number <= 2 + 4 * large_changes.TRIES + 2

    async def wait() -> Any:
        return await result

    assert [one.error_code for one in broker.call(wait).responses] == [0, 0]


def entry(name: str) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": "user", "entity_name": name}],
        "ops": [{"key": "producer_byte_rate", "value": 5.0, "remove": False}],
    }


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
        steps = k19_create_topics._create(context_of(state, request, 5), request)
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


# --- offsets


@pytest.mark.parametrize("is_transactional", [False, True])
def test_a_commit_that_no_batch_holds_is_refused_before_it_is_built(broker: Broker, is_transactional: bool) -> None:
    """Long names take their part of the batch, too."""
    name, count = "t" * 200, 4500
    topics(broker, **{name: 1})
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
        rows = [{"name": name, "partitions": [{"partition_index": 0, "committed_offset": 1}] * count}]
        if is_transactional:
            client.request(make("FindCoordinator", key_type=1, coordinator_keys=["x"]), 4)
            begin = make("InitProducerId", transactional_id="x", transaction_timeout_ms=60_000)
            while (made := client.request(begin, 4)).error_code:
                pass
            who = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch, "transactional_id": "x"}
            while client.request(make("AddOffsetsToTxn", group_id="g", **who), 3).error_code:
                pass
            request, version = make("TxnOffsetCommit", group_id="g", **who, topics=rows), 3
        else:
            request, version = make("OffsetCommit", group_id="g", topics=rows), 8
        built: list[int] = []
        broker.call(lambda: setattr(broker.state.groups._runtime, "write_offsets", lambda *arguments: built.append(1)))
        answer = client.request(request, version)
    assert {part.error_code for part in answer.topics[0].partitions} == {-1}
    assert built == []


def test_offsets_are_looked_up_in_steps_and_deleted_in_one(broker: Broker) -> None:
    topics(broker, t=30, u=1)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
        parts = [{"partition_index": number, "committed_offset": 1} for number in range(30)]
        commit = make("OffsetCommit", group_id="g", topics=[{"name": "t", "partitions": parts}])
        while client.request(commit, 8).topics[0].partitions[0].error_code:
            pass

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


# --- transactions


def test_partitions_that_go_between_two_steps_are_not_added_and_one_bad_fails_all(broker: Broker) -> None:
    count = 3 * k24_add_partitions_to_txn.PARTITIONS_PER_STEP
    topics(broker, kept=count, gone=1)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        client.request(make("FindCoordinator", key_type=1, coordinator_keys=["x"]), 4)
        begin = make("InitProducerId", transactional_id="x", transaction_timeout_ms=60_000)
        while (made := client.request(begin, 4)).error_code:
            pass

        def add(state: Any, deletes: bool) -> tuple[list[int], int, int]:
            rows = [{"name": "kept", "partitions": list(range(count))}]
            rows += [{"name": "gone", "partitions": [0]}] if deletes else []
            request = make(
                "AddPartitionsToTxn",
                v3_and_below_transactional_id="x",
                v3_and_below_producer_id=made.producer_id,
                v3_and_below_producer_epoch=made.producer_epoch,
                v3_and_below_topics=rows,
            )
            steps = begun(state, request, 3, 3)
            if deletes:
                state.metadata.delete_topic("gone")
            outcome, left = steps_of(steps)
            codes = [
                one.partition_error_code
                for topic in outcome.response.results_by_topic_v3_and_below
                for one in topic.results_by_partition
            ]
            _, transaction = state.transactions._find("x")
            return codes, len(transaction.partitions), left

        refused = broker.call(add, broker.state, True)
        assert refused[:2] == ([55] * count + [3], 0)  # OPERATION_NOT_ATTEMPTED
        added, known, left = broker.call(add, broker.state, False)
        assert (added, known) == ([0] * count, count)
        assert left >= 6  # looked up and answered in parts


def test_markers_are_written_a_partition_a_step(broker: Broker) -> None:
    topics(broker, t=30)

    def run(state: Any) -> tuple[list[int], list[int], int]:
        row = {"name": "t", "partition_indexes": list(range(30))}
        marker = {"producer_id": 5, "producer_epoch": 0, "transaction_result": True, "topics": [row]}
        steps = begun(state, make("WriteTxnMarkers", markers=[marker]), 1, 10)
        ends = [state.logs.get("t", number).log_end_offset for number in range(30)]
        state.metadata.delete_topic("t")
        answer, count = steps_of(steps)
        return ends, [one.error_code for one in answer.markers[0].topics[0].partitions], count

    ends, codes, count = broker.call(run, broker.state)
    assert ends == [1] * 10 + [0] * 20
    assert codes == [0] * 10 + [3] * 20
    assert count >= 49


# --- ACLs


def test_many_filters_are_looked_up_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of few ACLs, but for each of thousands of filters: the loop was held for all of them."""
    looks = [0]
    matches = AclFilter.matches
    monkeypatch.setattr(
        AclFilter, "matches", lambda self, acl: (looks.__setitem__(0, looks[0] + 1), matches(self, acl))[1]
    )
    acl = {
        "resource_type": 2,
        "resource_pattern_type": 3,
        "principal": "User:a",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    filters = [
        {"resource_type_filter": 2, "resource_name_filter": f"n{number}", "operation": 1, "permission_type": 1}
        for number in range(300)
    ]
    options = {
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": "User:ANONYMOUS",
    }

    async def run(state: Any) -> list[int]:
        request = make("DeleteAcls", filters=filters)
        task = asyncio.ensure_future(k31_delete_acls.handle(context_of(state, request, 3), request))
        turns = []
        while not task.done():
            before = looks[0]
            await asyncio.sleep(0)
            turns.append(looks[0] - before)
        assert len((await task).filter_results) == 300
        return turns

    with Broker(**options) as running, Connection(running.bootstrap_servers, timeout_s=60) as client:  # type: ignore[arg-type]
        creations = [{**acl, "resource_name": f"t{number}"} for number in range(20)]
        assert {one.error_code for one in client.request(make("CreateAcls", creations=creations), 3).results} == {0}
        looks[0] = 0
        turns = running.call(run, running.state)
    assert sum(turns) == 20 * 300
    assert max(turns) <= SLICE


# --- authorization


class Denying:
    """An authorizer that allows `even` names, and notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def allowed(self, principal: str, host: str, operation: Any, kind: Any, names: Any) -> set[str]:
        self.asked += names
        return {name for name in names if not int(name[1:]) % 2}


@pytest.mark.parametrize("repeats", [[0, 0, 1, 1], [*range(3 * NAMES_PER_STEP), *range(3 * NAMES_PER_STEP)]])
def test_a_name_that_is_sent_again_is_asked_for_once(broker: Broker, repeats: list[int]) -> None:
    authorizer = Denying()
    names = [f"n{number}" for number in repeats]

    def run(state: Any) -> Any:
        state.authorizer = authorizer
        try:
            context = context_of(state, make("Metadata"), 12)
            return at_once(authorized_in_steps(context, AclOperation.READ, ResourceType.TOPIC, iter(names)))
        finally:
            state.authorizer = None

    assert set(broker.call(run, broker.state)) == {name for name in names if not int(name[1:]) % 2}
    assert authorizer.asked == list(dict.fromkeys(names))


def committed(names: list[str]) -> Any:
    rows = [{"name": name, "partitions": [{"partition_index": 0, "committed_offset": 1}]} for name in names]
    return make("OffsetCommit", group_id="n0", topics=rows)


def fetched(names: list[str]) -> Any:
    rows = [{"name": name, "partition_indexes": [0]} for name in names]
    return make("OffsetFetch", groups=[{"group_id": "n0", "topics": rows}])


def described(names: list[str]) -> Any:
    rows = [{"topic_name": name, "partitions": [0]} for name in names]
    return make("DescribeShareGroupOffsets", groups=[{"group_id": "n0", "topics": rows}])


@pytest.mark.parametrize(("request_", "version"), [(committed, 8), (fetched, 8), (described, 1)])
def test_topics_that_a_request_names_twice_are_asked_for_once(
    broker: Broker, request_: Callable[[list[str]], Any], version: int
) -> None:
    authorizer = Denying()
    names = [f"n{number}" for number in (1, 2, 1, 2, 3)]

    def run(state: Any) -> None:
        state.authorizer = authorizer
        try:
            steps_of(begun(state, request_(names), version, 0))
        finally:
            state.authorizer = None

    broker.call(run, broker.state)
    assert authorizer.asked == ["n0", "n1", "n2", "n3"]


# --- quota


def test_the_quota_counts_the_time_of_all_turns(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of large requests paid for the first turn of each alone."""
    now_ns = [0]
    monkeypatch.setattr(request_throttle, "perf_counter_ns", lambda: now_ns[0])
    count, step_ns = 10_000, 1000

    def busy() -> Iterator[None]:
        for _ in range(count):
            now_ns[0] += step_ns
            yield

    async def run(state: Any) -> tuple[int | None, int]:
        from kafka_shim.quota.quotas import Quotas

        throttle = RequestThrottle(Quotas(state.config, state.clock), "User:u", "c", 0)
        waiting: Any = Turns(VirtualClock()).finish(busy(), throttle)  # type: ignore[arg-type]
        throttle.wait()
        assert throttle._spent_ns is not None
        assert throttle._spent_ns < count * step_ns
        task = asyncio.ensure_future(waiting)
        while not task.done():
            await asyncio.sleep(0)
            now_ns[0] += 7_000_000  # others work between two turns
        return throttle._spent_ns, count * step_ns

    spent_ns, worked_ns = broker.call(run, broker.state)
    assert spent_ns == worked_ns


def test_steps_that_are_run_in_a_task_are_counted_too(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = [0]
    monkeypatch.setattr(request_throttle, "perf_counter_ns", lambda: now_ns[0])

    async def last() -> str:
        now_ns[0] += 5_000_000  # a wait
        return "done"

    def busy() -> Iterator[None]:
        for _ in range(STEPS_BETWEEN_LOOKS):
            now_ns[0] += 1000
            yield
        return last()  # type: ignore[return-value]

    async def run(state: Any) -> tuple[str, int | None]:
        from kafka_shim.quota.quotas import Quotas

        throttle = RequestThrottle(Quotas(state.config, state.clock), "User:u", "c", 0)
        throttle.wait()
        return await Turns(VirtualClock()).run(busy(), throttle), throttle._spent_ns  # type: ignore[arg-type]

    assert broker.call(run, broker.state) == ("done", 1000 * STEPS_BETWEEN_LOOKS)


def test_an_error_of_a_later_turn_leaves_the_throttle_stopped(broker: Broker) -> None:
    def failing() -> Iterator[None]:
        for _ in range(10_000):
            yield
        raise KafkaError(3)  # type: ignore[arg-type]

    async def run(state: Any) -> int | None:
        from kafka_shim.quota.quotas import Quotas

        throttle = RequestThrottle(Quotas(state.config, state.clock), "User:u", "c", 0)
        with pytest.raises(KafkaError):
            await Turns(VirtualClock()).run(failing(), throttle)  # type: ignore[arg-type]
        return throttle._spent_ns

    assert broker.call(run, broker.state) is not None


# --- what the garbage collector looks at


def test_a_process_of_its_own_spares_the_collector_the_logs_that_are_used(broker: Broker) -> None:
    """A look at 20,000 of them held the loop for 60 ms."""
    spared: list[int] = []
    broker.call(lambda: setattr(broker.state.logs.partitions, "after_many", lambda: spared.append(1)))
    topics(broker, first=partitions.MANY - 100)
    before = len(spared)
    topics(broker, second=partitions.MANY)
    assert len(spared) == before + 1


# --- the metadata snapshot


def test_a_snapshot_shows_the_metadata_of_its_offset_while_they_change(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread encodes it; what the event loop changes meanwhile is not in it."""
    from kafka_shim.metadata import snapshots
    from kafka_shim.metadata.image import Image
    from kafka_shim.metadata.log import read_records
    from kafka_shim.metadata.replay import Replayer
    from kafka_shim.tests.metadata.test_snapshots import everything

    topics(broker, kept=3, gone=200)
    began, may_go_on, threads = threading.Event(), threading.Event(), set()
    records_of = snapshots.image_records

    def held(view: Any) -> Iterator[Any]:
        threads.add(threading.get_ident())
        for number, record in enumerate(records_of(view)):
            if number == 1:  # before the topics
                began.set()
                assert may_go_on.wait(60)
            yield record

    monkeypatch.setattr(snapshots, "image_records", held)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        client.request(make("AlterClientQuotas", entries=[entry("u")]), 1)

        def start(state: Any) -> tuple[Any, int, int]:
            store = state.metadata
            store._snapshots._start(store.image, store._clock.now_ms(), "a test asks")
            return deepcopy(everything(store.image)), store.image.last_offset, threading.get_ident()

        before, offset, loop_thread = broker.call(start, broker.state)
        assert began.wait(60)
        broker.call(broker.state.metadata.delete_topic, "gone")
        broker.call(broker.state.metadata.create_partitions, "kept", 5)
        kept = broker.call(lambda: broker.state.metadata.image.topics["kept"].topic_id)
        change_of_one = PartitionChangeRecord(partition_id=0, topic_id=kept, eligible_leader_replicas=[1])
        broker.call(broker.state.metadata.commit, [change_of_one])
        client.request(altered(["kept"], "80"), 1)
        change = entry("u")
        change["ops"][0]["value"] = 6.0
        client.request(make("AlterClientQuotas", entries=[change]), 1)
        may_go_on.set()
        broker.call(broker.state.metadata.await_snapshot)
        path = broker.call(lambda: broker.state.metadata.snapshot_path(*broker.state.metadata.newest_snapshot()))
    again = Image()
    replayer = Replayer(again)
    for record in read_records(path.read_bytes()):
        replayer.apply(record)
    assert everything(again) == before
    assert int(path.name[:20]) == offset + 1
    assert loop_thread not in threads
