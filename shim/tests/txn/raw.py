"""One transactional client on raw requests, in any version; answers are codes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from kafka_shim.cext.records import build
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kafka_shim.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafka_shim.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from kafka_shim.protocol.messages.end_txn_request import EndTxnRequest
from kafka_shim.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kafka_shim.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_shim.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafka_shim.wire_client import Connection


class Client:
    """Requests of one transactional id, in any version; answers are codes."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.connection = connection
        self.name = name
        self.producer = (-1, -1)
        self.topic = "t"

    def init(self, version: int = 4, held: tuple[int, int] = (-1, -1), timeout_ms: int = 60_000) -> ErrorCode:
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=timeout_ms)
        if version >= 3:
            request.producer_id, request.producer_epoch = held
        answer = self.connection.request(request, version)
        if answer.error_code == 0:
            self.producer = answer.producer_id, answer.producer_epoch
        else:
            assert (answer.producer_id, answer.producer_epoch) == (-1, -1)
        return ErrorCode(answer.error_code)

    def add(
        self, version: int = 3, producer: tuple[int, int] | None = None, *names: tuple[str, int]
    ) -> list[ErrorCode]:
        producer_id, epoch = producer or self.producer
        topics: dict[str, list[int]] = {}
        asked = names or ((self.topic, 0),)
        for name, partition in asked:
            topics.setdefault(name, []).append(partition)
        added = [AddPartitionsToTxnTopic(name=name, partitions=found) for name, found in topics.items()]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=added,
        )
        answer = self.connection.request(request, version)
        return _codes_of(answer.results_by_topic_v3_and_below, asked)

    def verify(self, *names: tuple[str, int], verify_only: bool = True, version: int = 5) -> list[ErrorCode]:
        producer_id, epoch = self.producer
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=name, partitions=[partition]) for name, partition in names],
        )
        answer = self.connection.request(AddPartitionsToTxnRequest(transactions=[transaction]), version)
        (result,) = answer.results_by_transaction
        assert result.transactional_id == self.name
        return _codes_of(result.topic_results, names)

    def add_offsets(self, version: int = 3, producer: tuple[int, int] | None = None) -> ErrorCode:
        producer_id, epoch = producer or self.producer
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name, producer_id=producer_id, producer_epoch=epoch, group_id=self.name
        )
        return ErrorCode(self.connection.request(request, version).error_code)

    def end(self, version: int = 5, commit: bool = True, producer: tuple[int, int] | None = None) -> Any:
        producer_id, epoch = producer or self.producer
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=producer_id, producer_epoch=epoch, committed=commit
        )
        answer = self.connection.request(request, version)
        if answer.error_code == 0 and version >= 5:
            self.producer = answer.producer_id, answer.producer_epoch
        else:
            assert (answer.producer_id, answer.producer_epoch) == (-1, -1)
        return ErrorCode(answer.error_code)

    def produce(
        self,
        version: int,
        producer: tuple[int, int] | None = None,
        partition: int = 0,
        sequence: int = 0,
        records: int = 1,
    ) -> ErrorCode:
        self.send_produce(version, producer, partition, sequence, records)
        return self.receive_produce(version)

    def receive_produce(self, version: int) -> ErrorCode:
        _, answer = self.connection.receive(ProduceRequest.API_KEY, version)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    def send_produce(
        self,
        version: int,
        producer: tuple[int, int] | None = None,
        partition: int = 0,
        sequence: int = 0,
        records: int = 1,
    ) -> None:
        producer_id, epoch = producer or self.producer
        batch = build(
            [(b"k", b"v", time.time_ns() // 1_000_000, ())] * records,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = [PartitionProduceData(index=partition, records=batch)]
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name=self.topic, partition_data=data)],
        )
        self.connection.send(request, version)

    def commit_offsets(
        self,
        version: int,
        producer: tuple[int, int] | None = None,
        generation: int = -1,
        topic: str = "t",
        offset: int = 5,
    ) -> ErrorCode:
        producer_id, epoch = producer or self.producer
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[part])],
        )
        if version >= 3:
            request.generation_id = generation
        answer = self.connection.request(request, version)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def described(self) -> Any:
        (found,) = self.connection.request(
            DescribeTransactionsRequest(transactional_ids=[self.name]), 0
        ).transaction_states
        return found


def _codes_of(topics: Iterable[Any], asked: Iterable[tuple[str, int]]) -> list[ErrorCode]:
    """Returns the codes in the order of what was asked: the answer may have another."""
    codes = {
        (topic.name, part.partition_index): ErrorCode(part.partition_error_code)
        for topic in topics
        for part in topic.results_by_partition
    }
    return [codes[one] for one in asked]
