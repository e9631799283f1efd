"""OffsetCommit (key 8), versions 2-10.

Stores offsets for a member, or for any client if the group has no members. Unknown partitions have their own error
code. v2-4 may carry a retention time. v6 carries the leader epoch. v7 static members (KIP-345). v8 is flexible. v9 is
the first that members of the consumer protocol may use, and may return GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH. v10
names topics by id: UNKNOWN_TOPIC_ID.
"""

from __future__ import annotations

from itertools import chain

from kafka_shim.api.plain_commits import not_committed, prepare
from kafka_shim.authorization import authorized, authorized_in_steps, require
from kafka_shim.cext import segment as cext_segment
from kafka_shim.cext.plain_commits import PlainCommit
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.large_offsets import merge, parts
from kafka_shim.group.offset_rules import PLAIN_COMMITS
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestTopic
from kafka_shim.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafka_shim.security.acl import GROUP, READ, TOPIC
from kafka_shim.storage.producers import CACHED_BATCHES
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from kafka_shim.context import Context
    from kafka_shim.metadata.image import Image
    from kafka_shim.protocol.messages.offset_commit_request import OffsetCommitRequestPartition
    from kafka_shim.turns import Steps

    Answer = OffsetCommitResponse | Outcome[OffsetCommitResponse]

KEY, MIN, MAX = 8, 2, 10
REQUEST, RESPONSE = OffsetCommitRequest, OffsetCommitResponse
PLAIN = PlainCommit(cext_segment, CACHED_BATCHES, prepare, not_committed)

FIRST_WITH_IDS = 10
PARTITIONS_PER_STEP = 64


def handle(context: Context, request: OffsetCommitRequest) -> Answer | Steps[Answer]:
    require(context, READ, GROUP, request.group_id)
    if context.is_large:
        return _in_steps(context, request)
    by_id = context.api_version >= FIRST_WITH_IDS
    broker = context.broker
    image = broker.metadata.image
    if broker.authorizer is None and PLAIN_COMMITS.are_known(
        request.topics, image.topics_by_id if by_id else image.topics, by_id
    ):
        return _commit(context, request, [])
    if by_id:
        for asked in request.topics:
            named = image.topics_by_id.get(bytes(asked.topic_id))
            asked.name = "" if named is None else named.name
    names = {asked.name: None for asked in request.topics if asked.name or not by_id}
    allowed = authorized(context, READ, TOPIC, names)
    refused, request.topics = _split(image, request.topics, by_id, allowed)
    return _commit(context, request, refused)


def _in_steps(context: Context, request: OffsetCommitRequest) -> Steps[Answer]:
    """A request with thousands of entries. What exists of them is one commit, whole or not at all."""
    by_id = context.api_version >= FIRST_WITH_IDS
    image = context.broker.metadata.image
    for asked in request.topics:
        if by_id:
            named = image.topics_by_id.get(bytes(asked.topic_id))
            asked.name = "" if named is None else named.name
        yield
    names = (asked.name for asked in request.topics if asked.name or not by_id)
    allowed = yield from authorized_in_steps(context, READ, TOPIC, names)
    refused: list[OffsetCommitResponseTopic] = []
    known: list[OffsetCommitRequestTopic] = []
    for asked in request.topics:
        entry: OffsetCommitResponseTopic | None = None
        rest: OffsetCommitRequestTopic | None = None
        for start in range(0, len(asked.partitions) or 1, PARTITIONS_PER_STEP):
            some = OffsetCommitRequestTopic(
                name=asked.name,
                topic_id=asked.topic_id,
                partitions=asked.partitions[start : start + PARTITIONS_PER_STEP],
            )
            missing, found = _split(image, (some,), by_id, allowed)
            for one in missing:
                if entry is None:
                    refused.append(entry := one)
                else:
                    entry.partitions += one.partitions
            for one_known in found:
                if rest is None:
                    known.append(rest := one_known)
                else:
                    rest.partitions += one_known.partitions
            yield
    request.topics = known
    if not known:
        response = OffsetCommitResponse()
        yield from _put_after(refused, response)
        return response
    try:
        outcome = yield from context.broker.groups.offsets.commit_in_steps(request, context.api_version)
    except KafkaError as error:
        response = OffsetCommitResponse()
        for _, topic, start in parts(request):
            merge(response, OffsetCommitResponse(topics=[_refusal(topic, topic.partitions, error.code)]), start)
            yield
        outcome = Outcome(response)
    yield from _put_after(refused, outcome.response)
    return outcome


def _commit(context: Context, request: OffsetCommitRequest, refused: list[OffsetCommitResponseTopic]) -> Answer:
    """Commit the offsets of the topics that are left in the request."""
    if not request.topics:
        response = OffsetCommitResponse()
        at_once(_put_after(refused, response))
        return response
    try:
        if context.done is not None:
            raise context.done
        outcome = context.broker.groups.offsets.commit(request, context.api_version)
    except KafkaError as error:  # the group's error applies to the topics that exist
        topics = [_refusal(topic, topic.partitions, error.code) for topic in request.topics]
        outcome = Outcome(OffsetCommitResponse(topics=topics))
    if refused:
        at_once(_put_after(refused, outcome.response))
    return outcome


def _put_after(refused: list[OffsetCommitResponseTopic], response: OffsetCommitResponse) -> Steps[None]:
    """Put the topics of the response after the refused ones, and list each once. Without refused ones, topics are
    listed as often as the request named them (OffsetCommitResponse.Builder.merge)."""
    if not refused:
        return
    listed: dict[tuple[str, bytes], OffsetCommitResponseTopic] = {}
    for topic in chain(refused, response.topics):
        same = listed.setdefault((topic.name, topic.topic_id), topic)
        if same is not topic:
            same.partitions += topic.partitions
        yield
    response.topics = list(listed.values())


def _split(
    image: Image, topics: Iterable[OffsetCommitRequestTopic], by_id: bool, allowed: Collection[str]
) -> tuple[list[OffsetCommitResponseTopic], list[OffsetCommitRequestTopic]]:
    """Returns (entries for topics that are not authorised or do not exist, the remaining topics)."""
    refused: list[OffsetCommitResponseTopic] = []
    known: list[OffsetCommitRequestTopic] = []
    for topic in topics:
        found = image.topics_by_id.get(bytes(topic.topic_id)) if by_id else image.topics.get(topic.name)
        if found is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if not by_id and topic.name not in allowed:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused.append(_refusal(topic, topic.partitions, code))
            continue
        if found.name not in allowed:
            refused.append(_refusal(topic, topic.partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        topic.name, topic.topic_id = found.name, found.topic_id
        count = len(found.partitions)
        missing = [each for each in topic.partitions if not 0 <= each.partition_index < count]
        if missing:
            refused.append(_refusal(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            topic.partitions = [each for each in topic.partitions if 0 <= each.partition_index < count]
        if topic.partitions:
            known.append(topic)
    return refused, known


def _refusal(
    topic: OffsetCommitRequestTopic, partitions: Iterable[OffsetCommitRequestPartition], code: ErrorCode
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code) for each in partitions
        ],
    )
