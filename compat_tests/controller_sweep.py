"""The requests of the sweep for two controllers: those that brokers serve too, and those of the quorum and its brokers.

None names an epoch that is newer than that of the quorum, or another leader of the same epoch: Kafka's controller
resigns for the first, and the whole process ends with the second.
"""

from __future__ import annotations

from kafka_shim.api.controller import CONTROLLER_APIS
from kafka_shim.compat.sweep import BAD_ID, CASES, FACTS, LEFT_OUT, VOTER
from kafka_shim.protocol.api_keys import API_KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

METADATA_TOPIC_ID = (1).to_bytes(16)
METADATA = "__cluster_metadata"
ANOTHER = "another"


def _quorum(**fields: Any) -> list[dict[str, Any]]:
    return [{"topic_name": METADATA, "partitions": [{"partition_index": 0, **fields}]}]


def _raft(**fields: Any) -> list[dict[str, Any]]:
    """Requests of which the whole is wrong, and one with these fields of its partition."""
    return [
        {"cluster_id": ANOTHER, "topics": _quorum(**fields)},
        {"cluster_id": None, "topics": []},
        {"cluster_id": None, "topics": [{"topic_name": "t", "partitions": [{"partition_index": 0, **fields}]}]},
        {"cluster_id": None, "topics": _quorum(**fields)},
    ]


def _fetch(offset: int, last_epoch: int, epoch: int = 1, **fields: Any) -> dict[str, Any]:
    partition = {"fetch_offset": offset, "last_fetched_epoch": last_epoch, "current_leader_epoch": epoch}
    return {
        "cluster_id": None,
        "max_wait_ms": 0,
        "max_bytes": 1,
        "topics": [{"topic": METADATA, "topic_id": METADATA_TOPIC_ID, "partitions": [partition]}],
        **fields,
    }


def _options(how: dict[str, Any]) -> list[dict[str, Any]]:
    """Requests for one option of one resource each."""
    return [
        {
            "resources": [
                {"resource_type": 4, "resource_name": name, "configs": [{"name": option, "value": value, **how}]}
            ]
        }
        for name, option, value in (
            *(("1", f"sasl.kerberos.{option}", value) for option, value in KERBEROS),
            *(("9", "no.such", "x"), ("x", "no.such", "x"), ("-1", "no.such", "x"), ("", "no.such", "x")),
            *(("1", "cordoned.log.dirs", "/x"), ("1", "min.insync.replicas", "1"), ("1", "listeners", "A://:1")),
        )
    ]


