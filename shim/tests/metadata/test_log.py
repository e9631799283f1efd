from __future__ import annotations

import pytest

from kafka_shim.cext.batch import scan_all
from kafka_shim.cext.records import build, iterate
from kafka_shim.metadata.check import first_bad_record
from kafka_shim.metadata.image import Image
from kafka_shim.metadata.log import MetadataLogError, read_records, snapshot_bytes
from kafka_shim.metadata.quorum_state import read
from kafka_shim.metadata.replay import Replayer
from kafka_shim.protocol.record_frames import ControlType, decode_control, encode_control, encode_metadata
from kafka_shim.protocol.records.feature_level_record import FeatureLevelRecord
from kafka_shim.protocol.records.kraft_version_record import KRaftVersionRecord
from kafka_shim.protocol.records.partition_record import PartitionRecord
from kafka_shim.protocol.records.producer_ids_record import ProducerIdsRecord
from kafka_shim.protocol.records.topic_record import TopicRecord
from kafka_shim.protocol.records.voters_record import Voter, VotersRecord
from kafka_shim.tests.metadata.opened import Opened, opened

FEATURES = [(FeatureLevelRecord(name="metadata.version", feature_level=30), 0)]


def snapshot_file(directory, end_offset, epoch, records):
    path = directory / "__cluster_metadata-0" / f"{end_offset:020d}-{epoch:010d}.checkpoint"
    path.write_bytes(snapshot_bytes([(record, 0) for record in records], 1))
    return path


def test_a_snapshot_is_a_header_the_records_and_a_footer():
    content = snapshot_bytes(FEATURES, 5, 4)
    header, records, footer = scan_all(content)
    assert (header.is_control, records.is_control, footer.is_control) == (True, False, True)
    assert (header.base_offset, records.base_offset, footer.base_offset) == (0, 1, 2)
    (record,) = iterate(content, 0, header.size_bytes)
    kind, message = decode_control(record.key, record.value)
    assert (kind, message.last_contained_log_timestamp) == (ControlType.SNAPSHOT_HEADER, 4)
    assert list(read_records(content)) == [FEATURES[0][0]]


def test_the_first_batch_says_who_leads_in_which_epoch(tmp_path):
    with opened(tmp_path) as store:
        buffer, batch = next(iter(store._log._log.batches()))
        assert (batch.is_control, batch.leader_epoch) == (True, 1)
        (record,) = iterate(buffer, 0, batch.size_bytes)
        kind, message = decode_control(record.key, record.value)
        assert (kind, message.leader_id, [one.voter_id for one in message.voters]) == (
            ControlType.LEADER_CHANGE,
            1,
            [1],
        )
        assert read(store._log.directory).leader_epoch == 1


def test_the_epoch_goes_on_from_the_higher_of_file_and_log(tmp_path):
    with opened(tmp_path):
        pass
    path = tmp_path / "__cluster_metadata-0" / "quorum-state"
    path.write_text(path.read_text().replace('"leaderEpoch":1', '"leaderEpoch":7'))
    with opened(tmp_path) as store:
        assert store.epoch == 8
    path.unlink()
    with opened(tmp_path) as store:
        assert store.epoch == 9


def test_the_newest_snapshot_and_the_log_after_it_make_the_image(tmp_path):
    with opened(tmp_path) as store:
        store.create_topic("in-the-log")
        middle = store.next_offset
        store.create_topic("after-the-snapshot")
    known = FeatureLevelRecord(name="metadata.version", feature_level=30)
    snapshot_file(tmp_path, 3, 1, [known, TopicRecord(name="old", topic_id=b"o" * 16)])
    snapshot_file(tmp_path, middle, 1, [known, TopicRecord(name="in-the-snapshot", topic_id=b"s" * 16)])
    (tmp_path / "__cluster_metadata-0" / "00000000000000000009-0000000001.checkpoint.part").write_bytes(b"half")
    with opened(tmp_path) as store:
        assert set(store.image.topics) == {"in-the-snapshot", "after-the-snapshot"}


def test_a_snapshot_beyond_the_log_is_refused(tmp_path):
    with opened(tmp_path):
        pass
    snapshot_file(tmp_path, 1000, 1, [FEATURES[0][0]])
    broker = Opened(tmp_path)
    with pytest.raises(MetadataLogError, match="a snapshot ends at offset 1000"):
        broker.store.start()
    broker.crash()


