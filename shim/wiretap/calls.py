"""The requests of a capture with their responses, and the names of the topics in them."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

from kafka_shim.cext.wire import WireError
from kafka_shim.wiretap.capture import Kind
from kafka_shim.wiretap.frames import Request, build_request, parse_request, parse_response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from kafka_shim.wiretap.capture import Entry

METADATA, JOIN_GROUP, CREATE_TOPICS = 3, 11, 19


@dataclass
class Call:
    """A request and its response, with their indexes in the capture."""

    sent: int
    answered: int
    request: Request
    response: Any
    identity: bytes


def calls_of(entries: list[Entry], owed: Mapping[int, int] | None = None) -> Iterator[Call]:
    """Yields every request that has a response, in the order of the responses. `owed` is as in ``arranged``."""
    waiting: dict[int, deque[tuple[int, Request]]] = defaultdict(deque)
    before = dict(owed or {})
    for number, entry in enumerate(entries):
        if entry.kind == Kind.REQUEST:
            try:
                request = parse_request(entry.frame)
            except WireError:
                continue  # the broker closes the connection
            if request.is_answered:
                waiting[entry.connection].append((number, request))
        elif entry.kind == Kind.RESPONSE and before.get(entry.connection, 0):
            before[entry.connection] -= 1
        elif entry.kind == Kind.RESPONSE and waiting[entry.connection]:
            sent, request = waiting[entry.connection].popleft()
            yield Call(sent, number, request, parse_response(request, entry.frame), identity(entries[sent].frame))


def identity(frame: bytes) -> bytes:
    """Returns the part of a request that a retry repeats: all but the correlation id and, in JoinGroup, the reason."""
    if int.from_bytes(frame[:2], "big") == JOIN_GROUP:
        request = parse_request(frame)
        if request.message is not None:
            request.message.reason = None
            frame = build_request(request)
    return frame[:4] + frame[8:]


def topic_names(calls: list[Call]) -> dict[bytes, str]:
    """Returns the topic names by topic id from Metadata and CreateTopics responses. A producer may use the name where a
    consumer uses the id.
    """
    return {
        bytes(topic.topic_id): topic.name
        for call in calls
        if call.response is not None and call.request.api_key in (METADATA, CREATE_TOPICS)
        for topic in call.response.topics
        if topic.name and any(topic.topic_id)
    }


def topic_name(topic: Any, names: Mapping[bytes, str]) -> str | bytes:
    """Returns the name of a request's or a response's topic, or its id if no name is known for it."""
    topic_id = bytes(getattr(topic, "topic_id", b""))
    name = getattr(topic, "name", "") or getattr(topic, "topic", "")
    return name or names.get(topic_id, topic_id)
