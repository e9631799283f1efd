"""Sends the same well-formed requests, for every advertised API in every version, to two brokers and compares the
responses.

A case is a request that is valid for any broker state: empty, for resources that do not exist, or out of range. The
whole responses must agree under ``kafka_shim.wiretap.compare``: error codes, shape and content, except for generated
ids.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from kafka_shim.cext.messages import encode
from kafka_shim.cext.records import build
from kafka_shim.cext.wire import UnsupportedVersionError
from kafka_shim.protocol.headers import request_class
from kafka_shim.protocol.message import Message
from kafka_shim.targets.requests import NAMES, create_topic, make
from kafka_shim.targets.waiting import PATIENCE_S
from kafka_shim.wire_client import Connection, WireClientError
from kafka_shim.wiretap.compare import Pairs, differences
from kafka_shim.wiretap.frames import error_codes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

TOPIC, ABSENT, GROUP, TXN = "sweep", "absent", "sweep-group", "sweep-txn"
BAD_ID, OTHER_ID = b"\x01" * 16, b"\x02" * 16
# Served APIs without a case, each with the test that compares it. Together with CASES these are all served APIs.
LEFT_OUT = {
    "AlterClientQuotas": "what is set is an entity's: the tests of quotas",
    "AlterUserScramCredentials": "compat_tests/tests/clients/test_sasl_as_kafka.py",
    "DescribeClientQuotas": "the tests of quotas",
    "DescribeUserScramCredentials": "compat_tests/tests/clients/test_sasl_as_kafka.py",
    "CreateDelegationToken": "a token is different each time: compat_tests/tests/security/test_delegation_tokens.py",
    "DescribeDelegationToken": "compat_tests/tests/security/test_delegation_tokens.py",
    "ExpireDelegationToken": "compat_tests/tests/security/test_delegation_tokens.py",
    "RenewDelegationToken": "compat_tests/tests/security/test_delegation_tokens.py",
    "DescribeConfigs": "dozens of resources and forms: compat_tests/tests/admin/test_same_answers.py",
    "GetTelemetrySubscriptions": "compat_tests/tests/admin/test_telemetry.py",
    "PushTelemetry": "compat_tests/tests/admin/test_telemetry.py",
    "SaslAuthenticate": "compat_tests/tests/admin/test_same_answers.py",
    "SaslHandshake": "compat_tests/tests/admin/test_same_answers.py",
}
# Fields that are facts of one broker and one moment, by API: they are not compared.
FACTS = {
    "ApiVersions": {"api_keys"},
    "DescribeQuorum": {
        *("high_watermark", "log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp"),
    },
}
WHO: dict[str, Any] = {"transactional_id": TXN, "producer_id": 123_456_789, "producer_epoch": 3}


def _parts(**fields: Any) -> list[dict[str, Any]]:
    """Returns partition 0 of an existing topic, a missing partition, and a missing topic."""
    return [
        {"topic": TOPIC, "partitions": [dict(fields, partition=0), dict(fields, partition=99)]},
        {"topic": ABSENT, "partitions": [dict(fields, partition=0)]},
    ]


def _indexed(**fields: Any) -> list[dict[str, Any]]:
    return [
        {"name": TOPIC, "partitions": [dict(fields, partition_index=0), dict(fields, partition_index=99)]},
        {"name": ABSENT, "partitions": [dict(fields, partition_index=0)]},
    ]


def _share_states(**fields: Any) -> list[dict[str, Any]]:
    """Requests to the share coordinator about a topic that does not exist, or that name nothing."""
    partition = {"partition": 0, **fields}
    return [
        {"group_id": GROUP, "topics": [{"topic_id": BAD_ID, "partitions": [partition]}]},
        {"group_id": GROUP, "topics": [{"topic_id": BAD_ID, "partitions": [{**partition, "partition": -1}]}]},
        {"group_id": GROUP, "topics": [{"topic_id": BAD_ID, "partitions": []}]},
        {"group_id": GROUP, "topics": []},
        {"group_id": "", "topics": [{"topic_id": BAD_ID, "partitions": [partition]}]},
    ]


COMMIT = _indexed(committed_offset=1, committed_metadata="m")
COMMIT_BY_ID = [COMMIT[0], {**COMMIT[1], "topic_id": BAD_ID}]
MEMBER = {"group_id": GROUP, "generation_id": 1, "member_id": "stranger"}

VOTER = [{"name": "CONTROLLER", "host": "localhost", "port": 19093}]

# A batch of one record.
ONE_RECORD = bytes(build([(b"k", b"v", 1, ())]))

# Requests by API. Fields that a version does not have are left out.
CASES: dict[str, list[dict[str, Any]]] = {
    "ApiVersions": [
        {"client_software_name": "sweep", "client_software_version": "1"},
        {"client_software_name": "", "client_software_version": ""},
    ],
    "Produce": [
        {
            "acks": -1,
            "timeout_ms": 1000,
            "topic_data": [{"name": name, "partition_data": [{"index": index, **records}]}],
        }
        for name, index in ((TOPIC, 0), (TOPIC, 99), (ABSENT, 0))
        for records in ({"records": ONE_RECORD}, {"records": ONE_RECORD[:-1]})
    ],
    "Fetch": [
        {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1000, "session_epoch": -1, "topics": []},
        *(
            {
                "max_wait_ms": 0,
                "min_bytes": 0,
                "max_bytes": 1 << 20,
                "session_epoch": epoch,
                "isolation_level": level,
                "topics": [
                    {
                        "topic": name,
                        "topic_id": topic_id,
                        "partitions": [
                            {"partition": one, "fetch_offset": offset, "partition_max_bytes": most} for one in numbers
                        ],
                    }
                    for name, topic_id, numbers in ((TOPIC, OTHER_ID, (0, 1, 99)), (ABSENT, BAD_ID, (0,)))
                ],
            }
            for epoch, level, offset, most in (
                *((-1, 0, 0, 1 << 20), (-1, 0, 0, 100), (-1, 1, 0, 1), (-1, 0, 10**9, 100), (-1, 0, -1, 100)),
                *((0, 0, 0, 100), (5, 0, 0, 100)),
            )
        ),
    ],
    "ListOffsets": [
        {"replica_id": -1, "topics": _indexed(timestamp=stamp)} for stamp in (-1, -2, -3, -4, -5, -6, -7, 0, 2**62)
    ],
    "Metadata": [
        {"topics": [{"name": ABSENT}], "allow_auto_topic_creation": False},
        {"topics": [{"name": TOPIC}]},
        {"topics": []},
    ],
    "OffsetCommit": [
        {"group_id": GROUP, "topics": COMMIT_BY_ID, "generation_id_or_member_epoch": 5, "member_id": "stranger"}
    ],
    "OffsetFetch": [
        {"group_id": "nobody", "topics": [{"name": ABSENT, "partition_indexes": [0]}]},
        {"groups": [{"group_id": "nobody", "topics": [{"name": ABSENT, "partition_indexes": [0]}]}]},
    ],
    "FindCoordinator": [
        {"key": GROUP, "key_type": 0},
        {"coordinator_keys": [GROUP], "key_type": 0},
        {"coordinator_keys": [GROUP], "key_type": 9},
    ],
    "JoinGroup": [
        {"group_id": "", "session_timeout_ms": 10_000, "protocol_type": "consumer", "protocols": [{"name": "range"}]},
        {"group_id": GROUP, "session_timeout_ms": 1, "protocol_type": "consumer", "protocols": [{"name": "range"}]},
        {"group_id": GROUP, "session_timeout_ms": 10_000, "protocol_type": "consumer", "member_id": "stranger"},
    ],
    "Heartbeat": [MEMBER, {**MEMBER, "group_id": ""}],
    "LeaveGroup": [
        {"group_id": GROUP, "member_id": "stranger"},
        {"group_id": GROUP, "members": [{"member_id": "stranger"}]},
    ],
    "SyncGroup": [MEMBER, {**MEMBER, "group_id": ""}],
    "DescribeGroups": [{"groups": ["nobody", ""]}],
    "DeleteGroups": [{"groups_names": ["nobody", ""]}],
    "CreateTopics": [
        {
            "timeout_ms": 1000,
            "validate_only": True,
            "topics": [{"name": name, "num_partitions": count, "replication_factor": factor}],
        }
        for name, count, factor in (
            (TOPIC, 1, 1),
            ("new", 0, 1),
            ("new", 1, 7),
            ("..", 1, 1),
            ("a/b", 1, 1),
            ("new", 2, -1),
        )
    ],
    "DeleteTopics": [{"topic_names": [ABSENT], "timeout_ms": 1000}, {"topics": [{"name": ABSENT}], "timeout_ms": 1000}],
    "DeleteRecords": [{"timeout_ms": 1000, "topics": _indexed(offset=offset)} for offset in (5, -1, -9)],
    "InitProducerId": [
        {"transactional_id": "", "transaction_timeout_ms": 1000},
        {"transactional_id": TXN, "transaction_timeout_ms": 0},
        {"transactional_id": TXN, "transaction_timeout_ms": 1000, "producer_id": 5, "producer_epoch": -1},
    ],
    "OffsetForLeaderEpoch": [{"topics": _parts(leader_epoch=epoch)} for epoch in (0, 9, -1)],
    "AddPartitionsToTxn": [
        {
            **{f"v3_and_below_{name}": value for name, value in WHO.items()},
            "v3_and_below_topics": [{"name": TOPIC, "partitions": [0]}],
        },
        {"transactions": [{**WHO, "topics": [{"name": TOPIC, "partitions": [0]}]}]},
    ],
    "AddOffsetsToTxn": [{**WHO, "group_id": GROUP}, {**WHO, "group_id": ""}],
    "EndTxn": [{**WHO, "committed": True}, {**WHO, "transactional_id": "", "committed": False}],
    "TxnOffsetCommit": [{**WHO, "group_id": GROUP, "topics": COMMIT}, {**WHO, "group_id": "", "topics": COMMIT}],
    "CreatePartitions": [
        {"timeout_ms": 1000, "validate_only": True, "topics": [{"name": name, "count": count}]}
        for name, count in ((ABSENT, 3), (TOPIC, 1), (TOPIC, 0), (TOPIC, 9))
    ]
    + [
        {"timeout_ms": 0, "topics": [{"name": name, "count": 9} for name in names]}
        for names in ((TOPIC, TOPIC), (TOPIC, TOPIC, ABSENT))
    ],
    "AlterConfigs": [
        {"validate_only": True, "resources": [{"resource_type": kind, "resource_name": ABSENT}]} for kind in (2, 77)
    ],
    "IncrementalAlterConfigs": [
        {"validate_only": True, "resources": [{"resource_type": kind, "resource_name": ABSENT}]} for kind in (2, 77)
    ],
    "ElectLeaders": [
        {"election_type": kind, "topic_partitions": wanted, "timeout_ms": timeout_ms}
        for kind in (0, 1, 7)
        for wanted in ([{"topic": TOPIC, "partitions": [0, 99]}, {"topic": ABSENT, "partitions": [0]}], [])
        for timeout_ms in (0, 5000)
    ],
    "OffsetDelete": [{"group_id": "nobody", "topics": _indexed()}, {"group_id": "", "topics": []}],
    "DescribeProducers": [
        {"topics": [{"name": TOPIC, "partition_indexes": [0, 99]}, {"name": ABSENT, "partition_indexes": [0]}]}
    ],
    "DescribeTransactions": [{"transactional_ids": ["nobody", ""]}],
    "ListTransactions": [
        {"state_filters": ["Nonsense"]},
        {"producer_id_filters": [987_654_321]},
        {"transactional_id_pattern": "["},
        {"transactional_id_pattern": "no.*one"},
    ],
    "ListGroups": [{"states_filter": ["Nonsense"]}, {"types_filter": ["nonsense"]}],
    "ConsumerGroupHeartbeat": [
        {"group_id": "", "member_id": "m", "member_epoch": 0},
        {"group_id": GROUP, "member_id": "m", "member_epoch": 7, "rebalance_timeout_ms": -1},
        {"group_id": GROUP, "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 0},
    ],
    "ConsumerGroupDescribe": [{"group_ids": ["nobody", ""]}],
    "ShareGroupHeartbeat": [
        {"group_id": group_id, "member_id": member_id, "member_epoch": epoch, "subscribed_topic_names": names}
        for group_id, member_id, epoch, names in (
            ("", "stranger", 0, [TOPIC]),
            (GROUP, "", 0, [TOPIC]),
            (GROUP, "m" * 37, 0, [TOPIC]),
            (GROUP, "stranger", 0, None),
            ("nobody", "stranger", 1, None),
            ("nobody", "stranger", -1, None),
            ("nobody", "stranger", -2, None),
        )
    ],
    "ShareGroupDescribe": [{"group_ids": ["nobody"]}, {"group_ids": [""]}],
    "ShareFetch": [
        {
            "group_id": group_id,
            "member_id": member_id,
            "share_session_epoch": epoch,
            "max_records": 10,
            "batch_size": 10,
        }
        for group_id, member_id, epoch in (
            (None, "m", 0),
            (GROUP, "", 0),
            (GROUP, "m" * 37, 0),
            ("nobody", "m", 3),
            ("nobody", "m", -1),
        )
    ],
    "ShareAcknowledge": [
        {"group_id": group_id, "member_id": member_id, "share_session_epoch": epoch, "topics": []}
        for group_id, member_id, epoch in (
            (None, "m", 1),
            (GROUP, "", 1),
            ("nobody", "m", 0),
            ("nobody", "m", 3),
            ("nobody", "m", -1),
        )
    ],
    "InitializeShareGroupState": _share_states(state_epoch=1, start_offset=0),
    "ReadShareGroupState": _share_states(leader_epoch=0),
    "WriteShareGroupState": _share_states(state_epoch=1, leader_epoch=0, start_offset=0, delivery_complete_count=0),
    "DeleteShareGroupState": _share_states(),
    "ReadShareGroupStateSummary": _share_states(leader_epoch=0),
    "DescribeShareGroupOffsets": [
        {"groups": [{"group_id": "nobody", "topics": None}, {"group_id": "nobody", "topics": []}]},
        {"groups": [{"group_id": "nobody", "topics": [{"topic_name": ABSENT, "partitions": [0]}]}]},
        {"groups": [{"group_id": "nobody", "topics": [{"topic_name": TOPIC, "partitions": []}]}]},
        {"groups": [{"group_id": "nobody", "topics": [{"topic_name": TOPIC, "partitions": [0, -1]}]}]},
        {"groups": [{"group_id": "", "topics": [{"topic_name": TOPIC, "partitions": [0]}]}]},
    ],
    "AlterShareGroupOffsets": [
        {"group_id": "", "topics": []},
        {"group_id": "nobody", "topics": [{"topic_name": ABSENT, "partitions": [{"partition_index": 0}]}]},
    ],
    "DeleteShareGroupOffsets": [
        {"group_id": "", "topics": []},
        {"group_id": "nobody", "topics": [{"topic_name": ABSENT}]},
    ],
    "StreamsGroupHeartbeat": [
        {"group_id": "", "member_id": "m", "member_epoch": 0},
        {"group_id": GROUP, "member_id": "m", "member_epoch": 7},
        {"group_id": GROUP, "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 0, "instance_id": "i"},
    ],
    "StreamsGroupDescribe": [{"group_ids": ["nobody", ""]}],
    "DescribeTopicPartitions": [
        {"topics": [{"name": TOPIC}, {"name": ABSENT}], "response_partition_limit": limit, "cursor": cursor}
        for limit in (2000, 1, 0, -1)
        for cursor in (
            None,
            *(
                {"topic_name": name, "partition_index": index}
                for name in (ABSENT, TOPIC, "z")
                for index in (0, 1, 7, -1)
            ),
        )
    ],
    "AlterReplicaLogDirs": [
        {"dirs": []},
        {"dirs": [{"path": "/nowhere", "topics": [{"name": TOPIC, "partitions": [0, 1, 99]}]}]},
        {"dirs": [{"path": "/nowhere", "topics": [{"name": "t" * 249, "partitions": [0]}]}]},
    ],
    "DescribeLogDirs": [
        {"topics": [{"topic": TOPIC, "partitions": [0, 1, 99]}, {"topic": ABSENT, "partitions": [0]}]},
        {"topics": []},
    ],
    "DescribeQuorum": [
        {"topics": [{"topic_name": name, "partitions": [{"partition_index": index}]}]}
        for name, index in (("__cluster_metadata", 0), ("__cluster_metadata", 1), (TOPIC, 0))
    ],
    "ListConfigResources": [{"resource_types": [16, 32]}, {"resource_types": [77]}],
    "DescribeAcls": [{"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}],
    "CreateAcls": [
        {
            "creations": [
                {
                    "resource_type": 2,
                    "resource_name": TOPIC,
                    "resource_pattern_type": 3,
                    "principal": "User:one",
                    "host": "*",
                    "operation": 3,
                    "permission_type": 3,
                }
            ]
        }
    ],
    "DeleteAcls": [
        {"filters": [{"resource_type_filter": 2, "pattern_type_filter": 3, "operation": 3, "permission_type": 3}]}
    ],
    "AlterPartitionReassignments": [
        {"timeout_ms": 1000, "topics": [{"name": ABSENT, "partitions": [{"partition_index": 0, "replicas": [1]}]}]}
    ],
    "ListPartitionReassignments": [
        {"timeout_ms": 1000, "topics": [{"name": ABSENT, "partition_indexes": [0]}]},
        {"topics": None},
    ],
    "UpdateFeatures": [
        {
            "timeout_ms": 1000,
            "validate_only": True,
            "feature_updates": [{"feature": name, "max_version_level": level, "upgrade_type": 1}],
        }
        for name, level in (("nonsense", 1), ("transaction.version", 99), ("metadata.version", 0))
    ]
    + [
        # These are committed: down, and up again.
        {
            "timeout_ms": 5000,
            "feature_updates": [{"feature": "share.version", "max_version_level": level, "upgrade_type": kind}],
        }
        for level, kind in ((0, 2), (1, 1))
    ],
    "WriteTxnMarkers": [
        {
            "markers": [
                {
                    "producer_id": 1,
                    "producer_epoch": 0,
                    "transaction_result": True,
                    "topics": [{"name": ABSENT, "partition_indexes": [0]}],
                }
            ]
        }
    ],
    "DescribeCluster": [{"endpoint_type": kind} for kind in (1, 2, 9)],
    "UnregisterBroker": [{"broker_id": 77}, {"broker_id": -1}],
    # A static quorum, of which no voter can be added or removed.
    "AddRaftVoter": [
        {"cluster_id": cluster, "voter_id": voter, "voter_directory_id": directory, "listeners": listeners}
        for cluster, voter, directory, listeners in (
            ("another", 77, BAD_ID, VOTER),
            (None, -1, BAD_ID, VOTER),
            (None, 77, bytes(16), VOTER),
            (None, 77, BAD_ID, []),
            (None, 77, BAD_ID, VOTER),
        )
    ],
    "RemoveRaftVoter": [
        {"cluster_id": cluster, "voter_id": voter, "voter_directory_id": directory}
        for cluster, voter, directory in (
            ("another", 77, BAD_ID),
            (None, -1, BAD_ID),
            (None, 77, bytes(16)),
            (None, 77, BAD_ID),
        )
    ],
}

# Asked of brokers that nobody has asked for a coordinator, on top of the cases above: what would be served after that.
EARLY_CASES: dict[str, list[dict[str, Any]]] = {
    "OffsetCommit": [{"group_id": "simple", "topics": COMMIT[:1], "generation_id_or_member_epoch": -1}],
    "OffsetFetch": [{"groups": [{"group_id": "nobody", "topics": None}, {"group_id": "", "topics": None}]}],
    "JoinGroup": [
        {
            "group_id": GROUP,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "protocols": [{"name": "range"}],
        }
    ],
    "Heartbeat": [],
    "LeaveGroup": [],
    "SyncGroup": [],
    "DescribeGroups": [],
    "DeleteGroups": [],
    "ListGroups": [{"states_filter": []}],
    "InitProducerId": [{"transactional_id": TXN, "transaction_timeout_ms": 1000, "producer_id": -1}],
    "AddPartitionsToTxn": [],
    "AddOffsetsToTxn": [],
    "EndTxn": [],
    "TxnOffsetCommit": [],
    "OffsetDelete": [{"group_id": "nobody", "topics": _indexed()[:1]}],
    "DescribeTransactions": [],
    "ListTransactions": [{"state_filters": []}],
    "ConsumerGroupHeartbeat": [
        {
            "group_id": GROUP,
            "member_id": "m",
            "member_epoch": 0,
            "rebalance_timeout_ms": 10_000,
            "subscribed_topic_names": [TOPIC],
            "topic_partitions": [],
        }
    ],
    "ConsumerGroupDescribe": [],
    "ShareGroupHeartbeat": [],
    "ShareGroupDescribe": [],
    "InitializeShareGroupState": [],
    "ReadShareGroupState": [],
    "WriteShareGroupState": [],
    "DeleteShareGroupState": [],
    "ReadShareGroupStateSummary": [],
    "DescribeShareGroupOffsets": [],
    "AlterShareGroupOffsets": [
        {"group_id": "nobody", "topics": [{"topic_name": TOPIC, "partitions": [{"partition_index": 0}]}]}
    ],
    "DeleteShareGroupOffsets": [{"group_id": "nobody", "topics": [{"topic_name": TOPIC}]}],
    "StreamsGroupHeartbeat": [
        {
            "group_id": GROUP,
            "member_id": "m",
            "member_epoch": 0,
            "rebalance_timeout_ms": 10_000,
            "process_id": "p",
            "topology": {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": [TOPIC]}]},
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
        }
    ],
    "StreamsGroupDescribe": [],
}


@dataclass(frozen=True)
class Disparity:
    """A request to which two brokers respond differently."""

    api: str
    version: int
    case: int
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.api} v{self.version}, case {self.case}: " + "; ".join(self.lines[:4])


@dataclass
class Sweep:
    """The result of a sweep. `asked` is the number of requests sent to each broker."""

    asked: int
    disparities: list[Disparity]
    apis: int


def fields_of(made: type[Message], version: int) -> set[str]:
    """Returns the names of the fields that a message has in a version."""
    return {row[0] for row in made.FIELDS if _has(row[2], version)}


def _has(versions: str, version: int) -> bool:
    if not versions:
        return False
    first, _, last = versions.rstrip("+").partition("-")
    return int(first) <= version <= int(last or (version if versions.endswith("+") else first))


def requests_of(api: str, version: int, cases: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, Message]]:
    """Yields those of the cases of an API that can be expressed in a version."""
    known = fields_of(request_class(NAMES[api]), version)
    for number, case in enumerate(cases):
        said = {name: value for name, value in case.items() if name in known}
        # Without the flag, Metadata creates the topic.
        makes_topics = api == "Metadata" and case.keys() - said.keys()
        if said and not makes_topics:
            message = make(api, **said)
            try:
                encode(message, version)
            except UnsupportedVersionError:
                continue
            yield number, message


class Side:
    """One of the two brokers. Reopens a connection that the broker closed."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.connection = Connection(address, timeout_s=PATIENCE_S)

    def ranges(self) -> dict[int, tuple[int, int]]:
        return self.connection.ranges()

    def ask(self, message: Message, version: int) -> Any:
        """Returns the response, or "closed" if the broker closes the connection instead."""
        try:
            return self.connection.request(message, version)
        except WireClientError:
            self.close()
            self.connection = Connection(self.address, timeout_s=PATIENCE_S)
            return "closed"

    def close(self) -> None:
        self.connection.close()


