"""Authorisation in turns, and filters of ACLs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from kafka_shim.api import APIS, k31_delete_acls
from kafka_shim.authorization import NAMES_PER_STEP, authorized_in_steps
from kafka_shim.embedded import Broker
from kafka_shim.errors import KafkaError
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.security.acl_binding import AclFilter
from kafka_shim.security.acl_control import SLICE
from kafka_shim.targets.requests import make
from kafka_shim.tests.turns.harness import (
    begun,
    context_of,
    steps_of,
)
from kafka_shim.turns import at_once
from kafka_shim.wire_client import Connection


def test_many_filters_are_looked_up_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of few ACLs, but for each of thousands of filters: the loop was held for all of them."""
    looks = [0]
    matches = AclFilter.matches
    monkeypatch.setattr(
        AclFilter, "matches", lambda self, acl: (looks.__setitem__(0, looks[0] + 1), matches(self, acl))[1]
    )
    acl = {
        "resource_type": 2,
        "resource_pattern_type": 3,
        "principal": "User:a",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    filters = [
        {"resource_type_filter": 2, "resource_name_filter": f"n{number}", "operation": 1, "permission_type": 1}
        for number in range(300)
    ]
    options = {
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": "User:ANONYMOUS",
    }

    async def run(state: Any) -> list[int]:
        request = make("DeleteAcls", filters=filters)
        task = asyncio.ensure_future(k31_delete_acls.handle(context_of(state, request, 3), request))
        turns = []
        while not task.done():
            before = looks[0]
            await asyncio.sleep(0)
            turns.append(looks[0] - before)
        assert len((await task).filter_results) == 300
        return turns

    with Broker(**options) as running, Connection(running.bootstrap_servers, timeout_s=60) as client:  # type: ignore[arg-type]
        creations = [{**acl, "resource_name": f"t{number}"} for number in range(20)]
        assert {one.error_code for one in client.request(make("CreateAcls", creations=creations), 3).results} == {0}
        looks[0] = 0
        turns = running.call(run, running.state)
    assert sum(turns) == 20 * 300
    assert max(turns) <= SLICE


class Denying:
    """An authorizer that allows `even` names, and notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def allowed(self, principal: str, host: str, operation: Any, kind: Any, names: Any) -> set[str]:
        self.asked += names
        return {name for name in names if name[1:].isdigit() and not int(name[1:]) % 2}


@pytest.mark.parametrize("repeats", [[0, 0, 1, 1], [*range(3 * NAMES_PER_STEP), *range(3 * NAMES_PER_STEP)]])
def test_a_name_that_is_sent_again_is_asked_for_once(broker: Broker, repeats: list[int]) -> None:
    authorizer = Denying()
    names = [f"n{number}" for number in repeats]

    def run(state: Any) -> Any:
        state.authorizer = authorizer
        try:
            context = context_of(state, make("Metadata"), 12)
            return at_once(authorized_in_steps(context, AclOperation.READ, ResourceType.TOPIC, iter(names)))
        finally:
            state.authorizer = None

    assert set(broker.call(run, broker.state)) == {name for name in names if not int(name[1:]) % 2}
    assert authorizer.asked == list(dict.fromkeys(names))


def committed(names: list[str]) -> Any:
    rows = [{"name": name, "partitions": [{"partition_index": 0, "committed_offset": 1}]} for name in names]
    return make("OffsetCommit", group_id="n0", topics=rows)


def fetched(names: list[str]) -> Any:
    rows = [{"name": name, "partition_indexes": [0]} for name in names]
    return make("OffsetFetch", groups=[{"group_id": "n0", "topics": rows}])


def described(names: list[str]) -> Any:
    rows = [{"topic_name": name, "partitions": [0]} for name in names]
    return make("DescribeShareGroupOffsets", groups=[{"group_id": "n0", "topics": rows}])


@pytest.mark.parametrize(("request_", "version"), [(committed, 8), (fetched, 8), (described, 1)])
def test_topics_that_a_request_names_twice_are_asked_for_once(
    broker: Broker, request_: Callable[[list[str]], Any], version: int
) -> None:
    authorizer = Denying()
    names = [f"n{number}" for number in (1, 2, 1, 2, 3)]

    def run(state: Any) -> None:
        state.authorizer = authorizer
        try:
            steps_of(begun(state, request_(names), version, 0))
        finally:
            state.authorizer = None

    broker.call(run, broker.state)
    assert authorizer.asked == ["n0", "n1", "n2", "n3"]


PARTITIONS = 300


def lag_of(name: str) -> Any:
    rows = [{"topic_name": name, "partitions": list(range(PARTITIONS))}]
    return make("DescribeShareGroupOffsets", groups=[{"group_id": "n0", "topics": rows}])


def end_of_epochs(name: str) -> Any:
    parts = [{"partition": number, "leader_epoch": 0} for number in range(PARTITIONS)]
    return make("OffsetForLeaderEpoch", topics=[{"topic": name, "partitions": parts}])


@pytest.mark.parametrize("name", ["n1", "n2"], ids=["denied", "unknown"])
@pytest.mark.parametrize(("request_", "version"), [(lag_of, 1), (end_of_epochs, 4)])
def test_partitions_of_a_topic_that_is_not_shown_are_refused_in_steps(
    broker: Broker, request_: Callable[[str], Any], version: int, name: str
) -> None:
    def run(state: Any) -> int:
        state.authorizer = Denying()
        try:
            return steps_of(begun(state, request_(name), version, 0))[1]
        finally:
            state.authorizer = None

    assert broker.call(run, broker.state) >= PARTITIONS


class Name(str):
    """A name that counts how often one is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)


def altered_starts(names: list[str]) -> Any:
    parts = [{"partition_index": 0, "start_offset": 0}]
    return make(
        "AlterShareGroupOffsets", group_id="g", topics=[{"topic_name": name, "partitions": parts} for name in names]
    )


def deleted_starts(names: list[str]) -> Any:
    return make("DeleteShareGroupOffsets", group_id="g", topics=[{"topic_name": name} for name in names])


def more_partitions(names: list[str]) -> Any:
    return make("CreatePartitions", timeout_ms=1000, topics=[{"name": name, "count": 2} for name in names])


@pytest.mark.parametrize(("request_", "version"), [(altered_starts, 0), (deleted_starts, 0), (more_partitions, 3)])
def test_names_are_looked_up_without_a_search(
    broker: Broker, request_: Callable[[list[str]], Any], version: int
) -> None:
    """Where everything is allowed, the names of the request were searched for each of them: minutes for 200,000."""

    async def run(state: Any) -> None:
        api = next(api for api in APIS if api.key == request_([]).API_KEY)
        api.load()
        request = request_([Name(f"n{number}") for number in range(PARTITIONS)])
        Name.compared = 0
        with suppress(KafkaError):  # there is no group
            await api.handle(context_of(state, request, version), request)

    broker.call(run, broker.state)
    assert Name.compared < 10 * PARTITIONS
