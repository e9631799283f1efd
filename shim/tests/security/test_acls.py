"""DescribeAcls, CreateAcls, DeleteAcls, and what follows from them, on a broker with StandardAuthorizer."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafka_shim.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from kafka_shim.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kafka_shim.protocol.messages.describe_acls_request import DescribeAclsRequest
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_shim.security import acl_control
from kafka_shim.security.acl import AclOperation, PatternType, PermissionType, ResourceType
from kafka_shim.security.acl_binding import Acl, AclFilter
from kafka_shim.security.acl_control import SLICE
from kafka_shim.security.audit_log import MAX_LINES_PER_SECOND
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.wire_client import Connection, WireClientError

Op, P, R, A = AclOperation, PatternType, ResourceType, PermissionType
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ANONYMOUS = "User:ANONYMOUS"
Row = tuple[int, str, int, str, str, int, int]
READ_T: Row = (R.TOPIC, "t", P.LITERAL, ANONYMOUS, "*", Op.READ, A.ALLOW)


@pytest.fixture
def secured() -> Iterator[Broker]:
    """A broker whose anonymous clients are super users."""
    with Broker(authorizer_class_name=AUTHORIZER, super_users=ANONYMOUS, clock="virtual") as running:
        yield running


@pytest.fixture
def admin(secured: Broker) -> Iterator[Connection]:
    with Connection(secured.bootstrap_servers, timeout_s=60) as connection:
        yield connection


def only_acls_decide(broker: Broker) -> None:
    """From now on nobody is a super user."""
    broker.call(broker.state.authorizer.configure, {})
    broker.call(broker.state.authorizer.change_acls, (), ())


def create(client: Connection, *rows: Row, version: int = 3) -> list[tuple[int, str | None]]:
    creations = [
        AclCreation(
            resource_type=row[0],
            resource_name=row[1],
            resource_pattern_type=row[2],
            principal=row[3],
            host=row[4],
            operation=row[5],
            permission_type=row[6],
        )
        for row in rows
    ]
    told = client.request(CreateAclsRequest(creations=creations), version)
    return [(one.error_code, one.error_message) for one in told.results]


ANY = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
NAMED: dict[str, Any] = {"resource_name_filter": None, "principal_filter": None, "host_filter": None}


def describe(client: Connection, version: int = 3, **fields: Any) -> set[Row]:
    told = client.request(DescribeAclsRequest(**{**ANY, **NAMED, **fields}), version)
    assert told.error_code == 0
    return {
        (each.resource_type, each.resource_name, each.pattern_type, a.principal, a.host, a.operation, a.permission_type)
        for each in told.resources
        for a in each.acls
    }


def delete(client: Connection, *filters: dict[str, Any], version: int = 3) -> list[tuple[int, str | None, set[Row]]]:
    rows = [DeleteAclsFilter(**{**ANY, **NAMED, **fields}) for fields in filters]
    told = client.request(DeleteAclsRequest(filters=rows), version)
    return [
        (
            one.error_code,
            one.error_message,
            {
                (a.resource_type, a.resource_name, a.pattern_type, a.principal, a.host, a.operation, a.permission_type)
                for a in one.matching_acls
            },
        )
        for one in told.filter_results
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_acl_is_created_shown_and_deleted(admin: Connection, version: int):
    prefixed: Row = (R.GROUP, "g-", P.PREFIXED, "User:a", "10.0.0.1", Op.ALL, A.DENY)
    assert create(admin, READ_T, prefixed, READ_T, version=version) == [(0, "")] * 3
    assert create(admin, READ_T, version=version) == [(0, "")]
    assert describe(admin, version) == {READ_T, prefixed}
    both = delete(admin, {"resource_type_filter": R.TOPIC}, {}, version=version)
    assert both == [(0, None, {READ_T}), (0, None, {READ_T, prefixed})]
    assert describe(admin, version) == set()
    assert delete(admin, {}, version=version) == [(0, None, set())]


def test_a_filter_compares_each_field_and_match_finds_what_applies(admin: Connection):
    rows: dict[str, Row] = {
        "literal": READ_T,
        "wildcard": (R.TOPIC, "*", P.LITERAL, "User:a", "h", Op.WRITE, A.DENY),
        "prefix": (R.TOPIC, "t", P.PREFIXED, "User:b", "*", Op.READ, A.ALLOW),
        "longer": (R.TOPIC, "tt", P.PREFIXED, "User:b", "*", Op.READ, A.ALLOW),
        "group": (R.GROUP, "t", P.LITERAL, "User:b", "*", Op.READ, A.ALLOW),
    }
    assert {code for code, _ in create(admin, *rows.values())} == {0}

    def found(**fields: Any) -> set[str]:
        shown = describe(admin, **fields)
        return {name for name, row in rows.items() if row in shown}

    assert found() == set(rows)
    assert found(resource_type_filter=R.GROUP) == {"group"}
    assert found(resource_type_filter=R.USER) == set()
    assert found(resource_name_filter="t") == {"literal", "prefix", "group"}
    assert found(resource_name_filter="t", pattern_type_filter=P.PREFIXED) == {"prefix"}
    assert found(resource_name_filter="t", pattern_type_filter=P.MATCH) == {"literal", "wildcard", "prefix", "group"}
    assert found(resource_name_filter="ttt", pattern_type_filter=P.MATCH) == {"wildcard", "prefix", "longer"}
    assert found(pattern_type_filter=P.MATCH) == set(rows)
    assert found(principal_filter="User:b") == {"prefix", "longer", "group"}
    assert found(host_filter="h") == {"wildcard"}
    assert found(operation=Op.WRITE) == {"wildcard"}
    assert found(permission_type=A.DENY) == {"wildcard"}
    # Kafka compares, it does not apply: ALL finds ALL alone.
    assert found(operation=Op.ALL) == set()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            (R.CLUSTER, "x", P.LITERAL, "User:a", "*", 3, 3),
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        ((R.TOPIC, "", P.LITERAL, "User:a", "*", 3, 3), "Invalid empty resource name"),
        ((99, "x", P.LITERAL, "User:a", "*", 3, 3), "Invalid resourceType UNKNOWN"),
        ((R.TOPIC, "x", 9, "User:a", "*", 3, 3), "Invalid patternType UNKNOWN"),
        ((R.TOPIC, "x", P.LITERAL, "User:a", "*", 99, 3), "Invalid operation UNKNOWN"),
        ((R.TOPIC, "x", P.LITERAL, "User:a", "*", 3, 9), "Invalid permissionType UNKNOWN"),
        (
            (R.TOPIC, "x", P.LITERAL, "alice", "*", 3, 3),
            "Could not parse principal from `alice` (no colon is present separating the principal type from the "
            "principal name)",
        ),
    ],
)
def test_an_invalid_acl_is_refused_and_the_others_are_stored(admin: Connection, row: Row, reason: str):
    assert create(admin, row, READ_T) == [(ErrorCode.INVALID_REQUEST, reason), (0, "")]
    assert describe(admin) == {READ_T}


@pytest.mark.parametrize(
    ("at", "code", "reason"),
    [
        (0, R.ANY, "resourceType must not be ANY"),
        (2, P.ANY, "patternType must not be ANY"),
        (2, P.MATCH, "patternType must not be MATCH"),
        (5, Op.ANY, "operation must not be ANY"),
        (6, A.ANY, "permissionType must not be ANY"),
    ],
)
def test_a_code_of_filters_alone_fails_the_request(admin: Connection, at: int, code: int, reason: str):
    wrong = tuple(code if number == at else value for number, value in enumerate(READ_T))
    assert create(admin, READ_T, wrong) == [(ErrorCode.UNKNOWN_SERVER_ERROR, reason)] * 2  # type: ignore[arg-type]
    assert describe(admin) == set()


def test_a_filter_of_unknown_codes_is_refused_and_the_others_act(admin: Connection):
    create(admin, READ_T)
    told = delete(admin, {"resource_type_filter": 99}, {"operation": 99}, {})
    assert [(code, text) for code, text, _ in told] == [
        (ErrorCode.INVALID_REQUEST, "Unknown patternFilter."),
        (ErrorCode.INVALID_REQUEST, "Unknown entryFilter."),
        (0, None),
    ]
    assert describe(admin) == set()


def test_the_code_of_unknown_closes_the_connection(secured: Broker):
    for request in (
        DescribeAclsRequest(**{**ANY, **NAMED, "operation": 0}),
        CreateAclsRequest(creations=[AclCreation(resource_name="t", principal="User:a", host="*")]),
        DeleteAclsRequest(filters=[DeleteAclsFilter(**NAMED)]),
    ):
        with Connection(secured.bootstrap_servers) as client, pytest.raises(WireClientError):
            client.request(request, 3)


def test_too_many_at_once_are_refused_and_change_nothing(admin: Connection, monkeypatch: pytest.MonkeyPatch):
    rows: list[Row] = [(R.TOPIC, f"t{number}", P.LITERAL, "User:a", "*", 3, 3) for number in range(5)]
    create(admin, *rows)
    monkeypatch.setattr(acl_control, "MAX_RECORDS", 4)
    new: list[Row] = [(R.TOPIC, f"n{number}", P.LITERAL, "User:a", "*", 3, 3) for number in range(5)]
    assert set(create(admin, *new)) == {
        (ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    }
    assert (
        delete(admin, {}, {})
        == [(ErrorCode.INVALID_REQUEST, "Cannot remove more than 4 acls in a single delete operation.", set())] * 2
    )
    assert describe(admin) == set(rows)


def test_an_acl_acts_on_the_next_request(secured: Broker, admin: Connection):
    make_topic(admin, "t")
    write: Row = (R.TOPIC, "t", P.LITERAL, ANONYMOUS, "*", Op.WRITE, A.ALLOW)
    alter: Row = (R.CLUSTER, "kafka-cluster", P.LITERAL, ANONYMOUS, "*", Op.ALTER, A.ALLOW)
    create(admin, alter)
    only_acls_decide(secured)
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert produce(admin, "t", 0, batch(b"a")).error_code == denied
    create(admin, write)
    assert produce(admin, "t", 0, batch(b"a")).error_code == 0
    create(admin, (*write[:6], A.DENY))
    assert produce(admin, "t", 0, batch(b"a")).error_code == denied
    delete(admin, {"permission_type": A.DENY})
    assert produce(admin, "t", 0, batch(b"a")).error_code == 0
    # ALTER on the cluster implies DESCRIBE on it, and nothing more.
    assert describe(admin) == {write, alter}
    delete(admin, {"resource_type_filter": R.CLUSTER})
    told = admin.request(DescribeAclsRequest(**{**ANY, **NAMED}), 3)
    assert told.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert create(admin, alter)[0][0] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert delete(admin, {})[0][0] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_without_an_authorizer_they_say_so(client: Connection):
    disabled = ErrorCode.SECURITY_DISABLED
    told = client.request(DescribeAclsRequest(**{**ANY, **NAMED}), 3)
    assert (told.error_code, told.error_message) == (disabled, "No Authorizer is configured on the broker")
    assert create(client, READ_T, READ_T) == [(disabled, "No Authorizer is configured.")] * 2
    assert delete(client, {}) == [(disabled, "No Authorizer is configured.", set())]


def test_acls_survive_a_crash_and_a_snapshot(tmp_path: Path):
    options: dict[str, Any] = {
        "authorizer_class_name": AUTHORIZER,
        "super_users": ANONYMOUS,
        "metadata_log_max_record_bytes_between_snapshots": 1,
    }
    rows: list[Row] = [(R.TOPIC, f"t{number}", P.PREFIXED, "User:a", "*", Op.READ, A.ALLOW) for number in range(30)]
    with Broker(data_dir=tmp_path, process=True, **options) as broker:
        with Connection(broker.bootstrap_servers) as client:
            create(client, *rows)
            delete(client, {"resource_name_filter": "t7"})
        broker.kill()
    with Broker(data_dir=tmp_path, **options) as broker, Connection(broker.bootstrap_servers) as client:
        assert describe(client) == {row for row in rows if row[1] != "t7"}
        assert list((tmp_path / "__cluster_metadata-0").glob("*.checkpoint"))
        create(client, READ_T)
        delete(client, {"principal_filter": "User:a"})
    with Broker(data_dir=tmp_path, **options) as broker, Connection(broker.bootstrap_servers) as client:
        assert describe(client) == {READ_T}


def metadata(client: Connection, *names: str) -> dict[str, int]:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names] or None, allow_auto_topic_creation=False
    )
    return {topic.name: topic.error_code for topic in client.request(request, 9).topics}


def test_each_denial_is_one_line_and_what_is_filtered_is_none(
    secured: Broker, admin: Connection, caplog: pytest.LogCaptureFixture
):
    make_topic(admin, "t")
    only_acls_decide(secured)
    with caplog.at_level(logging.INFO, "kafka_shim.authorizer"):
        assert metadata(admin) == {}
        assert not caplog.records
        assert metadata(admin, "t") == {"t": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == (
        "Principal = User:ANONYMOUS is Denied operation = DESCRIBE from host = 127.0.0.1 on resource = "
        "Topic:LITERAL:t for request = Metadata based on rule DefaultDeny"
    )


def test_denials_do_not_fill_the_log_nor_break_its_lines(
    secured: Broker, admin: Connection, caplog: pytest.LogCaptureFixture
):
    only_acls_decide(secured)
    with caplog.at_level(logging.INFO, "kafka_shim.authorizer"):
        metadata(admin, *(f"t{number}" for number in range(500)))
        assert len(caplog.records) == MAX_LINES_PER_SECOND
        secured.clock.advance("1s")
        (told,) = [record.getMessage() for record in caplog.records[MAX_LINES_PER_SECOND:]]
        assert told == f"{500 - MAX_LINES_PER_SECOND} further lines like those before were left out within 1 s"
        caplog.clear()
        metadata(admin, "a\nPrincipal = User:root is Allowed", "x" * 9000)
    first, second = [record.getMessage() for record in caplog.records]
    assert "\n" not in first
    assert "Topic:LITERAL:a\\nPrincipal" in first
    assert len(second) < 1000


def test_what_is_allowed_is_a_line_at_debug(secured: Broker, admin: Connection, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG, "kafka_shim.authorizer"):
        metadata(admin, "t")
    (line,) = [record.getMessage() for record in caplog.records]
    assert "is Allowed operation = DESCRIBE" in line
    assert line.endswith("based on rule SuperUser")


def test_an_expression_matches_only_topics_that_the_client_may_describe(secured: Broker, admin: Connection):
    for name in ("log-a", "log-b"):
        make_topic(admin, name)
    read_group: Row = (R.GROUP, "g", P.LITERAL, ANONYMOUS, "*", Op.READ, A.ALLOW)
    create(admin, read_group, (R.TOPIC, "log-b", P.LITERAL, ANONYMOUS, "*", Op.READ, A.ALLOW))
    only_acls_decide(secured)
    admin.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_regex="log-.*",
        topic_partitions=[],
    )
    assert admin.request(beat, 1).error_code == 0
    secured.clock.advance("1s")
    assert secured.state.groups.find("g").resolved["log-.*"].topics == {"log-b"}
    # The next resolution is of those that the client may describe then.
    secured.call(secured.state.authorizer.configure, {"super.users": ANONYMOUS})
    secured.call(secured.state.authorizer.change_acls, (), ())
    make_topic(admin, "log-c")
    secured.clock.advance("11s")
    assert admin.request(beat, 1).error_code == 0
    secured.clock.advance("1s")
    assert secured.state.groups.find("g").resolved["log-.*"].topics == {"log-a", "log-b", "log-c"}


def test_authorized_operations_are_those_that_the_acls_allow(secured: Broker, admin: Connection):
    make_topic(admin, "t")
    make_topic(admin, "u")
    create(admin, (R.TOPIC, "t", P.LITERAL, ANONYMOUS, "*", Op.WRITE, A.ALLOW))
    create(admin, (R.TOPIC, "u", P.LITERAL, ANONYMOUS, "*", Op.ALL, A.ALLOW))
    create(admin, (R.TOPIC, "u", P.LITERAL, ANONYMOUS, "*", Op.DELETE, A.DENY))
    only_acls_decide(secured)
    request = MetadataRequest(topics=None, include_topic_authorized_operations=True)
    told = {topic.name: topic.topic_authorized_operations for topic in admin.request(request, 9).topics}
    everything = (Op.READ, Op.WRITE, Op.CREATE, Op.DESCRIBE, Op.ALTER, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS)
    assert told == {
        "t": 1 << Op.WRITE | 1 << Op.DESCRIBE,
        "u": sum(1 << operation for operation in everything),
    }


def test_many_acls_let_other_requests_through() -> None:
    """A request that creates, finds or deletes thousands lets the loop run between slices, and changes all at once."""
    with Broker(authorizer_class_name=AUTHORIZER, super_users=ANONYMOUS) as broker:
        stored = broker.state.acls
        assert stored is not None
        acls = [Acl(2, f"t{number}", 3, "User:a", "*", 3, 3) for number in range(4 * SLICE)]
        everything = AclFilter(DescribeAclsRequest(**ANY, **NAMED))

        async def turns_during(work: Awaitable[Any]) -> tuple[int, set[int], Any]:
            """How often something else ran, what it saw, and the result."""
            task = asyncio.ensure_future(work)
            turns, seen = 0, set()
            while not task.done():
                await asyncio.sleep(0)
                turns += 1
                seen.add(len(stored._ids))
            return turns, seen, task.result()

        def run(work: Callable[[], Awaitable[Any]]) -> tuple[int, set[int], Any]:
            async def on_loop() -> tuple[int, set[int], Any]:
                return await turns_during(work())

            assert broker._loop is not None
            return asyncio.run_coroutine_threadsafe(on_loop(), broker._loop).result(timeout=60)

        turns, seen, results = run(lambda: stored.create(acls))
        assert (seen <= {0, len(acls)}, results) == (True, [None] * len(acls))
        assert turns >= 4
        turns, seen, found = run(lambda: stored.find(everything))
        assert (seen, len(found)) == ({len(acls)}, len(acls))
        assert turns >= 4
        turns, seen, ((*deleted,),) = run(lambda: stored.delete([everything]))
        assert (seen <= {0, len(acls)}, len(deleted)) == (True, len(acls))
        assert 4 <= turns < SLICE, "a turn for each slice, not for each ACL"


def test_two_requests_at_once_store_and_delete_an_acl_once() -> None:
    with Broker(authorizer_class_name=AUTHORIZER, super_users=ANONYMOUS) as broker:
        stored = broker.state.acls
        assert stored is not None
        acls = [Acl(2, f"t{number}", 3, "User:a", "*", 3, 3) for number in range(2 * SLICE)]
        everything = AclFilter(DescribeAclsRequest(**ANY, **NAMED))

        def run(*works: Callable[[], Awaitable[Any]]) -> None:
            async def on_loop() -> None:
                await asyncio.gather(*(work() for work in works))

            assert broker._loop is not None
            asyncio.run_coroutine_threadsafe(on_loop(), broker._loop).result(timeout=60)

        run(lambda: stored.create(acls), lambda: stored.create(acls))
        assert broker.call(lambda: len(broker.state.metadata.image.acls)) == len(acls)
        run(lambda: stored.delete([everything]), lambda: stored.delete([everything]))
        assert broker.call(lambda: len(broker.state.metadata.image.acls)) == 0


def calls_of_turns(work: Awaitable[Any], longest: list[int]) -> Coroutine[Any, Any, None]:
    """Counts the calls in each turn of the event loop while `work` is done, of Python and of C. They grow with what a
    turn does as its time does, on any machine."""

    async def run() -> None:
        calls = 0

        def count(frame: FrameType, event: str, argument: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        task = asyncio.ensure_future(work)
        sys.setprofile(count)
        try:
            while not task.done():
                await asyncio.sleep(0)
                longest[0] = max(longest[0], calls)
                calls = 0
        finally:
            sys.setprofile(None)
        task.result()

    return run()


def test_no_turn_of_a_change_of_many_acls_is_long() -> None:
    """A change of ten thousand ACLs was one turn of 76 ms: its records were encoded and the index was changed at once.
    Its longest turn now applies the records, which is two calls for each."""
    count = 20 * SLICE
    with Broker(authorizer_class_name=AUTHORIZER, super_users=ANONYMOUS) as broker:
        stored, authorizer = broker.state.acls, broker.state.authorizer
        assert stored is not None
        acls = [Acl(2, f"t{number}", 3, f"User:{number % 100}", "*", 3, 3) for number in range(count)]
        everything = AclFilter(DescribeAclsRequest(**ANY, **NAMED))

        def run(work: Callable[[], Awaitable[Any]]) -> int:
            longest = [0]

            async def on_loop() -> None:
                await calls_of_turns(work(), longest)

            assert broker._loop is not None
            asyncio.run_coroutine_threadsafe(on_loop(), broker._loop).result(timeout=120)
            return longest[0]

        assert run(lambda: stored.create(acls)) < 4 * count
        assert sum(1 for _ in authorizer.index.of_type(R.TOPIC)) == count
        assert run(lambda: stored.delete([everything])) < 4 * count
        assert sum(1 for _ in authorizer.index.of_type(R.TOPIC)) == 0


def test_what_is_asked_between_slices_is_answered_by_the_old_acls_or_the_new() -> None:
    with Broker(authorizer_class_name=AUTHORIZER) as broker:
        stored, authorizer = broker.state.acls, broker.state.authorizer
        assert stored is not None
        count = 3 * SLICE
        acls = [Acl(R.TOPIC, f"t{number}", P.PREFIXED, "User:a", "*", Op.READ, A.ALLOW) for number in range(count)]
        names = ("t0", f"t{count - 1}")
        everything = AclFilter(DescribeAclsRequest(**ANY, **NAMED))

        async def verdicts_during(work: Awaitable[Any]) -> list[int]:
            task, seen = asyncio.ensure_future(work), []
            while not task.done():
                await asyncio.sleep(0)
                allowed = len(authorizer.allowed("User:a", "h", Op.READ, R.TOPIC, names))
                in_image = len(broker.state.metadata.image.acls)
                assert (allowed, in_image) in {(0, 0), (2, count)}
                seen.append(allowed)
            task.result()
            return seen

        def run(work: Callable[[], Awaitable[Any]]) -> list[int]:
            async def on_loop() -> list[int]:
                return await verdicts_during(work())

            assert broker._loop is not None
            return asyncio.run_coroutine_threadsafe(on_loop(), broker._loop).result(timeout=60)

        created = run(lambda: stored.create(acls))
        assert created == sorted(created)
        assert created[-1] == 2
        deleted = run(lambda: stored.delete([everything]))
        assert deleted == sorted(deleted, reverse=True)
        assert deleted[-1] == 0
