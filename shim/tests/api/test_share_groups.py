"""The APIs of share groups over the wire: offsets that administrators see and change, states, and the switch."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafka_shim.api import k91_alter_share_group_offsets
from kafka_shim.context import Context
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode as E
from kafka_shim.internal_topics import SHARE_GROUP_STATE_TOPIC
from kafka_shim.java_hash import internal_partition
from kafka_shim.session import Session
from kafka_shim.targets.requests import make
from kafka_shim.tests.produced import make_topic
from kafka_shim.tests.waiting import PATIENCE_S
from kafka_shim.uuids import uuid_text
from kafka_shim.wire_client import Connection

pytestmark = pytest.mark.usefixtures("looked_up")

GROUP, TOPIC, ABSENT = "g", "t", "absent"


def ask(client: Connection, api: str, **fields: Any) -> Any:
    return client.request(make(api, **fields))


def begun(client: Connection) -> Any:
    """A topic with two partitions, and a share group without members that starts at 0 and 5; its topic."""
    make_topic(client, TOPIC)
    return begun_again(client)


def begun_again(client: Connection) -> Any:
    """The group starts again at the same offsets."""
    parts = [{"partition_index": index, "start_offset": 5 * index} for index in range(2)]
    topics = [{"topic_name": TOPIC, "partitions": parts}]
    answer = ask(client, "AlterShareGroupOffsets", group_id=GROUP, topics=topics)
    assert [part.error_code for part in answer.responses[0].partitions] == [0, 0]
    return answer.responses[0]


def described(client: Connection, topics: Any = None) -> Any:
    (group,) = ask(client, "DescribeShareGroupOffsets", groups=[{"group_id": GROUP, "topics": topics}]).groups
    assert group.error_code == 0
    return [
        (topic.topic_name, part.partition_index, part.start_offset, part.lag)
        for topic in group.topics
        for part in topic.partitions
    ]


def test_offsets_are_described_with_their_lag(client: Connection) -> None:
    begun(client)
    assert described(client) == [(TOPIC, 0, 0, 0), (TOPIC, 1, 5, -5)]
    assert described(client, []) == []
    wanted = [{"topic_name": ABSENT, "partitions": [0]}, {"topic_name": TOPIC, "partitions": [1, 9]}]
    assert described(client, wanted) == [(TOPIC, 1, 5, -5), (TOPIC, 9, -1, -1), (ABSENT, 0, -1, -1)]


def test_offsets_of_what_is_named_twice_are_described_once(client: Connection) -> None:
    """As by Apache Kafka, but for topics that do not exist."""
    begun(client)
    wanted = [{"topic_name": name, "partitions": [1, 0, 1]} for name in (TOPIC, ABSENT, TOPIC)]
    wanted[2]["partitions"] = [9, 0]
    absent = [(ABSENT, index, -1, -1) for index in (1, 0, 1)]
    assert described(client, wanted) == [(TOPIC, 1, 5, -5), (TOPIC, 0, 0, 0), (TOPIC, 9, -1, -1), *absent]


def test_requests_wait_for_states_that_are_read_in_steps(
    broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's persister tries again while the share coordinator loads: they were answered with its error, or with no
    offset."""
    monkeypatch.setattr("kafka_shim.share.shard_loader.READ_AT_ONCE_BYTES", 0)
    monkeypatch.setattr("kafka_shim.share.shard_loader.STEP_RECORDS", 1)
    begun(client)
    for _ in range(3):
        begun_again(client)
    broker.restart()
    with Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as again:
        assert described(again) == [(TOPIC, 0, 0, 0), (TOPIC, 1, 5, -5)]
    broker.restart()
    with Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as again:
        begun_again(again)
    broker.restart()
    with Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as again:
        (deleted,) = ask(again, "DeleteShareGroupOffsets", group_id=GROUP, topics=[{"topic_name": TOPIC}]).responses
        assert deleted.error_code == 0


