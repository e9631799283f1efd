"""The one gate is asked what KafkaApis and ControllerApis of Kafka 4.3.1 ask, for every API and resource."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kafka_shim.api import APIS, TABLE, ThrottleClass
from kafka_shim.errors import ErrorCode
from kafka_shim.own_tags import EXPLAIN_TAG
from kafka_shim.protocol import messages
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.tests.produced import batch, fetch_request, make_topic, produce_request
from kafka_shim.wire_client import Connection

CLUSTER = "kafka-cluster"
TOPIC, GROUP, ID = "t", "g", "x"
METADATA = "__cluster_metadata"

# What Kafka needs for a request: operation, resource type, name.
READ_GROUP = ("READ", "GROUP", GROUP)
DESCRIBE_GROUP = ("DESCRIBE", "GROUP", GROUP)
DELETE_GROUP = ("DELETE", "GROUP", GROUP)
READ_TOPIC = ("READ", "TOPIC", TOPIC)
WRITE_TOPIC = ("WRITE", "TOPIC", TOPIC)
DESCRIBE_TOPIC = ("DESCRIBE", "TOPIC", TOPIC)
WRITE_ID = ("WRITE", "TRANSACTIONAL_ID", ID)
DESCRIBE_ID = ("DESCRIBE", "TRANSACTIONAL_ID", ID)


def cluster(operation: str) -> tuple[str, str, str]:
    return (operation, "CLUSTER", CLUSTER)


def new(path: str, /, **fields: Any) -> Any:
    """A message or a struct of one: "offset_commit_request.OffsetCommitRequest"."""
    from importlib import import_module

    module, _, cls = path.partition(".")
    return getattr(import_module(f"{messages.__name__}.{module}"), cls)(**fields)


def offset_commit(**fields: Any) -> Any:
    part = new("offset_commit_request.OffsetCommitRequestPartition", partition_index=0, committed_offset=1)
    topic = new("offset_commit_request.OffsetCommitRequestTopic", name=TOPIC, partitions=[part], **fields)
    return new("offset_commit_request.OffsetCommitRequest", group_id=GROUP, topics=[topic])


def txn_offset_commit() -> Any:
    part = new("txn_offset_commit_request.TxnOffsetCommitRequestPartition", partition_index=0, committed_offset=1)
    topic = new("txn_offset_commit_request.TxnOffsetCommitRequestTopic", name=TOPIC, partitions=[part])
    return new(
        "txn_offset_commit_request.TxnOffsetCommitRequest",
        transactional_id=ID,
        group_id=GROUP,
        producer_id=1,
        producer_epoch=0,
        topics=[topic],
    )


def add_partitions(*topics: str) -> Any:
    rows = [new("add_partitions_to_txn_request.AddPartitionsToTxnTopic", name=name, partitions=[0]) for name in topics]
    return new(
        "add_partitions_to_txn_request.AddPartitionsToTxnRequest",
        v3_and_below_transactional_id=ID,
        v3_and_below_producer_id=1,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=rows,
    )


def add_partitions_of_brokers() -> Any:
    topic = new("add_partitions_to_txn_request.AddPartitionsToTxnTopic", name=TOPIC, partitions=[0])
    transaction = new(
        "add_partitions_to_txn_request.AddPartitionsToTxnTransaction",
        transactional_id=ID,
        producer_id=1,
        producer_epoch=0,
        topics=[topic],
    )
    return new("add_partitions_to_txn_request.AddPartitionsToTxnRequest", transactions=[transaction])


def share_state(module: str, name: str, topic: str) -> Any:
    """A request to the share coordinator, about one share partition."""
    part = new(f"{module}.PartitionData", partition=0)
    return new(f"{module}.{name}Request", group_id="s", topics=[new(f"{module}.{topic}", partitions=[part])])


def configs(message: str, resource: str, *kinds: int) -> Any:
    names = {2: TOPIC, 32: GROUP}
    resources = [new(f"{message}.{resource}", resource_type=kind, resource_name=names.get(kind, "1")) for kind in kinds]
    request = {
        "describe_configs_request": "DescribeConfigsRequest",
        "alter_configs_request": "AlterConfigsRequest",
        "incremental_alter_configs_request": "IncrementalAlterConfigsRequest",
    }[message]
    fields = {} if "describe" in message else {"validate_only": True}
    return new(f"{message}.{request}", resources=resources, **fields)


def alter_replica_log_dirs() -> Any:
    message = "alter_replica_log_dirs_request"
    topic = new(f"{message}.AlterReplicaLogDirTopic", name=TOPIC, partitions=[0])
    entry = new(f"{message}.AlterReplicaLogDir", path="/nowhere", topics=[topic])
    return new(f"{message}.AlterReplicaLogDirsRequest", dirs=[entry])


def member(message: str, cls: str, **fields: Any) -> Any:
    return new(f"{message}.{cls}", group_id=GROUP, **fields)


# (API key, version): the request, and what must be asked when all is allowed.
CASES: dict[tuple[int, int], tuple[Callable[[], Any], set[tuple[str, str, str]]]] = {
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
    (17, 1): (lambda: new("sasl_handshake_request.SaslHandshakeRequest"), set()),
    (18, 3): (
        lambda: new("api_versions_request.ApiVersionsRequest", client_software_name="a", client_software_version="1"),
        set(),
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
    (22, 4): (
        lambda: new("init_producer_id_request.InitProducerIdRequest", transactional_id=ID, transaction_timeout_ms=1000),
        {WRITE_ID},
    ),
    (22, 5): (
        lambda: new("init_producer_id_request.InitProducerIdRequest", transactional_id=None),
        {cluster("IDEMPOTENT_WRITE")},
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
    (24, 3): (lambda: add_partitions(TOPIC), {WRITE_ID, WRITE_TOPIC}),
    (24, 4): (add_partitions_of_brokers, {cluster("CLUSTER_ACTION")}),
    (25, 3): (
        lambda: new("add_offsets_to_txn_request.AddOffsetsToTxnRequest", transactional_id=ID, group_id=GROUP),
        {WRITE_ID, READ_GROUP},
    ),
    (26, 4): (lambda: new("end_txn_request.EndTxnRequest", transactional_id=ID), {WRITE_ID}),
    (27, 1): (
        lambda: new(
            "write_txn_markers_request.WriteTxnMarkersRequest",
            markers=[
                new(
                    "write_txn_markers_request.WritableTxnMarker",
                    producer_id=1,
                    topics=[
                        new("write_txn_markers_request.WritableTxnMarkerTopic", name="none", partition_indexes=[0])
                    ],
                )
            ],
        ),
        {cluster("ALTER")},
    ),
    (28, 4): (txn_offset_commit, {WRITE_ID, READ_GROUP, READ_TOPIC}),
    (29, 3): (
        lambda: new(
            "describe_acls_request.DescribeAclsRequest",
            resource_type_filter=1,
            pattern_type_filter=1,
            operation=1,
            permission_type=1,
        ),
        {cluster("DESCRIBE")},
    ),
    (30, 3): (
        lambda: new(
            "create_acls_request.CreateAclsRequest",
            creations=[
                new(
                    "create_acls_request.AclCreation",
                    resource_type=2,
                    resource_name=TOPIC,
                    principal="User:a",
                    host="*",
                    operation=3,
                    permission_type=3,
                )
            ],
        ),
        {cluster("ALTER")},
    ),
    (31, 3): (
        lambda: new(
            "delete_acls_request.DeleteAclsRequest",
            filters=[
                new("delete_acls_request.DeleteAclsFilter", resource_type_filter=2, operation=1, permission_type=1)
            ],
        ),
        {cluster("ALTER")},
    ),
    (32, 4): (
        lambda: configs("describe_configs_request", "DescribeConfigsResource", 2, 4, 8, 16, 32),
        {("DESCRIBE_CONFIGS", "TOPIC", TOPIC), ("DESCRIBE_CONFIGS", "GROUP", GROUP), cluster("DESCRIBE_CONFIGS")},
    ),
    (33, 2): (
        lambda: configs("alter_configs_request", "AlterConfigsResource", 2, 4, 16, 32),
        {("ALTER_CONFIGS", "TOPIC", TOPIC), ("ALTER_CONFIGS", "GROUP", GROUP), cluster("ALTER_CONFIGS")},
    ),
    (34, 2): (alter_replica_log_dirs, {cluster("ALTER")}),
    (35, 4): (lambda: new("describe_log_dirs_request.DescribeLogDirsRequest", topics=None), {cluster("DESCRIBE")}),
    (36, 2): (lambda: new("sasl_authenticate_request.SaslAuthenticateRequest"), set()),
    (37, 3): (
        lambda: new(
            "create_partitions_request.CreatePartitionsRequest",
            topics=[new("create_partitions_request.CreatePartitionsTopic", name=TOPIC, count=1)],
            timeout_ms=1000,
        ),
        {("ALTER", "TOPIC", TOPIC)},
    ),
    # Without authentication nothing is asked (what is asked with it: tests/security/test_delegation_tokens.py).
    (38, 3): (
        lambda: new(
            "create_delegation_token_request.CreateDelegationTokenRequest",
            owner_principal_type="User",
            owner_principal_name="bob",
        ),
        set(),
    ),
    (39, 2): (lambda: new("renew_delegation_token_request.RenewDelegationTokenRequest"), set()),
    (40, 2): (lambda: new("expire_delegation_token_request.ExpireDelegationTokenRequest"), set()),
    (41, 3): (lambda: new("describe_delegation_token_request.DescribeDelegationTokenRequest", owners=None), set()),
    (42, 2): (lambda: new("delete_groups_request.DeleteGroupsRequest", groups_names=[GROUP]), {DELETE_GROUP}),
    (43, 2): (
        lambda: new("elect_leaders_request.ElectLeadersRequest", topic_partitions=None),
        {cluster("ALTER")},
    ),
    (44, 1): (
        lambda: configs("incremental_alter_configs_request", "AlterConfigsResource", 2, 4, 8, 16, 32),
        {("ALTER_CONFIGS", "TOPIC", TOPIC), ("ALTER_CONFIGS", "GROUP", GROUP), cluster("ALTER_CONFIGS")},
    ),
    (45, 1): (
        lambda: new("alter_partition_reassignments_request.AlterPartitionReassignmentsRequest"),
        {cluster("ALTER")},
    ),
    (46, 0): (
        lambda: new("list_partition_reassignments_request.ListPartitionReassignmentsRequest", topics=None),
        {cluster("DESCRIBE")},
    ),
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
    (48, 1): (
        lambda: new("describe_client_quotas_request.DescribeClientQuotasRequest"),
        {cluster("DESCRIBE_CONFIGS")},
    ),
    (49, 1): (
        lambda: new(
            "alter_client_quotas_request.AlterClientQuotasRequest",
            entries=[
                new(
                    "alter_client_quotas_request.EntryData",
                    entity=[new("alter_client_quotas_request.EntityData", entity_type="user", entity_name="u")],
                )
            ],
        ),
        {cluster("ALTER_CONFIGS")},
    ),
    (50, 0): (
        lambda: new("describe_user_scram_credentials_request.DescribeUserScramCredentialsRequest"),
        {cluster("DESCRIBE")},
    ),
    (51, 0): (
        lambda: new(
            "alter_user_scram_credentials_request.AlterUserScramCredentialsRequest",
            deletions=[new("alter_user_scram_credentials_request.ScramCredentialDeletion", name="eve", mechanism=1)],
        ),
        {cluster("ALTER")},
    ),
    (55, 2): (lambda: new("describe_quorum_request.DescribeQuorumRequest"), {cluster("DESCRIBE")}),
    (57, 2): (lambda: new("update_features_request.UpdateFeaturesRequest"), {cluster("ALTER")}),
    (60, 1): (lambda: new("describe_cluster_request.DescribeClusterRequest"), set()),
    (60, 2): (
        lambda: new("describe_cluster_request.DescribeClusterRequest", include_cluster_authorized_operations=True),
        {cluster(operation.name) for operation in AclOperation if operation in (5, 7, 8, 9, 10, 11, 12)},
    ),
    (61, 0): (
        lambda: new(
            "describe_producers_request.DescribeProducersRequest",
            topics=[new("describe_producers_request.TopicRequest", name=TOPIC, partition_indexes=[0])],
        ),
        {READ_TOPIC},
    ),
    (64, 0): (lambda: new("unregister_broker_request.UnregisterBrokerRequest", broker_id=77), {cluster("ALTER")}),
    (80, 1): (lambda: new("add_raft_voter_request.AddRaftVoterRequest", voter_id=77), {cluster("ALTER")}),
    (81, 0): (lambda: new("remove_raft_voter_request.RemoveRaftVoterRequest", voter_id=77), {cluster("ALTER")}),
    (65, 0): (
        lambda: new("describe_transactions_request.DescribeTransactionsRequest", transactional_ids=[ID]),
        {DESCRIBE_ID, DESCRIBE_TOPIC},
    ),
    (66, 2): (
        lambda: new("list_transactions_request.ListTransactionsRequest", duration_filter=-1),
        {DESCRIBE_ID},
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
    (71, 0): (lambda: new("get_telemetry_subscriptions_request.GetTelemetrySubscriptionsRequest"), set()),
    (72, 0): (lambda: new("push_telemetry_request.PushTelemetryRequest"), set()),
    (74, 1): (
        lambda: new("list_config_resources_request.ListConfigResourcesRequest"),
        {cluster("DESCRIBE_CONFIGS")},
    ),
    (75, 0): (
        lambda: new(
            "describe_topic_partitions_request.DescribeTopicPartitionsRequest",
            topics=[new("describe_topic_partitions_request.TopicRequest", name=TOPIC)],
        ),
        {(operation.name, "TOPIC", TOPIC) for operation in AclOperation if operation in (3, 4, 5, 6, 7, 8, 10, 11)},
    ),
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

# Where a denied operation on the cluster leaves a second question, or a second answer.
INSTEAD = {
    (3, 12): {("CREATE", "TOPIC", "new")},
    (16, 5): {("DESCRIBE", "GROUP", name) for name in (GROUP, "k", "s")},
    (19, 7): {("CREATE", "TOPIC", "n")},
    (20, 5): {("DESCRIBE", "TOPIC", "none"), ("DELETE", "TOPIC", "none")},
    (22, 5): {("WRITE", "TOPIC", "*any*")},
    (23, 4): {DESCRIBE_TOPIC},
    (27, 1): {cluster("CLUSTER_ACTION")},
}
# Of these no answer names what is hidden, or nothing is asked.
SILENT = {
    (71, 0),
    (72, 0),
    (3, 8),
    (16, 5),
    (60, 1),
    (60, 2),
    (66, 2),
    (17, 1),
    (18, 3),
    (36, 2),
    (38, 3),
    (39, 2),
    (40, 2),
    (41, 3),
}


class Recorder:
    """An authorizer that writes down what it is asked and denies what `denies` says."""

    def __init__(self, denies: Callable[[AclOperation, ResourceType], bool]) -> None:
        self.denies = denies
        self.asked: set[tuple[str, str, str]] = set()

    def allowed(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, names: Iterable[str]
    ) -> set[str]:
        assert (principal, host) == ("User:ANONYMOUS", "127.0.0.1")
        names = set(names)
        self.asked.update((operation.name, resource_type.name, name) for name in names)
        return set() if self.denies(operation, resource_type) else names

    def allowed_on_any(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType) -> bool:
        self.asked.add((operation.name, resource_type.name, "*any*"))
        return not self.denies(operation, resource_type)


@pytest.fixture
def prepared(broker, client: Connection) -> Connection:
    """A topic, a classic group with an offset, a consumer and a share group with a member each, an open
    transaction."""
    make_topic(client, TOPIC)
    for name in ("__consumer_offsets", "__transaction_state"):
        broker.call(broker.state.metadata.ensure_internal_topic, name)
    assert client.request(offset_commit(), 9).topics[0].partitions[0].error_code == 0
    altering = CASES[91, 0][0]()
    altering.group_id = "s"
    assert client.request(altering, 0).error_code == 0
    assert client.request(CASES[76, 1][0](), 1).assignment.topic_partitions
    joining = CASES[68, 1][0]()
    joining.group_id = "k"
    assert client.request(joining, 1).error_code == 0
    begin = CASES[22, 4][0]()
    begin.transaction_timeout_ms = 60_000
    told = client.request(begin, 4)
    adding = add_partitions(TOPIC)
    adding.v3_and_below_producer_id, adding.v3_and_below_producer_epoch = told.producer_id, told.producer_epoch
    answer = client.request(adding, 3)
    assert answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
    return client


def ask(broker, client: Connection, case: tuple[int, int], recorder: Recorder) -> Any:
    broker.state.authorizer = recorder
    try:
        return client.request(CASES[case][0](), case[1])
    finally:
        broker.state.authorizer = None


def codes_in(message: Any) -> set[int]:
    """All error codes of an answer, at any depth."""
    found = set[int]()
    for row in message.FIELDS:
        value = getattr(message, row[0])
        if row[0].endswith("error_code"):
            found.add(value)
        for each in value if isinstance(value, list) else [value]:
            if hasattr(each, "FIELDS"):
                found |= codes_in(each)
    return found


AUTHORIZATION_FAILED = {code for code in ErrorCode if code.name.endswith("_AUTHORIZATION_FAILED")}


def test_every_api_has_a_case():
    assert {key for key, _ in CASES} == {api.key for api in APIS}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{TABLE[case[0]].name}-v{case[1]}")
def test_what_kafka_asks_is_asked(broker, prepared: Connection, case: tuple[int, int]):
    recorder = Recorder(lambda operation, resource_type: False)
    answer = ask(broker, prepared, case, recorder)
    assert recorder.asked == CASES[case][1]
    assert not codes_in(answer) & AUTHORIZATION_FAILED
    assert broker.state.metrics.errors_unexpected == 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{TABLE[case[0]].name}-v{case[1]}")
def test_nothing_is_told_to_a_client_that_may_do_nothing(broker, prepared: Connection, case: tuple[int, int]):
    recorder = Recorder(lambda operation, resource_type: True)
    answer = ask(broker, prepared, case, recorder)
    if case in SILENT:
        assert not codes_in(answer) & AUTHORIZATION_FAILED
    else:
        assert codes_in(answer) & AUTHORIZATION_FAILED
        assert codes_in(answer) <= {*AUTHORIZATION_FAILED, 0}
    assert broker.state.metrics.errors_unexpected == 0


@pytest.mark.parametrize("case", INSTEAD, ids=lambda case: TABLE[case[0]].name)
def test_a_client_that_may_not_on_the_cluster_is_asked_about_names(broker, prepared, case: tuple[int, int]):
    recorder = Recorder(lambda operation, resource_type: resource_type is ResourceType.CLUSTER)
    ask(broker, prepared, case, recorder)
    assert recorder.asked == CASES[case][1] | INSTEAD[case]


def test_names_that_may_be_seen_are_answered_beside_those_that_may_not(broker, prepared: Connection):
    """A client learns nothing of a topic that it may not describe, not even that there is none."""
    make_topic(prepared, "other")
    recorder = Recorder(lambda operation, resource_type: False)
    recorder.allowed = lambda principal, host, operation, resource_type, names: {*names} & {TOPIC}  # type: ignore[method-assign]
    broker.state.authorizer = recorder
    names = [new("metadata_request.MetadataRequestTopic", name=name) for name in (TOPIC, "other", "none")]
    told = prepared.request(new("metadata_request.MetadataRequest", topics=names), 12)
    assert {(topic.name, topic.error_code, len(topic.partitions)) for topic in told.topics} == {
        (TOPIC, 0, 2),
        ("other", ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0),
        ("none", ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0),
    }
    everything = prepared.request(new("metadata_request.MetadataRequest", topics=None), 12)
    assert [topic.name for topic in everything.topics] == [TOPIC]
    broker.state.authorizer = None


@pytest.mark.parametrize(("case", "group_id"), [((69, 1), "k"), ((77, 1), "s")], ids=["consumer", "share"])
def test_a_group_with_a_topic_that_the_client_may_not_describe_is_hidden(
    broker, prepared: Connection, case: tuple[int, int], group_id: str
):
    """Of the group remains its id, as in Kafka: neither members nor the names of topics, nor its epochs."""
    recorder = Recorder(lambda operation, kind: False)
    (shown,) = ask(broker, prepared, case, recorder).groups
    assigned = [part.topic_name for member in shown.members for part in member.assignment.topic_partitions]
    assert (shown.error_code, shown.group_epoch > 0, assigned) == (0, True, [TOPIC])
    hidden = ask(broker, prepared, case, Recorder(lambda operation, kind: kind is ResourceType.TOPIC)).groups
    expected = type(shown)(
        group_id=group_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message="The group has described topic(s) that the client is not authorized to describe.",
    )
    assert hidden == [expected]


@pytest.mark.parametrize(("case", "group_id"), [((69, 1), "k"), ((77, 1), "s")], ids=["consumer", "share"])
def test_only_the_groups_with_a_topic_that_is_not_described_are_hidden(
    broker, prepared: Connection, case: tuple[int, int], group_id: str
):
    """A group without an assigned topic is shown beside it, and one that may not be described is asked for no topic."""
    request = CASES[case][0]()
    request.group_ids = [group_id, "none", "secret"]
    recorder = Recorder(lambda operation, kind: False)
    recorder.allowed = lambda principal, host, operation, kind, names: {  # type: ignore[method-assign]
        name for name in names if kind is ResourceType.GROUP and name != "secret"
    }
    broker.state.authorizer = recorder
    try:
        found = prepared.request(request, case[1]).groups
    finally:
        broker.state.authorizer = None
    assert [(group.group_id, group.error_code) for group in found] == [
        (group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
        ("secret", ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ]


def test_no_client_adds_an_internal_topic_to_a_transaction_by_its_name(broker, prepared: Connection):
    """As Kafka, without any authorizer."""
    (topic,) = prepared.request(add_partitions("__consumer_offsets"), 3).results_by_topic_v3_and_below
    assert topic.results_by_partition[0].partition_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_before_authentication_three_apis_are_served():
    assert {api.name for api in APIS if api.before_authentication} == {
        "api_versions",
        "sasl_handshake",
        "sasl_authenticate",
    }


def test_each_api_has_kafkas_throttle():
    throttles = {api.name: api.throttle for api in APIS if api.throttle is not ThrottleClass.REQUEST}
    assert throttles == {
        "produce": ThrottleClass.PRODUCE,
        "fetch": ThrottleClass.FETCH,
        "share_fetch": ThrottleClass.FETCH,
        "create_topics": ThrottleClass.CONTROLLER_MUTATION,
        "delete_topics": ThrottleClass.CONTROLLER_MUTATION,
        "create_partitions": ThrottleClass.CONTROLLER_MUTATION,
        "write_txn_markers": ThrottleClass.EXEMPT,
    }


def test_the_history_of_a_transaction_names_no_topic_that_the_client_may_not_describe(
    broker, prepared: Connection
) -> None:
    def told(recorder: Recorder | None) -> list[str]:
        broker.state.authorizer = recorder
        try:
            request = new("describe_transactions_request.DescribeTransactionsRequest", transactional_ids=[ID, ID])
            request.unknown_tags = {EXPLAIN_TAG: b""}
            states = prepared.request(request, 0).transaction_states
        finally:
            broker.state.authorizer = None
        return [bytes((state.unknown_tags or {}).get(EXPLAIN_TAG, b"")).decode() for state in states]

    whole, again = told(None)
    assert f"[{TOPIC}-0]" in whole
    assert again == ""  # once, however often it is asked for
    hidden, _ = told(Recorder(lambda operation, kind: kind is ResourceType.TOPIC))
    assert "-> Ongoing" in hidden
    assert f"{TOPIC}-0" not in hidden
