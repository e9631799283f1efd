"""The share partitions of a broker over real logs and the real share coordinator, under a virtual clock, without the
network."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_shim.cext.segment import Walk
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.share.share_partition import SharePartition
from kafka_shim.share.share_partition_acquire import AcquireLimits, acquire
from kafka_shim.share.share_partitions import SharePartitions
from kafka_shim.storage.file_records import FileRecords
from kafka_shim.tests.produced import batch
from kafka_shim.tests.share.harness import Node

GROUP = "g"


class ShareNode(Node):
    """One topic "t" with one partition, shared by the group "g" from its start."""

    def start(self) -> None:
        super().start()
        if "t" not in self.metadata.image.topics:
            self.topic("t", 1)
            self.state.initialize_state(GROUP, self.topic_id, 0, 0, 0)

    def start_coordinator(self) -> None:
        super().start_coordinator()
        self.shares = SharePartitions(
            clock=self.clock, most_sessions=10, logs=self.logs, metadata=self.metadata, persister=self.state
        )
        self.shares.start()

    def stop_coordinator(self) -> None:
        self.shares.stop()
        super().stop_coordinator()

    @property
    def topic_id(self) -> bytes:
        return self.metadata.image.topics["t"].topic_id

    @property
    def key(self) -> tuple[str, bytes, int]:
        return GROUP, self.topic_id, 0

    @property
    def share(self) -> SharePartition:
        return self.shares.get(self.key, "t")

    def produce(self, count: int, **header: object) -> None:
        """Append one batch of so many records."""
        records = bytearray(batch(*[b"v"] * count, timestamp_ms=self.clock.now_ms(), **header))
        self.logs.get("t", 0).append_batch(records, now_ms=self.clock.now_ms())

    def acquire(
        self,
        member_id: str,
        max_records: int = 500,
        batch_size: int = 500,
        *,
        strict: bool = False,
        max_bytes: int = 1 << 20,
    ) -> list[tuple[int, int, int]]:
        """What the member gets: (first offset, last offset, delivery count)."""
        share = self.share
        if not share.can_acquire():
            return []
        offset = share.next_fetch_offset()
        try:
            fetched = share.log.read(offset, max_bytes, copy_bytes=-1)
        except KafkaError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            share.raise_start_offset(share.log.earliest().offset)
            return []
        if not fetched.records:
            return []
        (found,) = fetched.records
        assert isinstance(found, FileRecords)
        batches = list(Walk(found.segment.fd, found.position, found.position + found.size_bytes))
        got = acquire(share, member_id, batches, offset, AcquireLimits(max_records, batch_size, strict))
        return [(one.first_offset, one.last_offset, one.delivery_count) for one in got]

    def acknowledge(self, member_id: str, *batches: tuple[int, int, Sequence[int]]) -> ErrorCode:
        """Acknowledge; the error code."""
        try:
            self.shares.acknowledge(self.key, member_id, batches)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE
