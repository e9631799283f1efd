from __future__ import annotations

from kafka_shim.metadata.features import SUPPORTED
from kafka_shim.metadata.image import Image
from kafka_shim.metadata.registration import departure_records, election_records, registration_records
from kafka_shim.metadata.replay import Replayer
from kafka_shim.metadata.topics import partition_records, topic_records
from kafka_shim.protocol.records.feature_level_record import FeatureLevelRecord
from kafka_shim.protocol.records.partition_change_record import PartitionChangeRecord
from kafka_shim.protocol.records.register_broker_record import RegisterBrokerRecord
from kafka_shim.randomness import Randomness

TOPIC_ID = b"t" * 16
ENDPOINTS = [("PLAINTEXT", "localhost", 9092, 0)]
CONTROLLER_ENDPOINTS = [("CONTROLLER", "localhost", 9093, 0)]


def replayer_at(level=30, replicas=((1,), (1,))):
    replayer = Replayer(Image())
    replayer.apply(FeatureLevelRecord(name="metadata.version", feature_level=level))
    rows = partition_records(TOPIC_ID, 0, [list(one) for one in replicas], 1, b"d" * 16)
    for record in topic_records("t", TOPIC_ID, []) + rows:
        replayer.apply(record)
    return replayer


def register(replayer, level=30, offset=10):
    records, epoch = registration_records(
        replayer.image, 1, ENDPOINTS, CONTROLLER_ENDPOINTS, [b"d" * 16], "rack", offset, Randomness(1), SUPPORTED
    )
    for record in records:
        replayer.apply(record)
    return records, epoch


def test_the_epoch_is_the_offset_of_the_brokers_record():
    replayer = replayer_at()
    records, epoch = register(replayer)
    assert isinstance(records[epoch - 10], RegisterBrokerRecord)
    broker = replayer.image.brokers[1]
    assert (broker.broker_epoch, broker.fenced, broker.rack) == (epoch, False, "rack")
    assert broker.end_points[0].port == 9092
    assert replayer.image.controllers[1].end_points[0].port == 9093


def test_older_levels_have_no_controller_registration_and_no_directories():
    replayer = replayer_at(14)
    records, epoch = register(replayer)
    assert epoch == 10
    assert replayer.image.controllers == {}
    assert records[0].log_dirs == []


def test_after_a_clean_departure_only_leaderless_partitions_are_elected():
    replayer = replayer_at()
    _, epoch = register(replayer)
    for record in departure_records(1, epoch):
        replayer.apply(record)
    assert election_records(replayer.image, 1) == []
    replayer.apply(PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID, isr=[], leader=-1, last_known_elr=[1]))
    (change,) = election_records(replayer.image, 1)
    assert (change.partition_id, change.leader, change.isr) == (1, 1, [1])
    assert (change.eligible_leader_replicas, change.last_known_elr) == ([], [])
    replayer.apply(change)
    assert replayer.image.topics["t"].partitions[1].leader_epoch == 2


def test_after_a_crash_every_partition_gets_a_new_epoch():
    replayer = replayer_at()
    register(replayer)
    assert [one.partition_id for one in election_records(replayer.image, 1)] == [0, 1]


def test_partitions_without_a_replica_here_are_left_alone():
    replayer = replayer_at(replicas=((1,), (2,)))
    register(replayer)
    assert [one.partition_id for one in election_records(replayer.image, 1)] == [0]
