"""Share groups, their offsets and their state."""

from __future__ import annotations

from typing import Any

from kafka_shim.tests.authorization.requests import DESCRIBE_TOPIC, READ_TOPIC, TOPIC, Cases, cluster, new


def share_state(module: str, name: str, topic: str) -> Any:
    """A request to the share coordinator, about one share partition."""
    part = new(f"{module}.PartitionData", partition=0)
    return new(f"{module}.{name}Request", group_id="s", topics=[new(f"{module}.{topic}", partitions=[part])])


CASES: Cases = {
    (76, 1): (
        lambda: new(
            "share_group_heartbeat_request.ShareGroupHeartbeatRequest",
            group_id="s",
            member_id="m",
            subscribed_topic_names=[TOPIC],
        ),
        {("READ", "GROUP", "s"), DESCRIBE_TOPIC},
    ),
    (77, 1): (
        lambda: new("share_group_describe_request.ShareGroupDescribeRequest", group_ids=["s"]),
        {("DESCRIBE", "GROUP", "s"), DESCRIBE_TOPIC},
    ),
    # The topics of these two are in test_k78_share_fetch: they are named by their ids.
    (78, 2): (
        lambda: new("share_fetch_request.ShareFetchRequest", group_id="s", member_id="m"),
        {("READ", "GROUP", "s")},
    ),
    (79, 2): (
        lambda: new("share_acknowledge_request.ShareAcknowledgeRequest", group_id="s", member_id="m"),
        {("READ", "GROUP", "s")},
    ),
    (83, 0): (
        lambda: share_state("initialize_share_group_state_request", "InitializeShareGroupState", "InitializeStateData"),
        {cluster("CLUSTER_ACTION")},
    ),
    (84, 0): (
        lambda: share_state("read_share_group_state_request", "ReadShareGroupState", "ReadStateData"),
        {cluster("CLUSTER_ACTION")},
    ),
    (85, 1): (
        lambda: share_state("write_share_group_state_request", "WriteShareGroupState", "WriteStateData"),
        {cluster("CLUSTER_ACTION")},
    ),
    (86, 0): (
        lambda: share_state("delete_share_group_state_request", "DeleteShareGroupState", "DeleteStateData"),
        {cluster("CLUSTER_ACTION")},
    ),
    (87, 1): (
        lambda: share_state(
            "read_share_group_state_summary_request", "ReadShareGroupStateSummary", "ReadStateSummaryData"
        ),
        {cluster("CLUSTER_ACTION")},
    ),
    (90, 1): (
        lambda: new(
            "describe_share_group_offsets_request.DescribeShareGroupOffsetsRequest",
            groups=[
                new(
                    "describe_share_group_offsets_request.DescribeShareGroupOffsetsRequestGroup",
                    group_id="s",
                    topics=None,
                ),
                new(
                    "describe_share_group_offsets_request.DescribeShareGroupOffsetsRequestGroup",
                    group_id="s",
                    topics=[
                        new(
                            "describe_share_group_offsets_request.DescribeShareGroupOffsetsRequestTopic",
                            topic_name=TOPIC,
                            partitions=[0],
                        )
                    ],
                ),
            ],
        ),
        {("DESCRIBE", "GROUP", "s"), DESCRIBE_TOPIC},
    ),
    (91, 0): (
        lambda: new(
            "alter_share_group_offsets_request.AlterShareGroupOffsetsRequest",
            group_id="e",
            topics=[
                new(
                    "alter_share_group_offsets_request.AlterShareGroupOffsetsRequestTopic",
                    topic_name=TOPIC,
                    partitions=[
                        new(
                            "alter_share_group_offsets_request.AlterShareGroupOffsetsRequestPartition",
                            partition_index=0,
                        )
                    ],
                )
            ],
        ),
        {("READ", "GROUP", "e"), READ_TOPIC},
    ),
    (92, 0): (
        lambda: new(
            "delete_share_group_offsets_request.DeleteShareGroupOffsetsRequest",
            group_id="e",
            topics=[new("delete_share_group_offsets_request.DeleteShareGroupOffsetsRequestTopic", topic_name=TOPIC)],
        ),
        {("DELETE", "GROUP", "e"), READ_TOPIC},
    ),
}
