from __future__ import annotations

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.image import Image
from kafka_shim.metadata.replay import Replayer
from kafka_shim.metadata.topics import (
    check_name,
    check_request_size,
    decide_growth,
    decide_replicas,
    partition_records,
    topic_records,
)
from kafka_shim.protocol.records.register_broker_record import RegisterBrokerRecord

DIRECTORY = b"d" * 16


def image_with(topic=None, partitions=1, brokers=(1,)):
    replayer = Replayer(Image())
    for broker in brokers:
        replayer.apply(RegisterBrokerRecord(broker_id=broker))
    if topic:
        replicas = [[1]] * partitions
        records = topic_records(topic, b"t" * 16, [])
        for record in records + partition_records(b"t" * 16, 0, replicas, 1, DIRECTORY):
            replayer.apply(record)
    return replayer.image


def refusal(call, *arguments):
    with pytest.raises(KafkaError) as error:
        call(*arguments)
    return error.value.code, error.value.message


@pytest.mark.parametrize("name", ["a", "A-1", "a_b", "x" * 249, "...", "__consumer_offsets"])
def test_legal_names_pass(name):
    check_name(name)
    assert name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("y" * 250, f"the length of '{'y' * 250}' is longer than the max allowed length 249"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("ä", "'ä' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_illegal_names_get_kafkas_sentence(name, reason):
    assert refusal(check_name, name) == (ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def test_defaults_stand_for_minus_one():
    assert decide_replicas(image_with(), -1, -1, [], 1, (3, 1)) == [[1], [1], [1]]


@pytest.mark.parametrize(
    ("partitions", "factor", "code"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-2, 1, ErrorCode.INVALID_PARTITIONS),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 2, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_counts_that_cannot_be_are_refused(partitions, factor, code):
    assert refusal(decide_replicas, image_with(), partitions, factor, [], 1, (1, 1))[0] is code


def test_more_replicas_than_brokers_names_both_numbers():
    assert refusal(decide_replicas, image_with(), 1, 3, [], 1, (1, 1))[1] == (
        "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because "
        "only 1 broker(s) are registered or some brokers have all their log directories cordoned."
    )


@pytest.mark.parametrize(
    ("partitions", "factor", "assignments", "code"),
    [
        (1, -1, [(0, [1])], ErrorCode.INVALID_REQUEST),
        (-1, 1, [(0, [1])], ErrorCode.INVALID_REQUEST),
        (-1, -1, [(0, [1]), (0, [1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(0, [1]), (2, [1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(0, [])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(0, [9])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(0, [1, 1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(0, [2])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(0, [1]), (1, [1, 2])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_manual_assignments_that_cannot_be_are_refused(partitions, factor, assignments, code):
    image = image_with(brokers=(1, 2))
    assert refusal(decide_replicas, image, partitions, factor, assignments, 1, (1, 1))[0] is code


def test_a_manual_assignment_may_come_in_any_order():
    assert decide_replicas(image_with(brokers=(1, 2)), -1, -1, [(1, [2, 1]), (0, [1, 2])], 1, (1, 1)) == [
        [1, 2],
        [2, 1],
    ]


def test_growth_keeps_the_replication_factor_and_needs_more_partitions():
    image = image_with("one", 3)
    assert decide_growth(image, "one", 5, None, 1) == [[1], [1]]
    assert decide_growth(image, "one", 4, [[1]], 1) == [[1]]
    assert refusal(decide_growth, image, "one", 3, None, 1) == (
        ErrorCode.INVALID_PARTITIONS,
        "Topic already has 3 partition(s).",
    )
    assert refusal(decide_growth, image, "one", 2, None, 1) == (
        ErrorCode.INVALID_PARTITIONS,
        "The topic one currently has 3 partition(s); 2 would not be an increase.",
    )
    assert refusal(decide_growth, image, "one", 5, [[1]], 1)[0] is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert refusal(decide_growth, image, "none", 5, None, 1)[0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_one_request_may_ask_for_ten_thousand_partitions():
    check_request_size([5000, -1], 5000)
    assert refusal(check_request_size, [5000, -1], 5001)[0] is ErrorCode.POLICY_VIOLATION
