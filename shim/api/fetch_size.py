"""Counts how large the frame of a Fetch response will be, without encoding it: a client's quota is asked before the
response of thousands of partitions is made (Kafka: FetchResponse.sizeOf). A test compares it with the encoder."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.api.fetch_reads import PartitionRead

FIRST_WITH_LOG_START_OFFSET, FIRST_WITH_SESSIONS, FIRST_WITH_PREFERRED_REPLICA = 5, 7, 11
FIRST_FLEXIBLE = 12
UUID_BYTES, INT16_BYTES, INT32_BYTES, INT64_BYTES = 16, 2, 4, 8
ABORTED_BYTES = 2 * INT64_BYTES
# A tag and its size, the epoch and its end offset, no tags.
DIVERGING_BYTES = 2 + INT32_BYTES + INT64_BYTES + 1
# A tag and its size, the id and the epoch of the leader, no tags.
LEADER_BYTES = 2 + 2 * INT32_BYTES + 1


class FetchSize:
    """Adds up the partitions of a response in the order in which it has them."""

    __slots__ = ("_flexible", "_head_bytes", "_in_topic", "_partition_bytes", "_size_bytes", "_topic", "_topics")

    def __init__(self, version: int) -> None:
        self._flexible = version >= FIRST_FLEXIBLE
        # The correlation id, the throttle time, the error code and the session, tags of the header and of the message.
        self._head_bytes = 2 * INT32_BYTES
        if version >= FIRST_WITH_SESSIONS:
            self._head_bytes += INT16_BYTES + INT32_BYTES
        # What every partition has: its number, the error code, two or three offsets, the preferred replica, tags.
        self._partition_bytes = INT32_BYTES + INT16_BYTES + 2 * INT64_BYTES
        if version >= FIRST_WITH_LOG_START_OFFSET:
            self._partition_bytes += INT64_BYTES
        if version >= FIRST_WITH_PREFERRED_REPLICA:
            self._partition_bytes += INT32_BYTES
        if self._flexible:
            self._head_bytes += 2
            self._partition_bytes += 1
        self._topic: str | bytes | None = None
        self._topics = self._in_topic = self._size_bytes = 0

    def add(self, entry: PartitionRead) -> None:
        """Count one partition."""
        if entry.asked.topic != self._topic:
            self._end_topic()
            self._topic = entry.asked.topic
        self._in_topic += 1
        answer, records_bytes = entry.answer, entry.size_bytes
        aborted = answer.aborted_transactions or ()
        size_bytes = self._partition_bytes + records_bytes
        if not self._flexible:
            self._size_bytes += size_bytes + 2 * INT32_BYTES + len(aborted) * ABORTED_BYTES
            return
        size_bytes += _uvarint_bytes(records_bytes + 1) + _uvarint_bytes(len(aborted) + 1)
        size_bytes += len(aborted) * (ABORTED_BYTES + 1)
        diverging = answer.diverging_epoch
        if diverging.epoch != -1 or diverging.end_offset != -1:
            size_bytes += DIVERGING_BYTES
        leader = answer.current_leader
        if leader.leader_id != -1 or leader.leader_epoch != -1:
            size_bytes += LEADER_BYTES
        self._size_bytes += size_bytes

    def frame_bytes(self) -> int:
        """Returns the size of the frame without its length."""
        self._end_topic()
        self._topic = None
        count_bytes = _uvarint_bytes(self._topics + 1) if self._flexible else INT32_BYTES
        return self._head_bytes + count_bytes + self._size_bytes

    def _end_topic(self) -> None:
        if self._topic is None:
            return
        self._topics += 1
        if isinstance(self._topic, bytes):
            size_bytes = UUID_BYTES
        else:
            size_bytes = len(self._topic.encode())
            size_bytes += _uvarint_bytes(size_bytes + 1) if self._flexible else INT16_BYTES
        size_bytes += _uvarint_bytes(self._in_topic + 1) + 1 if self._flexible else INT32_BYTES
        self._size_bytes += size_bytes
        self._in_topic = 0


def _uvarint_bytes(value: int) -> int:
    return 1 if value < 0x80 else (value.bit_length() + 6) // 7
