from __future__ import annotations

from itertools import product

import pytest

from kafka_shim.metadata.image import Image
from kafka_shim.metadata.replay import APPLY, Replayer
from kafka_shim.metadata.replay_topics import ReplayError, apply_partition, check_whole
from kafka_shim.metadata.topics import partition_records, topic_records
from kafka_shim.protocol.record_types import METADATA_RECORDS
from kafka_shim.protocol.records.abort_transaction_record import AbortTransactionRecord
from kafka_shim.protocol.records.access_control_entry_record import AccessControlEntryRecord
from kafka_shim.protocol.records.begin_transaction_record import BeginTransactionRecord
from kafka_shim.protocol.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from kafka_shim.protocol.records.clear_elr_record import ClearElrRecord
from kafka_shim.protocol.records.client_quota_record import ClientQuotaRecord, EntityData
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.protocol.records.end_transaction_record import EndTransactionRecord
from kafka_shim.protocol.records.feature_level_record import FeatureLevelRecord
from kafka_shim.protocol.records.partition_change_record import PartitionChangeRecord
from kafka_shim.protocol.records.partition_record import PartitionRecord
from kafka_shim.protocol.records.register_broker_record import RegisterBrokerRecord
from kafka_shim.protocol.records.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kafka_shim.protocol.records.remove_topic_record import RemoveTopicRecord
from kafka_shim.protocol.records.topic_record import TopicRecord
from kafka_shim.protocol.records.unfence_broker_record import UnfenceBrokerRecord
from kafka_shim.protocol.records.unregister_broker_record import UnregisterBrokerRecord
from kafka_shim.tests.metadata.opened import opened

TOPIC_ID = b"t" * 16


@pytest.fixture
def replayer():
    return Replayer(Image())


def topic(replayer, name="t.a", partitions=2):
    records = partition_records(TOPIC_ID, 0, [[1]] * partitions, 1, b"d" * 16)
    for record in topic_records(name, TOPIC_ID, []) + records:
        replayer.apply(record)
    return replayer.image.topics[name]


def test_every_record_of_kafka_has_its_apply():
    transactions = {23, 24, 25}
    assert set(APPLY) | transactions == set(METADATA_RECORDS)


def test_partitions_may_come_in_any_order(replayer):
    replayer.apply(TopicRecord(name="t", topic_id=TOPIC_ID))
    for record in reversed(partition_records(TOPIC_ID, 0, [[1]] * 3, 1, b"d" * 16)):
        replayer.apply(record)
    partitions = replayer.image.topics["t"].partitions
    assert [one.partition for one in partitions] == [0, 1, 2]
    assert replayer.image.partition_count == 3


def test_a_number_in_a_record_does_not_decide_how_much_memory_is_taken(replayer):
    topic(replayer)
    replayer.apply(PartitionRecord(topic_id=TOPIC_ID, partition_id=2**31 - 1))
    assert len(replayer.image.topics["t.a"].partitions) == replayer.image.partition_count == 2
    with pytest.raises(ReplayError, match=r"partition 2147483647 of topic t.a, whose partition 2 has no record"):
        check_whole(replayer.image)
    replayer.apply(RemoveTopicRecord(topic_id=TOPIC_ID))
    check_whole(replayer.image)


def test_a_partition_before_the_first_is_refused(replayer):
    topic(replayer)
    with pytest.raises(ReplayError, match=r"partition -1 of topic t.a"):
        replayer.apply(PartitionRecord(topic_id=TOPIC_ID, partition_id=-1))
    assert [one.partition for one in replayer.image.topics["t.a"].partitions] == [0, 1]


@pytest.mark.parametrize(("name", "topic_id"), [("t.a", b"o" * 16), ("other", TOPIC_ID)])
def test_two_topics_have_neither_one_name_nor_one_id(replayer, name, topic_id):
    known = topic(replayer)
    with pytest.raises(ReplayError, match="another topic has"):
        replayer.apply(TopicRecord(name=name, topic_id=topic_id))
    assert replayer.image.topics == {"t.a": known}
    assert replayer.image.topics_by_id == {TOPIC_ID: known}
    with pytest.raises(ReplayError, match="another topic has"):
        replayer.check([TopicRecord(name=name, topic_id=topic_id)])