KERBEROS = (("service.name", "kafka"), ("kinit.cmd", "/x"), ("ticket.renew.jitter", "abc"))
CONTROLLER_CASES: dict[str, list[dict[str, Any]]] = {
    "Fetch": [
        *(_fetch(0, 0), _fetch(1, 1), _fetch(0, 0, 0), _fetch(0, 0, 7), _fetch(-1, 0), _fetch(0, 9)),
        _fetch(0, 0, cluster_id=ANOTHER),
        _fetch(0, 0, topics=[]),
    ],
    "DescribeDelegationToken": [{"owners": None}],
    "IncrementalAlterConfigs": [
        *CASES["IncrementalAlterConfigs"],
        *({**one, "validate_only": True} for one in _options({"config_operation": 0})),
    ],
    "AlterConfigs": [*CASES["AlterConfigs"], *({**one, "validate_only": True} for one in _options({}))],
    "DescribeUserScramCredentials": [{"users": None}],
    "Vote": [
        *_raft(replica_epoch=1, replica_id=2, last_offset_epoch=0, last_offset=0),
        *_raft(replica_epoch=0, replica_id=2, last_offset_epoch=0, last_offset=0)[-1:],
        *_raft(replica_epoch=1, replica_id=2, last_offset_epoch=1, last_offset=0)[-1:],
        *_raft(replica_epoch=1, replica_id=-1, last_offset_epoch=0, last_offset=0)[-1:],
        {
            "voter_id": 5,
            "topics": _quorum(replica_epoch=1, replica_id=2, last_offset_epoch=0, last_offset=0),
        },
        {
            "voter_id": 1,
            "topics": _quorum(
                replica_epoch=1, replica_id=2, last_offset_epoch=0, last_offset=0, voter_directory_id=BAD_ID
            ),
        },
        {"topics": _quorum(replica_epoch=1, replica_id=2, last_offset_epoch=1, last_offset=10**6, pre_vote=True)},
    ],
    "BeginQuorumEpoch": [
        *_raft(leader_id=1, leader_epoch=1),
        *_raft(leader_id=1, leader_epoch=0)[-1:],
        *_raft(leader_id=-1, leader_epoch=1)[-1:],
        {"voter_id": 5, "topics": _quorum(leader_id=1, leader_epoch=1)},
    ],
    "EndQuorumEpoch": [
        *_raft(leader_id=1, leader_epoch=1),
        *_raft(leader_id=1, leader_epoch=0)[-1:],
        *_raft(leader_id=-1, leader_epoch=1)[-1:],
    ],
    "AlterPartition": [
        {"broker_id": 77, "broker_epoch": 1, "topics": []},
        *(
            {"broker_id": broker, "broker_epoch": epoch, "topics": [{"topic_id": BAD_ID, "partitions": []}]}
            for broker, epoch in ((77, 1), (1, -1))
        ),
    ],
    "Envelope": [
        {"request_data": b"\0", "request_principal": b"\0\0", "client_host_address": bytes(4)},
        {"request_data": b"", "request_principal": b"\0\0\x05User\x02a\0\0", "client_host_address": bytes(3)},
        # ApiVersions, which is not forwarded.
        {
            "request_data": b"\0\x12\0\0\0\0\0\x01\xff\xff",
            "request_principal": b"\0\0\x05User\x02a\0\0",
            "client_host_address": bytes(4),
        },
        # UnregisterBroker of a broker that is not there.
        {
            "request_data": b"\0\x40\0\0\0\0\0\x01\xff\xff\0\0\0\0\x4d\0",
            "request_principal": b"\0\0\x05User\x02a\0\0",
            "client_host_address": bytes(4),
        },
    ],
    "DescribeCluster": [{"endpoint_type": kind} for kind in (1, 2, 9)],
    "BrokerRegistration": [{"broker_id": 77, "cluster_id": ANOTHER}],
    "BrokerHeartbeat": [{"broker_id": 77, "broker_epoch": 1}, {"broker_id": 1, "broker_epoch": -1}],
    "AllocateProducerIds": [{"broker_id": 77, "broker_epoch": 1}, {"broker_id": 1, "broker_epoch": -1}],
    "AssignReplicasToDirs": [{"broker_id": 77, "broker_epoch": 1}, {"broker_id": 1, "broker_epoch": -1}],
    "UpdateRaftVoter": [
        {"cluster_id": ANOTHER},
        {"current_leader_epoch": 0},
        {"current_leader_epoch": 7},
        {"current_leader_epoch": 1, "voter_id": -1, "voter_directory_id": BAD_ID},
        {"current_leader_epoch": 1, "voter_id": 77},
        {"current_leader_epoch": 1, "voter_id": 77, "voter_directory_id": BAD_ID},
        {
            "current_leader_epoch": 1,
            "voter_id": 77,
            "voter_directory_id": BAD_ID,
            "listeners": VOTER,
            "kraft_version_feature": {"min_supported_version": 2, "max_supported_version": 1},
        },
    ],
}
# Served by a controller and not asked here, each with what tests it.
CONTROLLER_LEFT_OUT = {
    "ControllerRegistration": "shim/tests/api/test_controller.py",
    # Kafka 4.3.1 cannot write an answer without a piece of a snapshot, and then says UNKNOWN_SERVER_ERROR.
    "FetchSnapshot": "shim/tests/api/test_controller.py",
}
# Where the metadata log of a broker is: not compared.
CONTROLLER_FACTS = {**FACTS, "Fetch": {"high_watermark", "records"}}

SKIPPED = {*LEFT_OUT, *CONTROLLER_LEFT_OUT}
_NAMES = [API_KEYS[api.key][0] for api in CONTROLLER_APIS]
ALL_CASES = {name: CONTROLLER_CASES.get(name) or CASES.get(name, []) for name in _NAMES if name not in SKIPPED}
