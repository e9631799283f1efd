"""Sends the same well-formed requests, for every advertised API in every version, to two brokers and compares the
responses.

A case is a request that is valid for any broker state: empty, for resources that do not exist, or out of range. The
whole responses must agree under ``kafka_shim.wiretap.compare``: error codes, shape and content, except for generated
ids.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from kafka_shim.protocol.headers import request_class
from kafka_shim.targets.requests import NAMES, create_topic, make
from kafka_shim.wire_client import Connection, WireClientError
from kafka_shim.wiretap.compare import Pairs, differences
from kafka_shim.wiretap.frames import error_codes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from kafka_shim.protocol.message import Message

TOPIC, ABSENT, GROUP, TXN = "sweep", "absent", "sweep-group", "sweep-txn"
BAD_ID = b"\x01" * 16
# These change the broker, wait, or return facts about the machine. Other tests compare them.
LEFT_OUT = {
    "ApiVersions",
    "DescribeLogDirs",
    "DescribeQuorum",
    "AddRaftVoter",
    "RemoveRaftVoter",
    "UnregisterBroker",
    "ListConfigResources",
    "DescribeConfigs",
}
WHO: dict[str, Any] = {"transactional_id": TXN, "producer_id": 123_456_789, "producer_epoch": 3}


def _parts(**fields: Any) -> list[dict[str, Any]]:
    """Returns partition 0 of an existing topic, a missing partition, and a missing topic."""
    return [
        {"topic": TOPIC, "partitions": [dict(fields, partition=0), dict(fields, partition=99)]},
        {"topic": ABSENT, "partitions": [dict(fields, partition=0)]},
    ]


def _indexed(name: str = "name", number: str = "partition_index", **fields: Any) -> list[dict[str, Any]]:
    return [
        {name: TOPIC, "partitions": [{number: 0, **fields}, {number: 99, **fields}]},
        {name: ABSENT, "partitions": [{number: 0, **fields}]},
    ]


COMMIT = _indexed(committed_offset=1, committed_metadata="m")
COMMIT_BY_ID = [COMMIT[0], {**COMMIT[1], "topic_id": BAD_ID}]
MEMBER = {"group_id": GROUP, "generation_id": 1, "member_id": "stranger"}

# Requests by API. Fields that a version does not have are left out.
CASES: dict[str, list[dict[str, Any]]] = {
    "Fetch": [{"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1000, "session_epoch": -1, "topics": []}],
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
    ],
    "AlterConfigs": [
        {"validate_only": True, "resources": [{"resource_type": kind, "resource_name": ABSENT}]} for kind in (2, 77)
    ],
    "IncrementalAlterConfigs": [
        {"validate_only": True, "resources": [{"resource_type": kind, "resource_name": ABSENT}]} for kind in (2, 77)
    ],
    "ElectLeaders": [
        {"election_type": 0, "topic_partitions": [{"topic": ABSENT, "partitions": [0]}], "timeout_ms": 1000}
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
    "DescribeTopicPartitions": [{"topics": [{"name": TOPIC}, {"name": ABSENT}], "response_partition_limit": 2000}],
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
    "DescribeCluster": [{"endpoint_type": 1}, {"endpoint_type": 9}],
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


def requests_of(api: str, version: int) -> Iterator[tuple[int, Message]]:
    """Yields the cases of an API that can be expressed in a version."""
    known = fields_of(request_class(NAMES[api]), version)
    for number, case in enumerate(CASES[api]):
        said = {name: value for name, value in case.items() if name in known}
        # Without the flag, Metadata creates the topic.
        makes_topics = api == "Metadata" and case.keys() - said.keys()
        if said and not makes_topics:
            yield number, make(api, **said)


class Side:
    """One of the two brokers. Reopens a connection that the broker closed."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.connection = Connection(address, timeout_s=20)

    def ranges(self) -> dict[int, tuple[int, int]]:
        return self.connection.ranges()

    def ask(self, message: Message, version: int) -> Any:
        """Returns the response, or "closed" if the broker closes the connection instead."""
        try:
            return self.connection.request(message, version)
        except WireClientError:
            self.close()
            self.connection = Connection(self.address, timeout_s=20)
            return "closed"

    def close(self) -> None:
        self.connection.close()


def sweep(ours: str, theirs: str) -> Sweep:
    """Compares the broker at `ours` with the one at `theirs`, over the versions that both advertise."""
    found: list[Disparity] = []
    asked = 0
    one, two = Side(ours), Side(theirs)
    shared = {key: span for key, span in one.ranges().items() if key in two.ranges()}
    apis = [api for api in CASES if api not in LEFT_OUT and NAMES[api] in shared]
    for api in apis:
        first, last = shared[NAMES[api]]
        for version in range(first, last + 1):
            for number, message in requests_of(api, version):
                asked += 1
                both = [side.ask(message, version) for side in (one, two)]
                if isinstance(both[0], str) or isinstance(both[1], str):
                    lines = [] if both[0] == both[1] else [f"{both[0]!r} and {both[1]!r}"]
                else:
                    codes = [sorted(error_codes(each)) for each in both]
                    lines = differences(both[1], both[0], Pairs())
                    if codes[0] != codes[1]:
                        lines = [f"errors {codes[0]} where Kafka has {codes[1]}", *lines]
                if lines:
                    found.append(Disparity(api, version, number, tuple(lines)))
    one.close()
    two.close()
    return Sweep(asked, found, len(apis))


def prepare(address: str) -> None:
    """Creates the topic that must exist, and both coordinators' topics."""
    with Connection(address) as connection:
        create_topic(connection, TOPIC, 2)
        for key, kind in ((GROUP, 0), (TXN, 1)):
            while connection.request(make("FindCoordinator", key=key, key_type=kind), 3).error_code:
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