def test_what_the_check_lets_pass_can_be_applied():
    """Two records of every kind that names a topic or partition, in every order, on a topic that is there or not."""
    other = b"o" * 16
    records = [
        TopicRecord(name="t.a", topic_id=TOPIC_ID),
        TopicRecord(name="other", topic_id=other),
        TopicRecord(name="t.a", topic_id=other),
        TopicRecord(name="other", topic_id=TOPIC_ID),
        *(PartitionRecord(topic_id=one, partition_id=number) for one in (TOPIC_ID, other) for number in (-1, 0, 1, 3)),
        *(PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=number) for number in (-1, 0, 1, 3)),
        RemoveTopicRecord(topic_id=TOPIC_ID),
        RemoveTopicRecord(topic_id=other),
        *(ClearElrRecord(topic_name=name) for name in ("t.a", "other", "")),
    ]
    outcomes = set()
    for before in (0, 2):
        for batch in product(records, repeat=3):
            replayer = Replayer(Image())
            if before:
                topic(replayer, partitions=before)
            passes, applies = True, True
            try:
                replayer.check(batch)
            except ReplayError:
                passes = False
            try:
                for record in batch:
                    replayer.apply(record)
                check_whole(replayer.image)
            except ReplayError:
                applies = False
            assert applies or not passes, batch
            outcomes.add((passes, applies))
    assert {(True, True), (False, False)} <= outcomes


def test_equal_lists_of_partitions_are_one_object(replayer):
    partitions = topic(replayer).partitions
    assert partitions[0].replicas is partitions[1].replicas
    assert partitions[0].directories is partitions[1].directories


def test_a_change_of_leader_is_an_election_and_any_change_counts(replayer):
    partitions = topic(replayer).partitions
    held = partitions[1]
    replayer.apply(PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID, isr=[], leader=-1))
    partition = partitions[1]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch, partition.isr) == (-1, 1, 1, ())
    replayer.apply(PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID, eligible_leader_replicas=[1]))
    partition = partitions[1]
    assert (partition.leader_epoch, partition.partition_epoch, partition.elr) == (1, 2, (1,))
    replayer.apply(ClearElrRecord(topic_name="t.a"))
    assert (partitions[1].partition_epoch, partitions[1].elr) == (3, ())
    # Who holds a registration over several turns sees one state of it.
    assert (held.leader, held.partition_epoch, partition.elr) == (1, 0, (1,))


def test_a_removed_topic_leaves_nothing(replayer):
    topic(replayer)
    replayer.apply(ConfigRecord(resource_type=2, resource_name="t.a", name="retention.ms", value="1"))
    replayer.apply(RemoveTopicRecord(topic_id=TOPIC_ID))
    image = replayer.image
    assert (image.topics, image.topics_by_id, image.configs, image.colliding_names) == ({}, {}, {}, {})
    assert image.partition_count == 0


def test_options_come_and_go_without_changing_what_was_handed_out(replayer):
    replayer.apply(ConfigRecord(resource_type=4, resource_name="", name="a", value="1"))
    held = replayer.image.config_of(4, "")
    replayer.apply(ConfigRecord(resource_type=4, resource_name="", name="b", value="2"))
    assert (held, replayer.image.config_of(4, "")) == ({"a": "1"}, {"a": "1", "b": "2"})
    for name in "ab":
        replayer.apply(ConfigRecord(resource_type=4, resource_name="", name=name, value=None))
    assert replayer.image.configs == {}


def test_level_zero_is_no_feature(replayer):
    replayer.apply(FeatureLevelRecord(name="group.version", feature_level=1))
    replayer.apply(FeatureLevelRecord(name="group.version", feature_level=0))
    assert replayer.image.features == {}


