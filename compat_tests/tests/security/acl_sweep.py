"""The sweep of authorisation: each request of the API list, under each set of ACLs, to two brokers.

A set of ACLs allows one operation on one resource type alone, or everything but that, or nothing, or everything; it
does so by a literal name, a prefix or the wildcard, for a host or for all. Each request is sent by a user whom the ACLs
name, by one whom they do not, or by a super user. The responses must agree: error codes, and what is shown and hidden.

    python -m kafka_shim.compat.tests.security.acl_sweep [--sample]

starts both brokers, sends all of it (or a sample), and prints how many requests were compared and what differed.
"""

from __future__ import annotations

import itertools
import sys
import time
from dataclasses import dataclass

from kafka_shim.api import TABLE
from kafka_shim.compat.tests.security.principals import ALICE, BOB, ROOT, Rule, Secured
from kafka_shim.protocol.message import ZERO_UUID
from kafka_shim.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from kafka_shim.security.acl import SUPPORTED_OPERATIONS, AclOperation, PatternType, PermissionType, ResourceType
from kafka_shim.targets import requests
from kafka_shim.targets.secured import SecuredKafka, SecuredShim
from kafka_shim.targets.waiting import right_answer
from kafka_shim.tests.authorization import CASES
from kafka_shim.tests.authorization.groups import offset_commit
from kafka_shim.tests.produced import batch, produce_request
from kafka_shim.wire_client import check
from kafka_shim.wiretap.compare import Pairs, differences
from kafka_shim.wiretap.frames import error_codes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kafka_shim.protocol.message import Message

