"""What ShareFetch and ShareAcknowledge have in common: the checks of the request, and the acknowledgements in it
(KafkaApis.handleAcknowledgements)."""

from __future__ import annotations

from types import CoroutineType

from kafka_shim.api.partitions import OTHER_LEADER, leader_endpoint, name_leader
from kafka_shim.authorization import authorized, require
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.features import SHARE_VERSION
from kafka_shim.outcome import Outcome
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.share.record_state import AcknowledgeType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine, Sequence
    from typing import Any, Protocol, TypeVar

    from kafka_shim.broker import Broker
    from kafka_shim.context import Context
    from kafka_shim.outcome import Flush, Flushes
    from kafka_shim.share.share_partition_acknowledge import AcknowledgementBatch
    from kafka_shim.share.share_partitions import SharePartitions
    from kafka_shim.share.share_sessions import TopicIdPartition
    from kafka_shim.turns import Steps

    T = TypeVar("T")

    class Request(Protocol):
        """ShareFetchRequest or ShareAcknowledgeRequest."""

        group_id: str | None
        member_id: str | None
        is_renew_ack: bool
        topics: list[Any]


FIRST_WITH_RENEWAL = 2
MAX_MEMBER_ID_CHARS = 36
# Entries of a request that are looked through in one step.
ENTRIES_PER_STEP = 256


class Acknowledged:
    """The outcome of acknowledgements: an error, or None, for each partition, and the fsyncs that must finish before
    the response."""

    __slots__ = ("errors", "flushes")

    def __init__(self) -> None:
        self.errors: dict[TopicIdPartition, KafkaError | None] = {}
        self.flushes: list[Flush] = []


def shares_of(broker: Broker) -> SharePartitions:
    """Returns the broker's share partitions; the first request makes them, so that start-up does not pay for it."""
    if broker.share_partitions is None:
        from kafka_shim.share.share_partitions import SharePartitions

        broker.share_partitions = SharePartitions(
            clock=broker.clock,
            most_sessions=broker.config.group_share_max_share_sessions,
            logs=broker.logs,
            metadata=broker.metadata,
            persister=broker.share_state,
        )
        broker.share_partitions.start()
    return broker.share_partitions


def check_member(context: Context, request: Request) -> tuple[str, str]:
    """Returns (group id, member id). Raises UNSUPPORTED_VERSION if share groups are disabled, INVALID_REQUEST,
    GROUP_AUTHORIZATION_FAILED."""
    broker = context.broker
    if broker.metadata.feature(SHARE_VERSION) < 1:
        shares_of(broker).clear()
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if request.group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    member_id = request.member_id
    if not member_id or len(member_id) > MAX_MEMBER_ID_CHARS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return request.group_id, member_id


def watch_connection(context: Context) -> None:
    """The share session ends with the connection."""
    context.session.on_closed = shares_of(context.broker).sessions.connection_closed


def readable_topics(context: Context, names: set[str]) -> Collection[str]:
    """Returns the topics that the client may read."""
    return authorized(context, AclOperation.READ, ResourceType.TOPIC, names)


def acknowledge(
    context: Context, request: Request, group_id: str, member_id: str, readable: Collection[str]
) -> Steps[Acknowledged]:
    """Carry out the acknowledgements of a request, those of a partition in each step."""
    broker = context.broker
    done = Acknowledged()
    empty: list[TopicIdPartition] = []
    is_any = False
    entries = yield from _entries(request)
    for key, asked in entries.items():
        topic_id, partition = key
        batches = [
            (batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for batch in asked.acknowledgement_batches or ()
        ]
        try:
            _check(context, request, _name(broker, topic_id), partition, batches, readable)
            if batches:
                is_any = True
                done.errors[key] = None
                done.flushes += shares_of(broker).acknowledge((group_id, *key), member_id, batches)
            else:
                empty.append(key)
        except KafkaError as error:
            done.errors[key] = error.without_frames()
        yield
    if is_any:
        done.errors.update(dict.fromkeys(empty))
    return done


def _entries(request: Request) -> Steps[dict[TopicIdPartition, Any]]:
    """Returns the request's entries. As in Kafka, the later of two of one partition replaces the earlier, also if its
    topic is named twice."""
    entries: dict[TopicIdPartition, Any] = {}
    count = 0
    for topic in request.topics:
        for asked in topic.partitions:
            entries[topic.topic_id, asked.partition_index] = asked
            count += 1
            if count % ENTRIES_PER_STEP == 0:
                yield
    return entries


def end_session(
    context: Context, group_id: str, member_id: str, outcome: Outcome[T]
) -> Outcome[T] | Coroutine[Any, Any, Outcome[T]]:
    """End the session of a member, whose last response is in `outcome`."""
    flushes = shares_of(context.broker).end_session(group_id, member_id)
    if isinstance(flushes, CoroutineType):
        return _when_released(outcome, flushes)
    return Outcome(outcome.response, [*outcome.flushes, *flushes])  # type: ignore[misc]


async def _when_released(outcome: Outcome[T], released: Coroutine[Any, Any, Flushes]) -> Outcome[T]:
    return Outcome(outcome.response, [*outcome.flushes, *await released])


def _check(
    context: Context,
    request: Request,
    name: str | None,
    partition: int,
    batches: Sequence[AcknowledgementBatch],
    readable: Collection[str],
) -> None:
    """Raises KafkaError in the order of Kafka's checks."""
    if name is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    _check_batches(request, batches, supports_renewal=context.api_version >= FIRST_WITH_RENEWAL)
    if name not in readable:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if context.broker.metadata.image.partition(name, partition) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _check_batches(request: Request, batches: Sequence[AcknowledgementBatch], *, supports_renewal: bool) -> None:
    """Raises INVALID_REQUEST (KafkaApis.validateAcknowledgementBatches)."""
    greatest = AcknowledgeType.RENEW if supports_renewal else AcknowledgeType.REJECT
    previous_offset = -1
    for first_offset, last_offset, types in batches:
        if first_offset > last_offset or first_offset < previous_offset:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if not types or (len(types) > 1 and last_offset - first_offset != len(types) - 1):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if min(types) < 0 or max(types) > greatest:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if not request.is_renew_ack and AcknowledgeType.RENEW in types:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        previous_offset = last_offset


def _name(broker: Broker, topic_id: bytes) -> str | None:
    topic = broker.metadata.image.topics_by_id.get(topic_id)
    return None if topic is None else topic.name


def tell_leader(context: Context, response: Any, topic_id: bytes, answer: Any, endpoint: type[Any]) -> None:
    """Name the partition's leader to a client that was told NOT_LEADER_OR_FOLLOWER: the next fetch from it reads the
    stored state again."""
    if answer.error_code not in OTHER_LEADER:
        return
    leader_id = name_leader(context.broker, topic_id, answer)
    if leader_id >= 0 and not response.node_endpoints:
        response.node_endpoints.append(leader_endpoint(context, leader_id, endpoint))
