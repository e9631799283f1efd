"""Groups: the coordinator, joins, offsets. The first test needs brokers that nobody has asked anything."""

from __future__ import annotations

import time

from kafka_shim.compat.tests.admin.test_data_directory import await_topic
from kafka_shim.compat.tests.compat.differences.conftest import UNANSWERED_S, Asked, await_coordinator, until
from kafka_shim.errors import ErrorCode
from kafka_shim.group.classic_join import MAX_METADATA_BYTES, MAX_PENDING_JOINS
from kafka_shim.targets import Target
from kafka_shim.targets import requests as ask
from kafka_shim.targets.waiting import PATIENCE_S
from kafka_shim.wire_client import Connection, WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.protocol.message import Message

JOIN_GROUP = 11


def first_join(group_id: str, *, timeout_ms: int = 10_000, metadata: bytes | None = None) -> dict[str, Any]:
    """The fields of a JoinGroup of a consumer that has no member id yet; `timeout_ms` is of its session and of a
    rebalance."""
    return {
        "group_id": group_id,
        "session_timeout_ms": timeout_ms,
        "rebalance_timeout_ms": timeout_ms,
        "protocol_type": "consumer",
        "protocols": ask.protocols("range", metadata=ask.subscription("absent") if metadata is None else metadata),
    }