def test_offsets_of_no_partition_or_of_a_group_without_a_name_are_an_error_of_the_group(client: Connection) -> None:
    begun(client)
    for group_id, partitions in ((GROUP, []), (GROUP, [0, -1]), ("", [0])):
        topics = [{"topic_name": TOPIC, "partitions": partitions}]
        (group,) = ask(client, "DescribeShareGroupOffsets", groups=[{"group_id": group_id, "topics": topics}]).groups
        assert (group.error_code, group.topics) == (E.UNKNOWN_SERVER_ERROR, [])
        assert group.error_message == "The server experienced an unexpected error when processing the request."


def test_each_partition_that_cannot_be_altered_has_its_error(client: Connection) -> None:
    make_topic(client, TOPIC)
    topics = [
        {"topic_name": TOPIC, "partitions": [{"partition_index": 0}, {"partition_index": 7}]},
        {"topic_name": ABSENT, "partitions": [{"partition_index": 0}]},
    ]
    answer = ask(client, "AlterShareGroupOffsets", group_id=GROUP, topics=topics)
    found = [(topic.topic_name, part.error_code) for topic in answer.responses for part in topic.partitions]
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    assert found == [(ABSENT, unknown), (TOPIC, E.NONE), (TOPIC, unknown)]
    assert ask(client, "AlterShareGroupOffsets", group_id="").error_code == E.INVALID_GROUP_ID


def test_a_topic_that_is_named_twice_is_altered_and_answered_once(client: Connection) -> None:
    """What Apache Kafka answers. What is refused comes first, and nothing of a topic of which nothing is refused."""
    make_topic(client, TOPIC)
    rows = [(TOPIC, 0), (ABSENT, 0), (TOPIC, 9), (TOPIC, 1)]
    topics = [{"topic_name": name, "partitions": [{"partition_index": index}]} for name, index in rows]
    topics.append({"topic_name": "other", "partitions": []})
    answer = ask(client, "AlterShareGroupOffsets", group_id=GROUP, topics=topics)
    found = [
        (topic.topic_name, [(part.partition_index, part.error_code) for part in topic.partitions])
        for topic in answer.responses
    ]
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    assert found == [(ABSENT, [(0, unknown)]), (TOPIC, [(0, E.NONE), (9, unknown), (1, E.NONE)])]
    assert described(client) == [(TOPIC, 0, 0, 0), (TOPIC, 1, 0, 0)]


@pytest.mark.parametrize("partitions", [[], [9]])
def test_a_topic_of_which_no_partition_is_altered_makes_a_group(
    broker: Broker, client: Connection, partitions: list[int]
) -> None:
    """As in Apache Kafka; topics that do not exist make none."""
    make_topic(client, TOPIC)

    def groups(wire: Connection) -> Any:
        return [(one.group_id, one.group_type, one.group_state) for one in ask(wire, "ListGroups").groups]

    asked = [{"partition_index": index} for index in partitions]
    for name in (ABSENT, TOPIC):
        assert groups(client) == []
        topics = [{"topic_name": name, "partitions": asked}]
        assert ask(client, "AlterShareGroupOffsets", group_id=GROUP, topics=topics).error_code == E.NONE
    assert groups(client) == [(GROUP, "share", "Empty")]
    assert described(client) == []
    broker.restart()
    with Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as again:
        assert groups(again) == [(GROUP, "share", "Empty")]


def test_a_partition_below_0_refuses_an_alteration(client: Connection) -> None:
    topic_id = begun(client).topic_id
    parts = [{"partition_index": index, "start_offset": 3} for index in (0, -1)]
    answer = ask(client, "AlterShareGroupOffsets", group_id=GROUP, topics=[{"topic_name": TOPIC, "partitions": parts}])
    text = f"Initialize share group parameters has invalid partitionId - {GROUP} {uuid_text(topic_id)} -1"
    assert (answer.error_code, answer.error_message, answer.responses) == (E.UNKNOWN_SERVER_ERROR, text, [])
    assert described(client) == [(TOPIC, 0, 0, 0), (TOPIC, 1, 5, -5)]