def test_a_metadata_transaction_counts_at_its_end_or_never(replayer):
    replayer.check([BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()])
    replayer.apply(BeginTransactionRecord(name="one"))
    replayer.apply(TopicRecord(name="t.a", topic_id=TOPIC_ID))
    assert replayer.in_transaction
    assert replayer.image.topics == {}
    replayer.apply(EndTransactionRecord())
    assert set(replayer.image.topics) == {"t.a"}
    replayer.apply(BeginTransactionRecord(name="two"))
    replayer.apply(RemoveTopicRecord(topic_id=TOPIC_ID))
    replayer.apply(AbortTransactionRecord(reason="no"))
    assert set(replayer.image.topics) == {"t.a"}
    assert not replayer.in_transaction


def test_a_metadata_transaction_at_whose_end_memory_ends_counts_whole_when_its_end_is_tried_again(replayer):
    replayer.rest.extend([BeginTransactionRecord(name="one"), TopicRecord(name="t.a", topic_id=TOPIC_ID)])
    replayer.rest.extend(partition_records(TOPIC_ID, 0, [[1]] * 3, 1, b"d" * 16))
    replayer.rest.append(EndTransactionRecord())
    calls = []

    def find_memory_later(image, record):
        calls.append(record)
        if len(calls) == 2:
            raise MemoryError
        apply_partition(image, record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(APPLY, PartitionRecord.API_KEY, find_memory_later)
        replayer.apply_rest()
    assert len(replayer.image.topics["t.a"].partitions) == replayer.image.partition_count == 3
    assert replayer.is_whole


def test_a_registration_changes_only_in_its_own_epoch(replayer):
    replayer.apply(RegisterBrokerRecord(broker_id=1, broker_epoch=5, fenced=True))
    replayer.apply(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=4, fenced=-1))
    assert replayer.image.brokers[1].fenced
    replayer.apply(
        BrokerRegistrationChangeRecord(
            broker_id=1, broker_epoch=5, fenced=-1, log_dirs=[b"x" * 16], cordoned_log_dirs=[]
        )
    )
    replayer.apply(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, in_controlled_shutdown=1))
    broker = replayer.image.brokers[1]
    assert (broker.fenced, broker.in_controlled_shutdown, broker.log_dirs) == (False, True, [b"x" * 16])
    broker.fenced = True
    replayer.apply(UnfenceBrokerRecord(id=1, epoch=5))
    assert not broker.fenced
    replayer.apply(UnregisterBrokerRecord(broker_id=1, broker_epoch=5))
    assert replayer.image.brokers == {}


def test_quotas_and_access_rules_are_kept_for_later(replayer):
    entity = [EntityData(entity_type="user", entity_name="bob"), EntityData(entity_type="client-id", entity_name=None)]
    replayer.apply(ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=9.0))
    key = (("client-id", None), ("user", "bob"))
    assert replayer.image.quotas == {key: {"producer_byte_rate": 9.0}}
    replayer.apply(ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=0.0, remove=True))
    assert replayer.image.quotas == {}
    replayer.apply(AccessControlEntryRecord(id=b"a" * 16, resource_name="t"))
    assert replayer.image.acls[b"a" * 16].resource_name == "t"
    replayer.apply(RemoveAccessControlEntryRecord(id=b"a" * 16))
    assert replayer.image.acls == {}


UNKNOWN_ID = b"\x07" * 16


@pytest.mark.parametrize(
    "record",
    [
        RemoveTopicRecord(topic_id=UNKNOWN_ID),
        PartitionRecord(topic_id=UNKNOWN_ID),
        PartitionChangeRecord(topic_id=UNKNOWN_ID),
        ClearElrRecord(topic_name="nope"),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_record_that_cannot_be_applied_is_not_written(tmp_path, record):
    with opened(tmp_path) as store:
        before = store.next_offset
        with pytest.raises(ReplayError):
            store.commit([TopicRecord(name="t", topic_id=bytes(15) + b"\x01"), record])
        assert store.next_offset == before
        assert "t" not in store.image.topics
    with opened(tmp_path) as store:
        assert "t" not in store.image.topics