def test_the_first_look_up_of_a_coordinator(each) -> None:
    look_up = ask.make("FindCoordinator", key="g", key_type=0)
    codes = each(lambda connection: connection.request(look_up, 3).error_code)
    assert codes == [ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_the_initial_rebalance_delay(each) -> None:
    def seconds_to_join(connection: Connection, group: str) -> float:
        join = ask.make("JoinGroup", **first_join(group))
        await_coordinator(connection, group)

        def seconds() -> float | None:
            began = time.monotonic()
            return None if connection.request(join, 3).error_code else time.monotonic() - began

        return until(seconds)

    def least_seconds_to_join(connection: Connection) -> float:
        """Of a few groups: a machine that stands still makes an answer late, and none early."""
        return min(seconds_to_join(connection, f"alone-{number}") for number in range(3))

    ours, theirs = each(least_seconds_to_join)
    assert ours < 2.9 < theirs


def test_a_large_regular_expression(each) -> None:
    def join(connection: Connection) -> int:
        await_coordinator(connection, "large")
        beat = ask.make(
            "ConsumerGroupHeartbeat",
            group_id="large",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=[],
            subscribed_topic_regex="((a{100}){100}){10}",
            topic_partitions=[],
        )

        def code() -> int | None:
            found = int(connection.request(beat, 1).error_code)
            loading = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
            return None if found in loading else found

        return int(until(code))

    assert each(join) == [ErrorCode.INVALID_REGULAR_EXPRESSION, ErrorCode.NONE]


def test_a_subscription_that_claims_a_huge_array(each) -> None:
    metadata = b"\0\0" + (2**31 - 1).to_bytes(4, "big")
    join = ask.make("JoinGroup", **first_join("huge", metadata=metadata))

    def code_of(connection: Asked) -> int | str:
        await_coordinator(connection, "huge")
        try:
            return connection.request(join, 3, connection.answer_s).error_code
        except WireClientError as err:
            return str(err)

    ours, theirs = each(code_of)
    assert ours == ErrorCode.NONE
    assert "no answer from" in str(theirs)


def test_ids_that_no_member_uses(each) -> None:
    join = ask.make("JoinGroup", **first_join("flooded", timeout_ms=300_000))

    def leave_first_and_last(connection: Connection) -> list[int]:
        await_coordinator(connection, "flooded")
        given = []
        for _ in range(MAX_PENDING_JOINS // 500 + 1):
            for _ in range(500):
                connection.send(join, 4)
            given += [connection.receive(join.API_KEY, 4)[1].member_id for _ in range(500)]
        leave = [ask.make("LeaveGroup", group_id="flooded", member_id=one) for one in (given[0], given[-1])]
        return [connection.request(one, 2).error_code for one in leave]

    ours, theirs = each(leave_first_and_last)
    assert ours == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
    assert theirs == [ErrorCode.NONE, ErrorCode.NONE]


def test_a_member_that_joins_again_while_it_waits(brokers) -> None:
    join = first_join("again", timeout_ms=30_000)
    describe = ask.make("DescribeGroups", groups=["again"])

    def send(connection: Connection, member_id: str) -> None:
        connection.send(ask.make("JoinGroup", **join, member_id=member_id), 5)

    def receive(connection: Connection) -> Any:
        return connection.receive(JOIN_GROUP, 5)[1]

    def first_answer(target: Target) -> int | str:
        with (
            Connection(target.bootstrap, timeout_s=30) as leader,
            Connection(target.bootstrap, timeout_s=30) as first,
            Connection(target.bootstrap, timeout_s=30) as second,
        ):
            await_coordinator(leader, "again")
            send(leader, "")
            leads = receive(leader).member_id
            send(leader, leads)
            assert receive(leader).error_code == ErrorCode.NONE
            send(first, "")
            waits = receive(first).member_id
            send(first, waits)
            until(lambda: len(second.request(describe, 5).groups[0].members) == 2 or None)
            send(second, waits)
            first._socket.settimeout(UNANSWERED_S if target.kind == "kafka-native" else PATIENCE_S)
            try:
                told: int | str = receive(first).error_code
            except WireClientError as err:
                told = str(err)
            send(leader, leads)
            assert receive(second).error_code == ErrorCode.NONE
            return told

    ours, theirs = [first_answer(target) for target in brokers]
    assert ours == ErrorCode.UNKNOWN_MEMBER_ID
    assert "no answer from" in str(theirs)


def test_a_group_of_refused_offsets(each) -> None:
    refused = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "x" * 5000}
    commit = ask.make("OffsetCommit", group_id="refused", topics=[{"name": "of-refused", "partitions": [refused]}])

    def delete(connection: Connection) -> tuple[int, int]:
        ask.create_topic(connection, "of-refused")
        await_topic(connection, "of-refused", is_there=True)
        await_coordinator(connection, "refused")
        committed = connection.request(commit, 8).topics[0].partitions[0].error_code
        (deleted,) = connection.request(ask.make("DeleteGroups", groups_names=["refused"]), 2).results
        return committed, deleted.error_code

    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert each(delete) == [(too_large, ErrorCode.GROUP_ID_NOT_FOUND), (too_large, ErrorCode.NONE)]


def test_offsets_of_a_group_that_a_stranger_has_ended(each) -> None:
    beats = {"group_id": "ended", "member_id": "B" * 22, "rebalance_timeout_ms": 10_000}
    subscribed = {"subscribed_topic_names": ["of-ended"], "subscribed_topic_regex": None, "topic_partitions": []}
    part = {"partition_index": 0, "committed_offset": 5}
    stranger = ask.make("JoinGroup", **first_join("ended"), member_id="stranger")
    wanted = [{"name": "of-ended", "partition_indexes": [0]}]
    fetch = ask.make("OffsetFetch", groups=[{"group_id": "ended", "topics": wanted}])

    def commit(connection: Connection, group: str) -> None:
        request = ask.make("OffsetCommit", group_id=group, topics=[{"name": "of-ended", "partitions": [part]}])
        assert connection.request(request, 8).topics[0].partitions[0].error_code == ErrorCode.NONE

    def offset(connection: Connection) -> int:
        return connection.request(fetch, 8).groups[0].topics[0].partitions[0].committed_offset

    def offsets(connection: Connection) -> tuple[int, int, int]:
        ask.create_topic(connection, "of-ended")
        await_topic(connection, "of-ended", is_there=True)
        await_coordinator(connection, "ended")
        for epoch, more in ((0, subscribed), (-1, {})):
            beat = ask.make("ConsumerGroupHeartbeat", member_epoch=epoch, **beats, **more)
            assert until(lambda beat=beat: connection.request(beat, 1).error_code == 0 or None)
        commit(connection, "ended")
        before = offset(connection)
        code = connection.request(stranger, 5).error_code
        # Of the same partition of __consumer_offsets: until something is written there, Kafka shows what was before.
        commit(connection, "o50")
        return before, code, offset(connection)

    assert each(offsets) == [(5, ErrorCode.UNKNOWN_MEMBER_ID, 5), (5, ErrorCode.UNKNOWN_MEMBER_ID, -1)]


def test_share_offsets_of_a_partition_that_does_not_exist(each) -> None:
    beat = ask.make(
        "ShareGroupHeartbeat",
        group_id="share-of-few",
        member_id="A" * 22,
        member_epoch=0,
        rack_id=None,
        subscribed_topic_names=["few"],
    )
    topics = [{"topic_name": "few", "partitions": [7]}]
    describe = ask.make("DescribeShareGroupOffsets", groups=[{"group_id": "share-of-few", "topics": topics}])

    def described(connection: Asked) -> int | str:
        ask.create_topic(connection, "few")
        await_topic(connection, "few", is_there=True)
        await_coordinator(connection, "share-of-few")
        assert until(lambda: not connection.request(beat, 1).error_code or None)
        try:
            (topic,) = connection.request(describe, 1, connection.answer_s).groups[0].topics
        except WireClientError as err:
            return str(err)
        return topic.partitions[0].start_offset

    ours, theirs = each(described)
    assert ours == -1
    assert "no answer from" in str(theirs)


def test_metadata_of_classic_members(each) -> None:
    join = ask.make("JoinGroup", **first_join("wordy", metadata=ask.subscription("t") + bytes(MAX_METADATA_BYTES)))

    def code_of(connection: Connection) -> int:
        await_coordinator(connection, "wordy")
        return connection.request(join, 3).error_code

    assert each(code_of) == [ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.NONE]


def test_unknown_topic_ids_of_a_share_fetch(each) -> None:
    def fetched(connection: Connection) -> tuple[int, list[int]]:
        part = {"partition_index": 0, "acknowledgement_batches": []}
        fetch = ask.make(
            "ShareFetch",
            group_id="share-of-nothing",
            member_id="A" * 22,
            share_session_epoch=0,
            max_bytes=1000,
            max_records=1,
            batch_size=1,
            topics=[{"topic_id": b"\x01" * 16, "partitions": [part]}],
        )
        answer = connection.request(fetch, 1)
        return answer.error_code, [part.error_code for topic in answer.responses for part in topic.partitions]

    assert each(fetched) == [(ErrorCode.NONE, [ErrorCode.UNKNOWN_TOPIC_ID]), (ErrorCode.UNKNOWN_SERVER_ERROR, [])]


def test_requests_that_get_no_answer(each) -> None:
    def markers(*places: tuple[str, list[int]]) -> Message:
        rows = [
            {
                "producer_id": number,
                "producer_epoch": 0,
                "transaction_result": True,
                "topics": [{"name": topic, "partition_indexes": partitions}],
            }
            for number, (topic, partitions) in enumerate(places)
        ]
        return ask.make("WriteTxnMarkers", markers=rows)

    def served(connection: Connection) -> None:
        ask.create_topic(connection, "marked")
        await_topic(connection, "marked", is_there=True)
        append = ask.produce("marked", 0, [(b"k", b"v")])
        until(lambda: connection.request(append, 9).responses[0].partition_responses[0].error_code == 0 or None)

    each(served)
    for message, version in (
        (markers(("marked", [0, 0])), 1),
        (markers(("marked", [0]), ("absent", [0])), 1),
        (ask.make("AddPartitionsToTxn", transactions=[]), 5),
        (ask.make("AlterConfigs", resources=[{"resource_type": 2, "resource_name": "marked"}] * 2), 2),
    ):

        def is_answered(connection: Asked, message: Message = message, version: int = version) -> bool:
            try:
                connection.request(message, version, connection.answer_s)
            except WireClientError as err:
                assert "answer from" in str(err)
                return False
            return True

        assert each(is_answered) == [True, False]