def sweep(
    ours: str,
    theirs: str,
    cases: Mapping[str, list[dict[str, Any]]] = CASES,
    facts: Mapping[str, set[str]] = FACTS,
) -> Sweep:
    """Compares the broker at `ours` with the one at `theirs`, over the versions that both advertise."""
    found: list[Disparity] = []
    asked = 0
    one, two = Side(ours), Side(theirs)
    shared = {key: span for key, span in one.ranges().items() if key in two.ranges()}
    apis = [api for api in cases if api not in LEFT_OUT and NAMES[api] in shared]
    for api in apis:
        first, last = shared[NAMES[api]]
        # Produce is advertised from 0 and has messages from 3.
        for version in range(max(first, request_class(NAMES[api]).MIN_VERSION), last + 1):
            for number, message in requests_of(api, version, cases[api]):
                asked += 1
                both = [side.ask(message, version) for side in (one, two)]
                if isinstance(both[0], str) or isinstance(both[1], str):
                    lines = [] if both[0] == both[1] else [f"{both[0]!r} and {both[1]!r}"]
                else:
                    codes = [sorted(error_codes(each)) for each in both]
                    for answer in both:
                        _blank(answer, facts.get(api, set()))
                    lines = differences(both[1], both[0], Pairs())
                    if api == "Fetch" and facts is FACTS:
                        lines += _other_sizes(both[1], both[0])
                    if codes[0] != codes[1]:
                        lines = [f"errors {codes[0]} where Kafka has {codes[1]}", *lines]
                if lines:
                    found.append(Disparity(api, version, number, tuple(lines)))
    one.close()
    two.close()
    return Sweep(asked, found, len(apis))


