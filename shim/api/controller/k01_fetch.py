"""Fetch (key 1), versions 4-18, of the controller: records of the metadata log, for observers of the quorum.

One partition of `__cluster_metadata` by its topic id, without fetch sessions (Kafka: KafkaRaftClient). A request from
another epoch than the leader's is FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH. An offset and epoch that are not in the
log are answered with the diverging epoch, an offset that the log no longer has with the newest snapshot. Without new
records the answer waits for `max_wait_ms`. v18: the client's high watermark; a newer one is told at once.
"""

from __future__ import annotations

from kafka_shim.api.controller.quorum import METADATA_TOPIC_ID, leader_fault
from kafka_shim.errors import ErrorCode
from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC
from kafka_shim.protocol.messages.fetch_request import FetchPartition, FetchRequest
from kafka_shim.protocol.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from kafka_shim.waiters import Waiter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from kafka_shim.context import Context

KEY, MIN, MAX = 1, 4, 18
REQUEST, RESPONSE = FetchRequest, FetchResponse
ABANDONABLE = True

FIRST_WITH_ENDPOINTS = 17
# More than this is read from the file only as the client takes it.
COPY_BYTES = 65536


def handle(context: Context, request: FetchRequest) -> FetchResponse | Coroutine[Any, Any, FetchResponse]:
    if request.cluster_id not in (None, context.broker.cluster_id):
        return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    topics = request.topics
    if len(topics) != 1 or topics[0].topic_id != METADATA_TOPIC_ID or len(topics[0].partitions) != 1:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    asked = topics[0].partitions[0]
    if asked.partition != 0:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    if (
        min(request.max_wait_ms, asked.fetch_offset, asked.last_fetched_epoch) < 0
        or asked.last_fetched_epoch > asked.current_leader_epoch
    ):
        partition = _partition(context)
        partition.error_code, partition.high_watermark = ErrorCode.INVALID_REQUEST, -1
        return _response(context, partition)
    partition = _read(context, asked, request.max_bytes)
    if request.max_wait_ms == 0 or _has_news(partition, asked):
        return _response(context, partition)
    return _wait(context, request, asked)


async def _wait(context: Context, request: FetchRequest, asked: FetchPartition) -> FetchResponse:
    broker = context.broker
    waiter = Waiter(broker.clock)
    log = broker.metadata.partition_log
    deadline_ms = broker.clock.monotonic_ms() + request.max_wait_ms
    log.subscribe(waiter.wake)
    broker.parked.add(waiter)
    try:
        while True:
            partition = _read(context, asked, request.max_bytes)
            left_ms = deadline_ms - broker.clock.monotonic_ms()
            if _has_news(partition, asked) or left_ms <= 0 or broker.stopping:
                return _response(context, partition)
            await waiter.wait(left_ms)
    finally:
        broker.parked.discard(waiter)
        log.unsubscribe(waiter.wake)


def _read(context: Context, asked: FetchPartition, max_bytes: int) -> PartitionData:
    partition = _partition(context)
    if code := leader_fault(context, asked.current_leader_epoch):
        partition.error_code, partition.high_watermark = code, -1
        return partition
    metadata = context.broker.metadata
    log = metadata.partition_log
    offset, epoch = asked.fetch_offset, asked.last_fetched_epoch
    newest = metadata.newest_snapshot()
    if newest is not None and (offset == 0 or offset < log.log_start_offset):
        partition.snapshot_id = SnapshotId(end_offset=newest[0], epoch=newest[1])
        return partition
    if (offset, epoch, log.log_start_offset) != (0, 0, 0):
        known_epoch, end_offset = log.end_offset_for_epoch(epoch)
        if known_epoch != epoch or end_offset < offset:
            partition.diverging_epoch = EpochEndOffset(epoch=max(known_epoch, 0), end_offset=max(end_offset, 0))
            return partition
    partition.records = log.read(offset, max_bytes, copy_bytes=COPY_BYTES).records
    return partition


def _partition(context: Context) -> PartitionData:
    log = context.broker.metadata.partition_log
    return PartitionData(
        log_start_offset=log.log_start_offset,
        high_watermark=log.log_end_offset,
        current_leader=LeaderIdAndEpoch(leader_id=context.node_id, leader_epoch=context.broker.metadata.epoch),
        records=[],
    )


def _has_news(partition: PartitionData, asked: FetchPartition) -> bool:
    return bool(
        partition.error_code
        or partition.records
        or partition.snapshot_id.epoch >= 0
        or partition.diverging_epoch.epoch >= 0
        or asked.high_watermark < partition.high_watermark
    )


def _response(context: Context, partition: PartitionData) -> FetchResponse:
    topic = FetchableTopicResponse(topic=CLUSTER_METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
    response = FetchResponse(responses=[topic])
    if context.api_version >= FIRST_WITH_ENDPOINTS:
        host, port = context.session.advertised()
        response.node_endpoints = [NodeEndpoint(node_id=context.node_id, host=host, port=port)]
    return response
