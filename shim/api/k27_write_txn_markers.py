"""WriteTxnMarkers (key 27), versions 1-2.

Writes into partitions the control batch that ends a transaction. In Kafka the coordinator sends it to leaders. Here an
administrator uses it to end a hanging transaction (`kafka-transactions abort`). The coordinator is not informed (B11).
v1 is flexible. v2 adds the transaction version (KIP-1228): its stricter epoch rule protects a newer transaction.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC
from kafka_shim.outcome import wait_for_one
from kafka_shim.protocol.messages.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from kafka_shim.protocol.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from typing import Any

    from kafka_shim.broker import Broker
    from kafka_shim.context import Context
    from kafka_shim.outcome import Flush
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 27, 1, 2
NOBODY = -1
REQUEST, RESPONSE = WriteTxnMarkersRequest, WriteTxnMarkersResponse


def handle(
    context: Context, request: WriteTxnMarkersRequest
) -> Steps[WriteTxnMarkersResponse | Coroutine[Any, Any, WriteTxnMarkersResponse]]:
    # Results are by producer id: a later marker of the same id overwrites earlier ones per partition.
    codes: dict[int, dict[str, dict[int, ErrorCode]]] = {}
    flushes: list[tuple[dict[int, ErrorCode], int, Flush]] = []
    for marker in request.markers:
        for topic, partition in _partitions(marker):
            of_topic = codes.setdefault(marker.producer_id, {}).setdefault(topic, {})
            of_topic[partition], flush = _write(context.broker, marker, topic, partition)
            if flush is not None:
                flushes.append((of_topic, partition, flush))
            yield
    return _after_flush(codes, flushes) if flushes else (yield from _response(codes))


def failed(
    request: WriteTxnMarkersRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[WriteTxnMarkersResponse]:
    """Every partition of a producer id's last marker gets the error once, as in
    WriteTxnMarkersRequest.getErrorResponse."""
    codes: dict[int, dict[str, dict[int, ErrorCode]]] = {}
    for marker in request.markers:
        of_producer: dict[str, dict[int, ErrorCode]] = {}
        codes[marker.producer_id] = of_producer
        for topic in marker.topics:
            if topic.partition_indexes:
                of_producer.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes, code))
            yield
    return (yield from _response(codes))


async def _after_flush(
    codes: dict[int, dict[str, dict[int, ErrorCode]]], flushes: list[tuple[dict[int, ErrorCode], int, Flush]]
) -> WriteTxnMarkersResponse:
    """With `flush.messages` the response waits until the markers are on the disk. A partition whose fsync failed gets
    an error; the others succeed."""
    for of_topic, partition, flush in flushes:
        try:
            await wait_for_one(flush)
        except OSError:
            of_topic[partition] = ErrorCode.KAFKA_STORAGE_ERROR
    return at_once(_response(codes))


def _response(codes: dict[int, dict[str, dict[int, ErrorCode]]]) -> Steps[WriteTxnMarkersResponse]:
    response = WriteTxnMarkersResponse()
    for producer_id, of_producer in codes.items():
        marker = WritableTxnMarkerResult(producer_id=producer_id)
        response.markers.append(marker)
        for name, of_topic in of_producer.items():
            topic = WritableTxnMarkerTopicResult(name=name)
            marker.topics.append(topic)
            for partition, code in of_topic.items():
                topic.partitions.append(WritableTxnMarkerPartitionResult(partition_index=partition, error_code=code))
                yield
    return response


def _partitions(marker: WritableTxnMarker) -> Iterator[tuple[str, int]]:
    """Kafka, too, writes one marker where a partition is named twice, though it never answers then."""
    found: set[tuple[str, int]] = set()
    for topic in marker.topics:
        for partition in topic.partition_indexes:
            if (topic.name, partition) not in found:
                found.add((topic.name, partition))
                yield topic.name, partition


def _write(broker: Broker, marker: WritableTxnMarker, topic: str, partition: int) -> tuple[ErrorCode, Flush | None]:
    """Returns the partition's error code, and the fsync that its marker waits for."""
    now_ms = broker.clock.now_ms()
    log = broker.logs.find(topic, partition)
    if log is None:
        error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{partition} does not exist or is offline")
        return _refused(broker, marker, error, now_ms), None
    if NOBODY in (marker.producer_id, marker.producer_epoch):
        # Kafka cannot build such a marker. But for the group coordinator's partitions that fails the whole request; the
        # markers before it are written.
        if topic != GROUP_METADATA_TOPIC:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a transaction marker has no producer id or no epoch")
        return ErrorCode.UNKNOWN_SERVER_ERROR, None
    return _append(broker, log, marker, now_ms)


def _append(
    broker: Broker, log: PartitionLog, marker: WritableTxnMarker, now_ms: int
) -> tuple[ErrorCode, Flush | None]:
    try:
        appended = log.append_marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.transaction_result,
            marker.transaction_version,
            now_ms,
        )
    except KafkaError as error:
        return _refused(broker, marker, error, now_ms), None
    return ErrorCode.NONE, appended.flushed


def _refused(broker: Broker, marker: WritableTxnMarker, error: KafkaError, now_ms: int) -> ErrorCode:
    """Record the error in the history of the producer. Returns its code."""
    producer = marker.producer_id, marker.producer_epoch
    broker.transactions.explanations.refused("WriteTxnMarkers", None, error, now_ms, producer)
    return error.code