def _blank(value: Any, names: set[str]) -> None:
    """Sets the fields of these names to None, at any depth."""
    for row in value.FIELDS if isinstance(value, Message) else ():
        inner = getattr(value, row[0])
        if row[0] in names:
            setattr(value, row[0], None)
        for each in inner if isinstance(inner, list) else ():
            _blank(each, names)


def _other_sizes(theirs: Any, ours: Any) -> list[str]:
    """Compares the numbers of bytes that were read, because records are not compared."""
    sizes = [
        sorted(
            (topic.topic, part.partition_index, -1 if part.records is None else len(part.records))
            for topic in answer.responses
            for part in topic.partitions
        )
        for answer in (theirs, ours)
    ]
    return [] if sizes[0] == sizes[1] else [f"bytes of records {sizes[0]} of Kafka, {sizes[1]} now"]


def unswept(served: Iterable[str]) -> set[str]:
    """Returns the served APIs that have neither a case nor a reason to be left out, and those that are not served."""
    return set(served) ^ (CASES.keys() | LEFT_OUT.keys())


def prepare(address: str) -> None:
    """Creates the topic that must exist, and both coordinators' topics."""
    with Connection(address) as connection:
        create_topic(connection, TOPIC, 2)
        for key, kind in ((GROUP, 0), (TXN, 1)):
            while connection.request(make("FindCoordinator", key=key, key_type=kind), 3).error_code:
                time.sleep(0.02)
        share = make("FindCoordinator", coordinator_keys=[f"{GROUP}:{'A' * 21}Q:0"], key_type=2)
        while connection.request(share, 6).coordinators[0].error_code:
            time.sleep(0.02)
        probe: Mapping[str, Any] = {"transactional_id": "probe", "transaction_timeout_ms": 1000}
        while connection.request(make("InitProducerId", **probe), 4).error_code:
            time.sleep(0.02)
        while (
            connection.request(make("ListOffsets", replica_id=-1, topics=_indexed(timestamp=-1)[:1]), 5)
            .topics[0]
            .partitions[0]
            .error_code
        ):
            time.sleep(0.02)
