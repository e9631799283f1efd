"""Records, topics and partitions."""

from __future__ import annotations

from kafka_shim.security.acl import AclOperation
from kafka_shim.tests.authorization.requests import (
    DESCRIBE_TOPIC,
    ID,
    READ_TOPIC,
    TOPIC,
    WRITE_ID,
    WRITE_TOPIC,
    Cases,
    cluster,
    new,
)
from kafka_shim.tests.produced import batch, fetch_request, produce_request

CASES: Cases = {
    (0, 9): (lambda: produce_request(TOPIC, 0, batch(b"a")), {WRITE_TOPIC}),
    (0, 11): (
        lambda: produce_request(
            TOPIC,
            0,
            batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True),
            transactional_id=ID,
        ),
        {WRITE_TOPIC, WRITE_ID},
    ),
    (1, 12): (lambda: fetch_request({(TOPIC, 0): 0}), {READ_TOPIC}),
    (1, 11): (lambda: fetch_request({(TOPIC, 0): 0}, replica_id=7), {cluster("CLUSTER_ACTION")}),
    (2, 9): (
        lambda: new(
            "list_offsets_request.ListOffsetsRequest",
            topics=[
                new(
                    "list_offsets_request.ListOffsetsTopic",
                    name=TOPIC,
                    partitions=[new("list_offsets_request.ListOffsetsPartition", timestamp=-1)],
                )
            ],
        ),
        {DESCRIBE_TOPIC},
    ),
    (3, 12): (
        lambda: new(
            "metadata_request.MetadataRequest",
            topics=[new("metadata_request.MetadataRequestTopic", name=name) for name in (TOPIC, "new")],
        ),
        {DESCRIBE_TOPIC, ("DESCRIBE", "TOPIC", "new"), cluster("CREATE")},
    ),
    (3, 8): (
        lambda: new("metadata_request.MetadataRequest", topics=None, include_cluster_authorized_operations=True),
        {
            ("DESCRIBE", "TOPIC", name)
            for name in (TOPIC, "__consumer_offsets", "__share_group_state", "__transaction_state")
        }
        | {cluster(operation.name) for operation in AclOperation if operation in (5, 7, 8, 9, 10, 11, 12)},
    ),
    (19, 7): (
        lambda: new(
            "create_topics_request.CreateTopicsRequest",
            topics=[new("create_topics_request.CreatableTopic", name="n", num_partitions=1, replication_factor=1)],
            timeout_ms=1000,
            validate_only=True,
        ),
        {cluster("CREATE"), ("DESCRIBE_CONFIGS", "TOPIC", "n")},
    ),
    (20, 5): (
        lambda: new("delete_topics_request.DeleteTopicsRequest", topic_names=["none"], timeout_ms=1000),
        {cluster("DELETE")},
    ),
    (21, 2): (
        lambda: new(
            "delete_records_request.DeleteRecordsRequest",
            topics=[
                new(
                    "delete_records_request.DeleteRecordsTopic",
                    name=TOPIC,
                    partitions=[new("delete_records_request.DeleteRecordsPartition", partition_index=0, offset=0)],
                )
            ],
        ),
        {("DELETE", "TOPIC", TOPIC)},
    ),
    (23, 4): (
        lambda: new(
            "offset_for_leader_epoch_request.OffsetForLeaderEpochRequest",
            topics=[
                new(
                    "offset_for_leader_epoch_request.OffsetForLeaderTopic",
                    topic=TOPIC,
                    partitions=[new("offset_for_leader_epoch_request.OffsetForLeaderPartition", partition=0)],
                )
            ],
        ),
        {cluster("CLUSTER_ACTION")},
    ),
    (37, 3): (
        lambda: new(
            "create_partitions_request.CreatePartitionsRequest",
            topics=[new("create_partitions_request.CreatePartitionsTopic", name=TOPIC, count=1)],
            timeout_ms=1000,
        ),
        {("ALTER", "TOPIC", TOPIC)},
    ),
    (75, 0): (
        lambda: new(
            "describe_topic_partitions_request.DescribeTopicPartitionsRequest",
            topics=[new("describe_topic_partitions_request.TopicRequest", name=TOPIC)],
        ),
        {(operation.name, "TOPIC", TOPIC) for operation in AclOperation if operation in (3, 4, 5, 6, 7, 8, 10, 11)},
    ),
}
