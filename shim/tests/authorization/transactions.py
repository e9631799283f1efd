"""Transactions and producers."""

from __future__ import annotations

from typing import Any

from kafka_shim.tests.authorization.requests import (
    DESCRIBE_ID,
    DESCRIBE_TOPIC,
    GROUP,
    ID,
    READ_GROUP,
    READ_TOPIC,
    TOPIC,
    WRITE_ID,
    WRITE_TOPIC,
    Cases,
    cluster,
    new,
)


def txn_offset_commit() -> Any:
    part = new("txn_offset_commit_request.TxnOffsetCommitRequestPartition", partition_index=0, committed_offset=1)
    topic = new("txn_offset_commit_request.TxnOffsetCommitRequestTopic", name=TOPIC, partitions=[part])
    return new(
        "txn_offset_commit_request.TxnOffsetCommitRequest",
        transactional_id=ID,
        group_id=GROUP,
        producer_id=1,
        producer_epoch=0,
        topics=[topic],
    )


def add_partitions(*topics: str) -> Any:
    rows = [new("add_partitions_to_txn_request.AddPartitionsToTxnTopic", name=name, partitions=[0]) for name in topics]
    return new(
        "add_partitions_to_txn_request.AddPartitionsToTxnRequest",
        v3_and_below_transactional_id=ID,
        v3_and_below_producer_id=1,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=rows,
    )


def add_partitions_of_brokers() -> Any:
    topic = new("add_partitions_to_txn_request.AddPartitionsToTxnTopic", name=TOPIC, partitions=[0])
    transaction = new(
        "add_partitions_to_txn_request.AddPartitionsToTxnTransaction",
        transactional_id=ID,
        producer_id=1,
        producer_epoch=0,
        topics=[topic],
    )
    return new("add_partitions_to_txn_request.AddPartitionsToTxnRequest", transactions=[transaction])


CASES: Cases = {
    (22, 4): (
        lambda: new("init_producer_id_request.InitProducerIdRequest", transactional_id=ID, transaction_timeout_ms=1000),
        {WRITE_ID},
    ),
    (22, 5): (
        lambda: new("init_producer_id_request.InitProducerIdRequest", transactional_id=None),
        {cluster("IDEMPOTENT_WRITE")},
    ),
    (24, 3): (lambda: add_partitions(TOPIC), {WRITE_ID, WRITE_TOPIC}),
    (24, 4): (add_partitions_of_brokers, {cluster("CLUSTER_ACTION")}),
    (25, 3): (
        lambda: new("add_offsets_to_txn_request.AddOffsetsToTxnRequest", transactional_id=ID, group_id=GROUP),
        {WRITE_ID, READ_GROUP},
    ),
    (26, 4): (lambda: new("end_txn_request.EndTxnRequest", transactional_id=ID), {WRITE_ID}),
    (27, 1): (
        lambda: new(
            "write_txn_markers_request.WriteTxnMarkersRequest",
            markers=[
                new(
                    "write_txn_markers_request.WritableTxnMarker",
                    producer_id=1,
                    topics=[
                        new("write_txn_markers_request.WritableTxnMarkerTopic", name="none", partition_indexes=[0])
                    ],
                )
            ],
        ),
        {cluster("ALTER")},
    ),
    (28, 4): (txn_offset_commit, {WRITE_ID, READ_GROUP, READ_TOPIC}),
    (61, 0): (
        lambda: new(
            "describe_producers_request.DescribeProducersRequest",
            topics=[new("describe_producers_request.TopicRequest", name=TOPIC, partition_indexes=[0])],
        ),
        {READ_TOPIC},
    ),
    (65, 0): (
        lambda: new("describe_transactions_request.DescribeTransactionsRequest", transactional_ids=[ID]),
        {DESCRIBE_ID, DESCRIBE_TOPIC},
    ),
    (66, 2): (
        lambda: new("list_transactions_request.ListTransactionsRequest", duration_filter=-1),
        {DESCRIBE_ID},
    ),
}
