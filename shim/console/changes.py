"""What people change by the console, where it is allowed to: records, topics, their options, groups' offsets and
transactions. Each is asked by POST, of the broker as the person who is logged in."""

from __future__ import annotations

import base64
import binascii
import logging

from kafka_shim.client.configs import TOPIC, alter_configs
from kafka_shim.client.offset_reset import PLACES, ResetError, Target, plan_reset
from kafka_shim.client.offsets import commit_offsets
from kafka_shim.client.topics import create_topic, delete_topics
from kafka_shim.client.transactions import force_terminate
from kafka_shim.client.writing import Producer
from kafka_shim.console.parameters import INT64_MAX, BadRequestError
from kafka_shim.plurals import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kafka_shim.client.cluster import Cluster as Client
    from kafka_shim.client.cluster import TopicPartition
    from kafka_shim.console.parameters import Body
    from kafka_shim.console.sessions import Session

    Change = Callable[[Client, Body], tuple[str, dict[str, Any]]]

INT32_MAX = (1 << 31) - 1
MOST_MOVES = 2000

logger = logging.getLogger(__name__)


def make(change: Change, session: Session, body: Body) -> dict[str, Any]:
    """Make a change, and log who made it. Over a connection of its own, so that nothing is sent twice. Raises
    BadRequestError, RequestError, WireClientError."""
    try:
        with session.cluster.client() as client:
            what, result = change(client, body)
    finally:
        session.cluster.forget()
    if what:
        logger.info("%s %s by the console", repr(session.user) if session.user else "somebody", what)
    return result


def record(client: Client, body: Body) -> tuple[str, dict[str, Any]]:
    """Write one record to a topic that exists: where its key belongs, or to `partition`. Raises BadRequestError for a
    partition that does not exist."""
    topic = body.text("topic")
    partition = body.optional_number("partition", 0, INT32_MAX)
    key, value = _content(body.given("key"), "key"), _content(body.given("value"), "value")
    headers = _headers(body.given("headers"))
    known = client.partitions(topic)
    if partition is not None and partition not in known:
        raise BadRequestError(f"{topic} has no partition {partition}")
    producer = Producer(client)
    producer.send(topic, value, key, headers=headers, partition=partition)
    (written,) = producer.flush()
    result = {"topic": topic, "partition": written.partition, "offset": written.offset}
    return f"wrote a record to {topic}-{written.partition} at offset {written.offset}", result


def new_topic(client: Client, body: Body) -> tuple[str, dict[str, Any]]:
    """Make a topic. Without `partitions` and `replicas` it has as many as the broker gives it."""
    name = body.text("name")
    partitions = body.optional_number("partitions", 1, INT32_MAX)
    replicas = body.optional_number("replicas", 1, (1 << 15) - 1)
    create_topic(
        client,
        name,
        partitions=-1 if partitions is None else partitions,
        replication_factor=-1 if replicas is None else replicas,
        configs=body.texts("configs"),
    )
    return f"made topic {name!r}", {"name": name}


def deleted_topic(client: Client, body: Body) -> tuple[str, dict[str, Any]]:
    """Delete a topic with its records; `confirm` is its name."""
    name = body.confirmed("name")
    delete_topics(client, [name])
    return f"deleted topic {name!r}", {"name": name}


def topic_configs(client: Client, body: Body) -> tuple[str, dict[str, Any]]:
    """Set options of a topic, and take back those of `remove`. Raises BadRequestError if there are none of both."""
    name, added, removed = body.text("name"), body.texts("set"), body.names("remove")
    if not (added or removed):
        raise BadRequestError("set or remove names an option")
    alter_configs(client.any(), TOPIC, name, added, removed)
    return f"changed options of topic {name!r}: {[*added, *removed]}", {"name": name}


def offsets(client: Client, body: Body) -> tuple[str, dict[str, Any]]:
    """Tell where the offsets of a group without members would go, and with `confirm`, its name, move them there.
    Raises ResetError if there are too many."""
    name = body.text("name")
    target = _target(body)
    partitions: list[TopicPartition] = []
    if topic := body.text("topic", ""):
        partitions = [(topic, each) for each in client.partitions(topic)]
    moves = plan_reset(client, name, target, partitions)
    if len(moves) > MOST_MOVES:
        raise ResetError(f"{len(moves)} partitions are too many for the console: name a topic")
    is_made = body.given("confirm") is not None
    if is_made:
        body.confirmed("name")
        commit_offsets(client, name, {(one.topic, one.partition): one.offset for one in moves})
    result = {
        "name": name,
        "isMade": is_made,
        "moves": [
            {
                "topic": one.topic,
                "partition": one.partition,
                "committed": one.committed,
                "wanted": one.wanted,
                "offset": one.offset,
            }
            for one in moves
        ],
    }
    return f"moved {counted(len(moves), 'offset')} of group {name!r}" if is_made else "", result


def ended_transaction(client: Client, body: Body) -> tuple[str, dict[str, Any]]:
    """Abort what a transactional id has open, and fence its producer; `confirm` is the id."""
    name = body.confirmed("name")
    force_terminate(client, name)
    return f"ended the transaction of {name!r} by force", {"name": name}


CHANGES: dict[str, Change] = {
    "/api/record/new": record,
    "/api/topic/new": new_topic,
    "/api/topic/delete": deleted_topic,
    "/api/topic/configs": topic_configs,
    "/api/group/offsets": offsets,
    "/api/transaction/end": ended_transaction,
}


def _target(body: Body) -> Target:
    to = body.choice("to", (*PLACES, "offset", "shift", "time"))
    if to in PLACES:
        return Target(place=to)
    if to == "offset":
        return Target(offset=body.number("value", 0, INT64_MAX))
    if to == "time":
        return Target(timestamp_ms=body.number("value", 0, INT64_MAX))
    return Target(shift_by=body.number("value", -INT64_MAX, INT64_MAX))


def _content(value: Any, name: str) -> bytes | None:
    """Text, {"base64": ...}, or null."""
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, dict) and list(value) == ["base64"]:
            return base64.b64decode(value["base64"], validate=True)
    except (UnicodeEncodeError, binascii.Error, TypeError, ValueError):
        pass
    raise BadRequestError(f'{name} is text, {{"base64": ...}} or null')


def _headers(pairs: Any) -> list[tuple[str, bytes | None]]:
    """[[name, value], ...]; a name may come twice."""
    if pairs is None:
        return []
    if not (isinstance(pairs, list) and all(isinstance(one, list) and len(one) == 2 for one in pairs)):
        raise BadRequestError("headers is a list of [name, value]")
    for name, _ in pairs:
        if not (isinstance(name, str) and _content(name, "a header's name")):
            raise BadRequestError("a header has a name")
    return [(name, _content(value, "a header's value")) for name, value in pairs]