def test_offsets_are_deleted_by_topic(client: Connection) -> None:
    topic_id = begun(client).topic_id
    topics = [{"topic_name": ABSENT}, {"topic_name": TOPIC}]
    answer = ask(client, "DeleteShareGroupOffsets", group_id=GROUP, topics=topics)
    assert [(topic.topic_name, topic.topic_id, topic.error_code) for topic in answer.responses] == [
        (TOPIC, topic_id, E.NONE),
        (ABSENT, bytes(16), E.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert described(client) == []
    (again,) = ask(client, "DeleteShareGroupOffsets", group_id=GROUP, topics=topics[1:]).responses
    assert (again.error_code, again.error_message) == (
        E.UNKNOWN_TOPIC_OR_PARTITION,
        "There is no offset information to delete.",
    )
    assert ask(client, "DeleteShareGroupOffsets", group_id="").error_code == E.INVALID_GROUP_ID
    assert ask(client, "DeleteShareGroupOffsets", group_id="none").error_code == E.GROUP_ID_NOT_FOUND


def test_states_are_written_and_read_by_requests(client: Connection) -> None:
    topic_id = begun(client).topic_id

    def about(api: str, **fields: Any) -> Any:
        topics = [{"topic_id": topic_id, "partitions": [{"partition": 1, **fields}]}]
        return ask(client, api, group_id=GROUP, topics=topics).results[0].partitions[0]

    batch = {"first_offset": 6, "last_offset": 8, "delivery_state": 2, "delivery_count": 1}
    written = {"state_epoch": 1, "leader_epoch": 0, "start_offset": -1, "delivery_complete_count": 3}
    assert about("WriteShareGroupState", state_batches=[batch], **written).error_code == 0
    state = about("ReadShareGroupState", leader_epoch=0)
    assert [(one.first_offset, one.last_offset, one.delivery_state) for one in state.state_batches] == [(6, 8, 2)]
    summary = about("ReadShareGroupStateSummary", leader_epoch=0)
    assert (summary.start_offset, summary.delivery_complete_count) == (5, 3)
    assert described(client)[1] == (TOPIC, 1, 5, -8)
    assert about("InitializeShareGroupState", state_epoch=0, start_offset=0).error_code == E.FENCED_STATE_EPOCH
    assert about("DeleteShareGroupState").error_code == 0
    assert about("ReadShareGroupState", leader_epoch=0).error_code == E.INVALID_REQUEST


def test_topics_without_offsets_to_delete_have_an_error_each_time_they_are_named(client: Connection) -> None:
    """As by Apache Kafka; a topic whose offsets are deleted is answered once."""
    begun(client)
    topics = [{"topic_name": name} for name in (ABSENT, TOPIC, ABSENT, TOPIC)]
    for expected in ([(TOPIC, E.NONE)], [(TOPIC, E.UNKNOWN_TOPIC_OR_PARTITION)] * 2):
        answer = ask(client, "DeleteShareGroupOffsets", group_id=GROUP, topics=topics)
        found = [(topic.topic_name, topic.error_code) for topic in answer.responses]
        assert sorted(found) == [(ABSENT, E.UNKNOWN_TOPIC_OR_PARTITION)] * 2 + expected


def test_states_are_initialized_beside_a_topic_without_partitions(client: Connection) -> None:
    """As by Apache Kafka, where such a topic leaves other requests about states without an answer."""
    topic_id = begun(client).topic_id
    partitions = [{"partition": 0, "state_epoch": 1, "start_offset": 3}]
    topics: list[Any] = [{"topic_id": b"\1" * 16, "partitions": []}, {"topic_id": topic_id, "partitions": partitions}]
    (result,) = ask(client, "InitializeShareGroupState", group_id=GROUP, topics=topics).results
    assert (result.topic_id, result.partitions[0].error_code) == (topic_id, E.NONE)
    assert described(client)[0] == (TOPIC, 0, 3, -3)
    topics[1]["partitions"] = [{"partition": 0}]
    assert ask(client, "DeleteShareGroupState", group_id=GROUP, topics=topics).results == []


def test_states_that_are_named_twice_are_answered_once(client: Connection) -> None:
    """As by Apache Kafka, with what came of the last."""
    topic_id = begun(client).topic_id
    first = {"partition": 0, "state_epoch": 1, "leader_epoch": 0, "start_offset": 2}
    topics = [
        {"topic_id": topic_id, "partitions": [first, {**first, "partition": 1}]},
        {"topic_id": b"\1" * 16, "partitions": [first]},
        {"topic_id": topic_id, "partitions": [{**first, "state_epoch": 0, "start_offset": 3}]},
    ]
    answer = ask(client, "WriteShareGroupState", group_id=GROUP, topics=topics)
    assert [
        (result.topic_id, [(part.partition, part.error_code) for part in result.partitions])
        for result in answer.results
    ] == [
        (topic_id, [(0, E.FENCED_STATE_EPOCH), (1, E.NONE)]),
        (b"\1" * 16, [(0, E.INVALID_REQUEST)]),
    ]
    assert [row[2] for row in described(client)] == [2, 2]


def test_states_have_no_coordinator_until_it_is_looked_up(client: Connection) -> None:
    """Requests wait for a look-up; the broker, which keeps states itself, does not need one."""
    partitions = [{"partition": 1, "leader_epoch": 0}]
    topics = [{"topic_id": b"\1" * 16, "partitions": partitions}]

    def code() -> int:
        answer = ask(client, "ReadShareGroupStateSummary", group_id=GROUP, topics=topics)
        return int(answer.results[0].partitions[0].error_code)

    assert code() == E.NOT_COORDINATOR
    begun(client)
    assert code() == E.UNKNOWN_TOPIC_OR_PARTITION


def test_without_the_feature_share_groups_are_refused(broker: Any, client: Connection) -> None:
    broker.call(broker.state.metadata.image.features.pop, "share.version")
    member = {"group_id": GROUP, "member_id": "m", "subscribed_topic_names": [TOPIC]}
    assert ask(client, "ShareGroupHeartbeat", **member).error_code == E.UNSUPPORTED_VERSION
    (group,) = ask(client, "DescribeShareGroupOffsets", groups=[{"group_id": GROUP, "topics": None}]).groups
    assert group.error_code == E.UNSUPPORTED_VERSION
    for api in ("AlterShareGroupOffsets", "DeleteShareGroupOffsets"):
        assert ask(client, api, group_id=GROUP).error_code == E.UNSUPPORTED_VERSION


def test_a_member_id_that_is_no_uuid_is_refused(client: Connection) -> None:
    for member_id in ("", "m" * 37):
        member = {"group_id": GROUP, "member_id": member_id, "subscribed_topic_names": [TOPIC]}
        assert ask(client, "ShareGroupHeartbeat", **member).error_code == E.INVALID_REQUEST


def test_the_share_coordinator_is_found(client: Connection) -> None:
    topic_id = "A" * 21 + "Q"
    keys = [f"g:{topic_id}:0", "g:x:0", f" :{topic_id}:0"]
    answer = ask(client, "FindCoordinator", key_type=2, coordinator_keys=keys)
    assert [found.error_code for found in answer.coordinators] == [E.NONE, E.INVALID_REQUEST, E.INVALID_REQUEST]


def test_a_share_coordinator_is_offline_where_its_states_are(broker: Any, client: Connection) -> None:
    """Also after its topic was given partitions, which hold none before the next start."""
    key = "g:" + "A" * 21 + "Q:0"
    ask(client, "FindCoordinator", key_type=2, coordinator_keys=[key])
    state = broker.state
    partition = broker.call(lambda: state.share_state.coordinator.partition_of(key))
    count = len(state.metadata.image.topics[SHARE_GROUP_STATE_TOPIC].partitions)
    later = next(one for one in range(count + 1, count + 50) if internal_partition(key, one) != partition)
    broker.call(lambda: state.metadata.create_partitions(SHARE_GROUP_STATE_TOPIC, later))
    broker.call(lambda: state.logs.get(SHARE_GROUP_STATE_TOPIC, partition).fail(OSError(5, "the disk")))
    (found,) = ask(client, "FindCoordinator", key_type=2, coordinator_keys=[key]).coordinators
    assert found.error_code == E.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("deleted", ["few", "many"])
def test_topic_that_is_deleted_while_offsets_are_altered_is_forgotten(
    broker: Any, client: Connection, deleted: str
) -> None:
    """Its id has no name any more, and the group must not know it for ever; the other topic is altered."""
    counts = {"few": 8, "many": 40}
    for name, count in counts.items():
        make_topic(client, name, partitions=count)
    topics = [
        {"topic_name": name, "partitions": [{"partition_index": index, "start_offset": 5} for index in range(count)]}
        for name, count in counts.items()
    ]

    async def alter() -> Any:
        state = broker.state
        session = Session(state.listeners[0], ("127.0.0.1", 1), ("127.0.0.1", 2))
        context = Context(state, session, k91_alter_share_group_offsets.KEY, 0, 1, "c", state.clock.now_ms())
        request = make("AlterShareGroupOffsets", group_id=GROUP, topics=topics)
        altering = asyncio.ensure_future(k91_alter_share_group_offsets.handle(context, request))
        for _ in range(3):  # the states of the first topic are set, and some of the second
            await asyncio.sleep(0)
        assert not altering.done()
        state.metadata.delete_topic(deleted)
        return (await altering).response

    answer = broker.call(alter)
    found = {topic.topic_name: {part.error_code for part in topic.partitions} for topic in answer.responses}
    assert found == {"few": {0}, "many": {0} if deleted == "few" else {0, E.UNKNOWN_TOPIC_OR_PARTITION}}
    (left,) = {"few", "many"} - {deleted}
    assert described(client) == [(left, index, 5, -5) for index in range(counts[left])]
    groups = broker.call(lambda: broker.state.groups.share._runtime.groups_of(GROUP).by_id[GROUP])
    assert [states.name for states in groups.initialized.values()] == [left]
    assert not groups.initializing


def test_offsets_of_very_many_partitions_are_altered_in_steps(broker, client: Connection) -> None:
    make_topic(client, TOPIC, partitions=8)
    parts = [{"partition_index": index, "start_offset": 5} for index in range(20_000)]
    topics = [{"topic_name": name, "partitions": parts} for name in (TOPIC, "gone")]
    make_topic(client, "gone", partitions=8)
    request = make("AlterShareGroupOffsets", group_id=GROUP, topics=topics)

    async def alter() -> Any:
        state = broker.state
        session = Session(state.listeners[0], ("127.0.0.1", 1), ("127.0.0.1", 2))
        context = Context(state, session, k91_alter_share_group_offsets.KEY, 0, 1, "c", state.clock.now_ms())
        altering = asyncio.ensure_future(k91_alter_share_group_offsets.handle(context, request))
        await asyncio.sleep(0)
        assert GROUP not in state.groups.share._runtime.groups_of(GROUP).by_id, "the request is read in steps"
        state.metadata.delete_topic("gone")
        return (await altering).response

    answer = broker.call(alter)
    found = {topic.topic_name: [part.error_code for part in topic.partitions] for topic in answer.responses}
    assert found[TOPIC] == [0] * 8 + [E.UNKNOWN_TOPIC_OR_PARTITION] * 19_992
    assert found["gone"] == [E.UNKNOWN_TOPIC_OR_PARTITION] * 20_000
    assert described(client) == [(TOPIC, index, 5, -5) for index in range(8)]
