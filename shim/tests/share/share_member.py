"""A member of a share group that speaks the protocol by hand, one connection each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka_shim.cext.batch import scan_all
from kafka_shim.cext.records import iterate
from kafka_shim.embedded import Broker
from kafka_shim.protocol.messages.share_acknowledge_request import (
    AcknowledgementBatch as Given,
)
from kafka_shim.protocol.messages.share_acknowledge_request import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from kafka_shim.protocol.messages.share_fetch_request import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
)
from kafka_shim.protocol.messages.share_fetch_response import PartitionData
from kafka_shim.wire_client import Connection

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
Acks = Sequence[tuple[int, int, Sequence[int]]]


def open_share(broker: Broker, group_id: str, topic_id: bytes, partition: int = 0, start_offset: int = 0) -> None:
    """Start a share partition, as the group coordinator does when a member subscribes."""
    broker.call(broker.state.share_state.initialize_state, group_id, topic_id, partition, 0, start_offset)


def ranges(answer: PartitionData) -> list[tuple[int, int, int]]:
    """(first offset, last offset, delivery count) of what was acquired."""
    return [(one.first_offset, one.last_offset, one.delivery_count) for one in answer.acquired_records]


def values(answer: PartitionData) -> list[bytes]:
    """The values of the acquired records."""
    stored = bytes(answer.records)
    return [
        record.value
        for one in scan_all(stored)
        if not one.is_control
        for record in iterate(stored, one.position, one.position + one.size_bytes)
        if any(part.first_offset <= record.offset <= part.last_offset for part in answer.acquired_records)
    ]


class ShareMember:
    """Keeps the session epoch."""

    def __init__(self, broker: Broker, group_id: str, member_id: str, topic_id: bytes, version: int = 2) -> None:
        self.connection = Connection(broker.bootstrap_servers, timeout_s=60)
        self.group_id = group_id
        self.member_id = member_id
        self.topic_id = topic_id
        self.version = version
        self.epoch = 0

    def __enter__(self) -> ShareMember:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def fetch_request(
        self, partitions: Sequence[int] = (0,), acks: Acks = (), forget: Sequence[int] = (), **how: Any
    ) -> ShareFetchRequest:
        fields = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 24, "max_records": 500, "batch_size": 500, **how}
        request = ShareFetchRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            **{"share_session_epoch": self.epoch, **fields},
        )
        given = [AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=list(c)) for a, b, c in acks]
        asked = [
            FetchPartition(partition_index=number, acknowledgement_batches=given if at == 0 else [])
            for at, number in enumerate(partitions)
        ]
        request.topics = [FetchTopic(topic_id=self.topic_id, partitions=asked)]
        if forget:
            request.forgotten_topics_data = [ForgottenTopic(topic_id=self.topic_id, partitions=list(forget))]
        return request

    def fetch(self, partitions: Sequence[int] = (0,), acks: Acks = (), **how: Any) -> Any:
        """The answer to a ShareFetch; the session epoch grows with it."""
        response = self.connection.request(self.fetch_request(partitions, acks, **how), self.version)
        if response.error_code == 0 and self.epoch >= 0:
            self.epoch += 1
        return response

    def poll(self, acks: Acks = (), **how: Any) -> PartitionData:
        """The answer for the one partition, or an empty one if the answer does not name it."""
        response = self.fetch(acks=acks, **how)
        assert response.error_code == 0, response
        return response.responses[0].partitions[0] if response.responses else PartitionData(records=b"")

    def acknowledge(self, acks: Acks, partition: int = 0, **how: Any) -> Any:
        """The answer to a ShareAcknowledge."""
        given = [Given(first_offset=a, last_offset=b, acknowledge_types=list(c)) for a, b, c in acks]
        asked = AcknowledgePartition(partition_index=partition, acknowledgement_batches=given)
        request = ShareAcknowledgeRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            **{"share_session_epoch": self.epoch, **how},
        )
        request.topics = [AcknowledgeTopic(topic_id=self.topic_id, partitions=[asked])]
        response = self.connection.request(request, self.version)
        if response.error_code == 0 and self.epoch >= 0:
            self.epoch += 1
        return response

    def outcome(self, acks: Acks, **how: Any) -> int:
        """The error code of the one partition of a ShareAcknowledge."""
        response = self.acknowledge(acks, **how)
        assert response.error_code == 0, response
        return int(response.responses[0].partitions[0].error_code)