def test_a_damaged_snapshot_is_refused_with_its_place(tmp_path):
    with opened(tmp_path):
        pass
    path = snapshot_file(tmp_path, 3, 1, [FEATURES[0][0]])
    content = bytearray(path.read_bytes())
    content[120] ^= 1
    path.write_bytes(content)
    broker = Opened(tmp_path)
    with pytest.raises(MetadataLogError, match="cannot be read by this version"):
        broker.store.start()
    broker.crash()


def test_a_record_of_a_later_kafka_is_refused_with_its_place(tmp_path):
    broker = Opened(tmp_path).start()
    broker.store._log._append(build([(None, b"\x01\x7f\x00\x00", 1, ())], leader_epoch=1), 1)
    broker.crash()
    broker = Opened(tmp_path)
    with pytest.raises(MetadataLogError, match="no metadata record has the type 127"):
        broker.store.start()
    broker.crash()


@pytest.mark.parametrize(
    ("topic_id", "number", "reason"),
    [
        (b"t" * 16, 2**31 - 1, "names partition 2147483647 of topic t, whose partition 0 has no record"),
        (b"t" * 16, -5, "names partition -5 of topic t"),
        (b"u" * 16, 0, "which does not exist"),
    ],
)
def test_a_damaged_number_of_a_partition_is_refused_with_file_and_offset(tmp_path, topic_id, number, reason):
    broker = Opened(tmp_path).start()
    records = [TopicRecord(name="t", topic_id=b"t" * 16), PartitionRecord(topic_id=topic_id, partition_id=number)]
    values = [encode_metadata(record, 0) for record in records]
    first = broker.store._log.append(values, 1)
    broker.crash()
    file = tmp_path / "__cluster_metadata-0" / "00000000000000000000.log"
    broker = Opened(tmp_path)
    with pytest.raises(MetadataLogError, match=reason) as refused:
        broker.store.start()
    broker.crash()
    assert str(refused.value).startswith(f"{file}: the record at offset {first + 1} ")
    found = first_bad_record(file.parent)
    assert found is not None
    assert found[0] == file
    assert f"offset {first + 1}" in found[1]
    assert reason in found[1]


def test_a_damaged_number_in_a_snapshot_is_refused_with_its_file(tmp_path):
    with opened(tmp_path):
        pass
    topic = TopicRecord(name="t", topic_id=b"t" * 16)
    path = snapshot_file(tmp_path, 3, 1, [FEATURES[0][0], topic, PartitionRecord(topic_id=b"t" * 16, partition_id=7)])
    broker = Opened(tmp_path)
    with pytest.raises(MetadataLogError, match="partition 7 of topic t, whose partition 0 has no record") as refused:
        broker.store.start()
    broker.crash()
    assert str(refused.value).startswith(f"{path}: the record at offset 3 ")
    found = first_bad_record(path.parent)
    assert found is not None
    assert found[0] == path


def test_a_torn_tail_is_cut_and_the_rest_kept(tmp_path):
    broker = Opened(tmp_path).start()
    broker.store.create_topic("whole")
    end = broker.store.next_offset
    broker.store.create_topic("torn")
    broker.crash()
    path = tmp_path / "__cluster_metadata-0" / "00000000000000000000.log"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)
    with opened(tmp_path) as store:
        assert set(store.image.topics) == {"whole"}
        assert store.image.last_offset >= end


def test_a_dynamic_quorum_keeps_its_version_and_voters(tmp_path):
    """What Kafka's `format --standalone` writes (KIP-853): version and voters as control records, quorum-state 1."""
    broker = Opened(tmp_path).start()
    log = broker.store._log
    voters = VotersRecord(voters=[Voter(voter_id=1, voter_directory_id=b"d" * 16)])
    for kind, message in (
        (ControlType.KRAFT_VERSION, KRaftVersionRecord(kraft_version=1)),
        (ControlType.KRAFT_VOTERS, voters),
    ):
        log._append(build([(*encode_control(kind, message), 1, ())], leader_epoch=1, control=True), 1)
    broker.stop()
    (tmp_path / "__cluster_metadata-0" / "quorum-state").write_text(
        '{"leaderId":1,"leaderEpoch":5,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )
    with opened(tmp_path) as store:
        assert (store.kraft_version, store.voter_directory_id, store.epoch) == (1, b"d" * 16, 6)
        state = read(store._log.directory)
        assert (state.version, state.leader_epoch) == (1, 6)


def test_replay_of_producer_ids_is_the_next_free_one():
    replayer = Replayer(Image())
    replayer.apply(ProducerIdsRecord(broker_id=1, next_producer_id=4000))
    assert replayer.image.next_producer_id == 4000
