"""Reading partitions: offsets by time, and Fetch."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_shim.cext.batch import BatchError
from kafka_shim.client.records import batches, decode_records
from kafka_shim.client.requests import NAMES, make
from kafka_shim.errors import ErrorCode
from kafka_shim.wire_client import WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from kafka_shim.client.cluster import Cluster, TopicPartition
    from kafka_shim.client.records import Record

# ListOffsetsRequest's timestamps that are none.
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
# The last version of Fetch that names topics. Later ones have ids, which change when a topic is made again.
FETCH_BY_NAME = 12


def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
) -> dict[TopicPartition, int]:
    """Returns each partition's first offset at or after a timestamp in ms, or for EARLIEST, LATEST or MAX_TIMESTAMP; -1
    if there is none. With `read_committed` LATEST is the last stable offset. A partition that does not exist raises
    RequestError."""

    def ask() -> dict[TopicPartition, int]:
        found = {}
        for node_id, topics in cluster.by_leader(wanted).items():
            request = make(
                "ListOffsets",
                replica_id=-1,
                isolation_level=int(read_committed),
                topics=[
                    {
                        "name": topic,
                        "partitions": [
                            {"partition_index": each, "timestamp": wanted[topic, each]} for each in partitions
                        ],
                    }
                    for topic, partitions in topics.items()
                ],
            )
            for topic in cluster.to(node_id).request(request).topics:
                for each in topic.partitions:
                    check(each.error_code, subject=f"{topic.name}-{each.partition_index}")
                    found[topic.name, each.partition_index] = each.offset
        return found

    return cluster.patiently(ask)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one Fetch returned of one partition. `records` has control records and, with read_committed, aborted ones
    too, marked; `next_offset` is where to go on."""

    topic: str
    partition: int
    records: list[Record]
    next_offset: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


def fetch(
    cluster: Cluster,
    positions: Mapping[TopicPartition, int],
    *,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    max_bytes: int = 16 << 20,
    partition_max_bytes: int = 1 << 20,
    read_committed: bool = False,
) -> list[Fetched]:
    """Read every partition once from its offset on. Waits at the brokers until there is something, for `max_wait_ms` at
    most. Raises RequestError: OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION ..."""

    def ask() -> list[Fetched]:
        asked = []
        for node_id, topics in cluster.by_leader(positions).items():
            connection = cluster.to(node_id)
            version = min(FETCH_BY_NAME, connection.version_of(NAMES["Fetch"]))
            request = make(
                "Fetch",
                max_wait_ms=max_wait_ms,
                min_bytes=min_bytes,
                max_bytes=max_bytes,
                isolation_level=int(read_committed),
                topics=[
                    {
                        "topic": topic,
                        "partitions": [
                            {
                                "partition": each,
                                "fetch_offset": positions[topic, each],
                                "partition_max_bytes": partition_max_bytes,
                            }
                            for each in partitions
                        ],
                    }
                    for topic, partitions in topics.items()
                ],
            )
            connection.send(request, version)
            asked.append((connection, version))
        # All answers are taken before one of them may raise: a connection with an answer left in it is of no use.
        answers = [connection.receive(NAMES["Fetch"], version)[1] for connection, version in asked]
        found = []
        for answer in answers:
            check(answer.error_code)
            for topic in answer.responses:
                for part in topic.partitions:
                    check(part.error_code, subject=f"{topic.topic}-{part.partition_index}")
                    found.append(_fetched(topic.topic, part, positions[topic.topic, part.partition_index]))
        return found

    return cluster.patiently(ask)


def _fetched(topic: str, data: Any, position: int) -> Fetched:
    raw = bytes(data.records or b"")
    aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
    next_offset = position
    try:
        for batch in batches(raw):
            next_offset = max(next_offset, batch.next_offset)
        records = list(decode_records(topic, data.partition_index, raw, aborted, position))
    except BatchError as error:
        raise WireClientError(f"{topic}-{data.partition_index}, from offset {position}: {error}") from error
    return Fetched(
        topic=topic,
        partition=data.partition_index,
        records=records,
        next_offset=next_offset,
        high_watermark=data.high_watermark,
        last_stable_offset=data.last_stable_offset,
        log_start_offset=data.log_start_offset,
    )


def read_all(cluster: Cluster, partitions: Iterable[TopicPartition], *, read_committed: bool = False) -> list[Record]:
    """Returns all data records that the partitions have now, by topic, partition and offset. Without control records;
    with `read_committed` only what is committed."""
    wanted = list(partitions)
    positions = list_offsets(cluster, dict.fromkeys(wanted, EARLIEST))
    ends = list_offsets(cluster, dict.fromkeys(wanted, LATEST), read_committed=read_committed)
    found: list[Record] = []
    while todo := {each: at for each, at in positions.items() if at < ends[each]}:
        for got in fetch(cluster, todo, read_committed=read_committed):
            each = got.topic, got.partition
            positions[each] = got.next_offset
            found += [one for one in got.records if is_data(one) and one.offset < ends[each]]
    found.sort(key=lambda one: (one.topic, one.partition, one.offset))
    return found


def is_data(record: Record) -> bool:
    """Whether a consumer of this isolation level gets the record."""
    return record.control is None and not record.is_aborted


def is_out_of_range(error: Exception) -> bool:
    """Whether a fetch failed because its offset is not in the log: deleted by retention, or beyond the end."""
    return getattr(error, "code", None) == ErrorCode.OFFSET_OUT_OF_RANGE
