"""Classic, consumer and streams groups, and their offsets."""

from __future__ import annotations

from typing import Any

from kafka_shim.tests.authorization.requests import (
    DELETE_GROUP,
    DESCRIBE_GROUP,
    DESCRIBE_ID,
    DESCRIBE_TOPIC,
    GROUP,
    ID,
    READ_GROUP,
    READ_TOPIC,
    TOPIC,
    Cases,
    cluster,
    member,
    new,
)


def offset_commit(**fields: Any) -> Any:
    part = new("offset_commit_request.OffsetCommitRequestPartition", partition_index=0, committed_offset=1)
    topic = new("offset_commit_request.OffsetCommitRequestTopic", name=TOPIC, partitions=[part], **fields)
    return new("offset_commit_request.OffsetCommitRequest", group_id=GROUP, topics=[topic])


CASES: Cases = {
    (8, 9): (offset_commit, {READ_GROUP, READ_TOPIC}),
    (9, 8): (
        lambda: new(
            "offset_fetch_request.OffsetFetchRequest",
            groups=[
                new(
                    "offset_fetch_request.OffsetFetchRequestGroup",
                    group_id=GROUP,
                    topics=[new("offset_fetch_request.OffsetFetchRequestTopics", name=TOPIC, partition_indexes=[0])],
                )
            ],
        ),
        {DESCRIBE_GROUP, DESCRIBE_TOPIC},
    ),
    (9, 9): (
        lambda: new(
            "offset_fetch_request.OffsetFetchRequest",
            groups=[new("offset_fetch_request.OffsetFetchRequestGroup", group_id=GROUP, topics=None)],
        ),
        {DESCRIBE_GROUP, DESCRIBE_TOPIC},
    ),
    (10, 4): (
        lambda: new("find_coordinator_request.FindCoordinatorRequest", key_type=0, coordinator_keys=[GROUP]),
        {DESCRIBE_GROUP},
    ),
    (10, 3): (lambda: new("find_coordinator_request.FindCoordinatorRequest", key_type=1, key=ID), {DESCRIBE_ID}),
    (10, 6): (
        lambda: new("find_coordinator_request.FindCoordinatorRequest", key_type=2, coordinator_keys=["a"]),
        {cluster("CLUSTER_ACTION")},
    ),
    (11, 9): (
        lambda: member("join_group_request", "JoinGroupRequest", session_timeout_ms=10_000, protocol_type="consumer"),
        {READ_GROUP},
    ),
    (12, 4): (lambda: member("heartbeat_request", "HeartbeatRequest"), {READ_GROUP}),
    (13, 5): (lambda: member("leave_group_request", "LeaveGroupRequest"), {READ_GROUP}),
    (14, 4): (lambda: member("sync_group_request", "SyncGroupRequest"), {READ_GROUP}),
    (15, 5): (
        lambda: new("describe_groups_request.DescribeGroupsRequest", groups=[GROUP]),
        {DESCRIBE_GROUP},
    ),
    (15, 6): (
        lambda: new(
            "describe_groups_request.DescribeGroupsRequest", groups=[GROUP], include_authorized_operations=True
        ),
        {
            (operation, "GROUP", GROUP)
            for operation in ("READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
        },
    ),
    (16, 5): (lambda: new("list_groups_request.ListGroupsRequest"), {cluster("DESCRIBE")}),
    (42, 2): (lambda: new("delete_groups_request.DeleteGroupsRequest", groups_names=[GROUP]), {DELETE_GROUP}),
    (47, 0): (
        lambda: new(
            "offset_delete_request.OffsetDeleteRequest",
            group_id=GROUP,
            topics=[
                new(
                    "offset_delete_request.OffsetDeleteRequestTopic",
                    name=TOPIC,
                    partitions=[new("offset_delete_request.OffsetDeleteRequestPartition", partition_index=1)],
                )
            ],
        ),
        {DELETE_GROUP, READ_TOPIC},
    ),
    (68, 1): (
        lambda: member(
            "consumer_group_heartbeat_request",
            "ConsumerGroupHeartbeatRequest",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        ),
        {READ_GROUP, DESCRIBE_TOPIC},
    ),
    (69, 1): (
        lambda: new("consumer_group_describe_request.ConsumerGroupDescribeRequest", group_ids=["k"]),
        {("DESCRIBE", "GROUP", "k"), DESCRIBE_TOPIC},
    ),
    (88, 0): (
        lambda: member(
            "streams_group_heartbeat_request",
            "StreamsGroupHeartbeatRequest",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            topology=new(
                "streams_group_heartbeat_request.Topology",
                subtopologies=[
                    new(
                        "streams_group_heartbeat_request.Subtopology",
                        subtopology_id="0",
                        source_topics=[TOPIC],
                        state_changelog_topics=[new("streams_group_heartbeat_request.TopicInfo", name="log")],
                    )
                ],
            ),
        ),
        # As in Kafka, where its controller asks about the options of what it creates.
        {
            *(READ_GROUP, DESCRIBE_TOPIC, ("DESCRIBE", "TOPIC", "log")),
            *(cluster("CREATE"), ("DESCRIBE_CONFIGS", "TOPIC", "log")),
        },
    ),
    (89, 0): (
        lambda: new("streams_group_describe_request.StreamsGroupDescribeRequest", group_ids=["k"]),
        {("DESCRIBE", "GROUP", "k")},
    ),
}
