"""The cluster: connections, options, access control, directories, quorum, telemetry."""

from __future__ import annotations

from typing import Any

from kafka_shim.security.acl import AclOperation
from kafka_shim.tests.authorization.requests import GROUP, TOPIC, Cases, cluster, new


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


CASES: Cases = {
    (17, 1): (lambda: new("sasl_handshake_request.SaslHandshakeRequest"), set()),
    (18, 3): (
        lambda: new("api_versions_request.ApiVersionsRequest", client_software_name="a", client_software_version="1"),
        set(),
    ),
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
    (64, 0): (lambda: new("unregister_broker_request.UnregisterBrokerRequest", broker_id=77), {cluster("ALTER")}),
    (71, 0): (lambda: new("get_telemetry_subscriptions_request.GetTelemetrySubscriptionsRequest"), set()),
    (72, 0): (lambda: new("push_telemetry_request.PushTelemetryRequest"), set()),
    (74, 1): (
        lambda: new("list_config_resources_request.ListConfigResourcesRequest"),
        {cluster("DESCRIBE_CONFIGS")},
    ),
    (80, 1): (lambda: new("add_raft_voter_request.AddRaftVoterRequest", voter_id=77), {cluster("ALTER")}),
    (81, 0): (lambda: new("remove_raft_voter_request.RemoveRaftVoterRequest", voter_id=77), {cluster("ALTER")}),
}