make = requests.make
NAMES = {
    ResourceType.TOPIC: ("t", "n", "none", "new!"),
    ResourceType.GROUP: ("g", "k", "s", "e"),
    ResourceType.CLUSTER: ("kafka-cluster",),
    ResourceType.TRANSACTIONAL_ID: ("x",),
}
# What a streams group does later than it is asked would come between the same question to one broker and to the other.
AT_ONCE = {"group.streams.initial.rebalance.delay.ms": "0", "group.streams.assignment.interval.ms": "0"}
# Requests of the list that change what later ones find, in a form that does not.
INSTEAD: dict[tuple[int, int], Callable[[], Message]] = {
    (3, 12): lambda: make("Metadata", topics=[{"name": "t"}, {"name": "new!"}, {"name": "none?"}]),
    (11, 9): lambda: make("JoinGroup", group_id="g", session_timeout_ms=1, protocol_type="consumer"),
    (68, 1): lambda: make(
        "ConsumerGroupHeartbeat",
        group_id="k",
        member_id="m",
        member_epoch=7,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t", "none"],
        topic_partitions=[],
    ),
    (76, 1): lambda: make(
        "ShareGroupHeartbeat", group_id="s", member_id="m", member_epoch=7, subscribed_topic_names=["t", "none"]
    ),
    (91, 0): lambda: make("AlterShareGroupOffsets", group_id="e", topics=[]),
    # Not the values: some are of one broker alone.
    (32, 4): lambda: make(
        "DescribeConfigs",
        resources=[
            {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
            for kind, name, keys in ((2, "t", None), (4, "1", ["num.partitions"]), (16, "1", None), (32, "g", None))
        ],
    ),
    (35, 4): lambda: make("DescribeLogDirs", topics=[{"topic": "t", "partitions": [1]}]),
}
# SASL closes a connection that has authenticated, and the shim's test connections have not; what ApiVersions lists
# needs no authorisation.
LEFT_OUT = {(17, 1), (18, 3), (36, 2)}
BESIDE: list[tuple[str, int, Callable[[], Message]]] = [
    ("Metadata", 10, lambda: make("Metadata", topics=None, include_topic_authorized_operations=True)),
    ("Metadata", 8, lambda: make("Metadata", topics=[{"name": "t"}], include_cluster_authorized_operations=True)),
    (
        "Metadata",
        12,
        lambda: make(
            "Metadata",
            topics=[{"name": "none"}, {"name": "t"}],
            include_topic_authorized_operations=True,
            allow_auto_topic_creation=False,
        ),
    ),
    ("Produce", 9, lambda: requests.produce("none", 0, [(None, b"a")])),
    ("Produce", 9, lambda: requests.produce("__consumer_offsets", 0, [(None, b"a")])),
    (
        "ListOffsets",
        7,
        lambda: make(
            "ListOffsets",
            replica_id=-1,
            topics=[{"name": name, "partitions": [{"partition_index": 0, "timestamp": -2}]} for name in ("t", "none")],
        ),
    ),
    (
        "OffsetCommit",
        8,
        lambda: make(
            "OffsetCommit",
            group_id="g",
            topics=[
                {"name": name, "partitions": [{"partition_index": 0, "committed_offset": 1}]} for name in ("t", "none")
            ],
        ),
    ),
    ("OffsetFetch", 7, lambda: make("OffsetFetch", group_id="g", topics=None)),
    (
        "OffsetFetch",
        8,
        lambda: make(
            "OffsetFetch",
            groups=[
                {"group_id": "g", "topics": None},
                {"group_id": "none", "topics": [{"name": "t", "partition_indexes": [0]}]},
            ],
        ),
    ),
    ("DeleteTopics", 6, lambda: make("DeleteTopics", topics=[{"name": None, "topic_id": b"\1" * 16}], timeout_ms=1000)),
    ("DeleteTopics", 4, lambda: make("DeleteTopics", topic_names=["none", "new!"], timeout_ms=1000)),
    (
        "DescribeTopicPartitions",
        0,
        lambda: make("DescribeTopicPartitions", topics=[{"name": "none"}, {"name": "t"}], response_partition_limit=100),
    ),
    ("DescribeGroups", 5, lambda: make("DescribeGroups", groups=["g", "none"], include_authorized_operations=True)),
    (
        "ConsumerGroupDescribe",
        1,
        lambda: make("ConsumerGroupDescribe", group_ids=["k", "none"], include_authorized_operations=True),
    ),
    (
        "CreatePartitions",
        3,
        lambda: make(
            "CreatePartitions",
            timeout_ms=1000,
            validate_only=True,
            topics=[{"name": "t", "count": 9}, {"name": "none", "count": 2}],
        ),
    ),
    (
        "IncrementalAlterConfigs",
        1,
        lambda: make(
            "IncrementalAlterConfigs",
            validate_only=True,
            resources=[
                {"resource_type": 2, "resource_name": "none", "configs": []},
                {"resource_type": 4, "resource_name": "1", "configs": []},
            ],
        ),
    ),
    (
        "DescribeConfigs",
        4,
        lambda: make(
            "DescribeConfigs",
            resources=[
                {"resource_type": 2, "resource_name": "none", "configuration_keys": []},
                {"resource_type": 32, "resource_name": "g", "configuration_keys": []},
            ],
        ),
    ),
    (
        "AddPartitionsToTxn",
        3,
        lambda: make(
            "AddPartitionsToTxn",
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[{"name": "t", "partitions": [0]}, {"name": "none", "partitions": [0]}],
        ),
    ),
    (
        "DeleteAcls",
        3,
        lambda: make(
            "DeleteAcls",
            filters=[
                {
                    "resource_type_filter": 7,
                    "pattern_type_filter": 1,
                    "operation": 1,
                    "permission_type": 1,
                    "resource_name_filter": None,
                    "principal_filter": None,
                    "host_filter": None,
                }
            ],
        ),
    ),
    (
        "CreateAcls",
        3,
        lambda: make(
            "CreateAcls",
            creations=[
                {
                    "resource_type": 4,
                    "resource_name": "no-cluster",
                    "principal": "User:a",
                    "host": "*",
                    "operation": 3,
                    "permission_type": 3,
                }
            ],
        ),
    ),
    (
        "DescribeAcls",
        3,
        lambda: make(
            "DescribeAcls",
            resource_type_filter=4,
            pattern_type_filter=1,
            resource_name_filter=None,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        ),
    ),
]
# The list has requests that create and delete ACLs; the sweep is about who may.
REPLACED = {(29, 3), (30, 3), (31, 3)}


@dataclass(frozen=True)
class Case:
    api: str
    version: int
    message: Callable[[], Message]


@dataclass(frozen=True)
class AclSet:
    """ACLs under which the requests are sent."""

    name: str
    rules: tuple[Rule, ...]
    users: tuple[str, ...] = (ALICE,)


def cases() -> list[Case]:
    found = [
        Case(TABLE[key].name, version, INSTEAD.get((key, version), build))
        for (key, version), (build, _) in CASES.items()
        if (key, version) not in LEFT_OUT | REPLACED
    ]
    return found + [Case(name, version, build) for name, version, build in BESIDE]


# The cluster has one name and knows no wildcard.
WILDCARDS = {kind: names[0] if kind == ResourceType.CLUSTER else "*" for kind, names in NAMES.items()}
EVERYTHING = tuple(Rule(kind, name, AclOperation.ALL) for kind, name in WILDCARDS.items())
DENIED = tuple(Rule(kind, name, AclOperation.ALL, 3, 2) for kind, name in WILDCARDS.items())
FORMS = ("literal", "prefix", "wildcard", "host", "everybody")


def _named(kind: ResourceType, operation: AclOperation, form: str, permission: PermissionType) -> list[Rule]:
    principal = "User:*" if form == "everybody" else "User:alice"
    host = "127.0.0.1" if form == "host" else "*"
    if form == "wildcard":
        names: Sequence[str] = (WILDCARDS[kind],)
    elif form == "prefix" and kind != ResourceType.CLUSTER:
        names = tuple(dict.fromkeys(name[:1] for name in NAMES[kind]))
    else:
        names = NAMES[kind]
    pattern = PatternType.PREFIXED if form == "prefix" and kind != ResourceType.CLUSTER else PatternType.LITERAL
    return [Rule(kind, name, operation, pattern, permission, principal, host) for name in names]


def acl_sets() -> list[AclSet]:
    """Each operation of each resource type, allowed alone and denied alone, in one form each, in turn."""
    made = [
        AclSet("nothing", (), (ALICE, ROOT)),
        AclSet("everything", EVERYTHING, (ALICE, BOB)),
        AclSet("everything denied", (*EVERYTHING, *DENIED), (ROOT, ALICE)),
    ]
    turn = itertools.cycle(FORMS)
    for kind in NAMES:
        for operation in (*SUPPORTED_OPERATIONS[kind], AclOperation.ALL):
            what = f"{operation.name} on {kind.name}"
            for permission in (PermissionType.ALLOW, PermissionType.DENY):
                form = next(turn)
                rules = _named(kind, operation, form, permission)
                if permission == PermissionType.ALLOW:
                    made.append(AclSet(f"{what} alone, by {form}", tuple(rules)))
                else:
                    made.append(AclSet(f"all but {what}, by {form}", (*EVERYTHING, *rules)))
    return made


def prepare(broker: Secured) -> None:
    """A topic with a record, committed offsets, both coordinators."""
    topic = {"name": "t", "num_partitions": 2, "replication_factor": 1}
    check(broker.ask(ROOT, make("CreateTopics", topics=[topic], timeout_ms=5000), 5).topics[0].error_code)
    settled: list[Callable[[], int]] = [
        lambda: (
            broker.ask(ROOT, produce_request("t", 0, batch(b"a")), 9).responses[0].partition_responses[0].error_code
        ),
        lambda: broker.ask(ROOT, make("FindCoordinator", key="g", key_type=0), 3).error_code,
        lambda: broker.ask(ROOT, make("FindCoordinator", key="x", key_type=1), 3).error_code,
        lambda: (
            broker.ask(ROOT, make("FindCoordinator", key_type=2, coordinator_keys=[f"s:{'A' * 21}Q:0"]), 6)
            .coordinators[0]
            .error_code
        ),
        lambda: broker.ask(ROOT, offset_commit(), 9).topics[0].partitions[0].error_code,
        lambda: broker.ask(ROOT, CASES[22, 4][0](), 4).error_code,
        lambda: broker.ask(ROOT, CASES[22, 5][0](), 5).error_code,
    ]
    for attempt in settled:
        right_answer(attempt, lambda code: code == 0, "no error")


# Every so-manieth set of ACLs is the sample.
STEP = 24


def sample() -> list[AclSet]:
    return [*acl_sets()[:2], *acl_sets()[2::STEP]]


def compare(sets: Sequence[AclSet], settings: Mapping[str, str]) -> tuple[str, list[str]]:
    """Starts both brokers and sends everything. Returns what was compared, in a line, and what differed."""
    settings = AT_ONCE | dict(settings)
    with Secured(SecuredShim, settings) as shim, Secured(SecuredKafka, settings) as kafka:
        for broker in (shim, kafka):
            prepare(broker)
        count, found = sweep(shim, kafka, sets)
    apis = len({case.api for case in cases()})
    return f"{count} requests of {apis} APIs under {len(sets)} sets of ACLs, {len(found)} differ", found


def sweep(shim: Secured, kafka: Secured, sets: Sequence[AclSet]) -> tuple[int, list[str]]:
    """Returns the number of requests that each broker answered, and what differed, one line each."""
    count = 0
    found: list[str] = []
    pairs = Pairs()
    for one in sets:
        for broker in (shim, kafka):
            broker.set_acls(one.rules)
        for user, case in itertools.product(one.users, cases()):
            count += 1
            ours, theirs = (broker.ask(user, case.message(), case.version) for broker in (shim, kafka))
            where = f"{case.api} v{case.version} by {user} with {one.name}"
            found += [f"{where}: {line}" for line in _differences(ours, theirs, pairs)]
            if case.api == "streams_group_heartbeat":
                _await_internal_topics(shim, kafka)
    return count, found


def _await_internal_topics(shim: Secured, kafka: Secured) -> None:
    """Kafka creates the internal topics of a streams group after it has answered the heartbeat."""
    everything = make("Metadata", topics=None)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        ours, theirs = ({topic.name for topic in broker.ask(ROOT, everything, 8).topics} for broker in (shim, kafka))
        if ours <= theirs:
            return
        time.sleep(0.05)


def _differences(ours: object, theirs: object, pairs: Pairs) -> Iterator[str]:
    if isinstance(ours, str) or isinstance(theirs, str):
        if ours != theirs:
            yield f"{ours!r} where Kafka has {theirs!r}"
        return
    codes = [sorted(error_codes(each)) for each in (ours, theirs)]
    if codes[0] != codes[1]:
        yield f"errors {codes[0]} where Kafka has {codes[1]}"
    if isinstance(ours, GetTelemetrySubscriptionsResponse):
        # Drawn at random by each broker, and the id of the subscription is made from it.
        for each in (ours, theirs):
            each.client_instance_id, each.subscription_id = ZERO_UUID, 0  # type: ignore[attr-defined]
    yield from differences(theirs, ours, pairs)


if __name__ == "__main__":
    line, differing = compare(sample() if "--sample" in sys.argv else acl_sets(), {})
    print("\n".join([*differing, line]))
    sys.exit(1 if differing else 0)
