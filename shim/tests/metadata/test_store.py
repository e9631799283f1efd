from __future__ import annotations

import asyncio
import errno
import os
import re
import shutil
from base64 import urlsafe_b64decode

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.faults import Faults
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kafka_shim.metadata.assignments import UNASSIGNED
from kafka_shim.metadata.image import RESOURCE_TOPIC
from kafka_shim.metadata.log import MetadataLogError
from kafka_shim.protocol.records.begin_transaction_record import BeginTransactionRecord
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.protocol.records.feature_level_record import FeatureLevelRecord
from kafka_shim.protocol.records.topic_record import TopicRecord
from kafka_shim.storage.results import StorageError
from kafka_shim.tests import descriptors
from kafka_shim.tests.appends import append_as_client
from kafka_shim.tests.metadata.opened import Opened, opened
from kafka_shim.tests.produced import batch
from kafka_shim.txn.producer_ids import ProducerIds


def facts(store):
    """What a restart must bring back."""
    image = store.image
    topics = {
        topic.name: (topic.topic_id, [(one.leader, one.replicas, one.directories) for one in topic.partitions])
        for topic in image.topics.values()
    }
    return topics, image.configs, image.features, image.next_producer_id, image.partition_count


def test_a_new_directory_finalises_what_kafka_finalises(tmp_path):
    with opened(tmp_path) as store:
        assert store.image.features == {
            "metadata.version": 30,
            "eligible.leader.replicas.version": 1,
            "group.version": 1,
            "share.version": 1,
            "streams.version": 1,
            "transaction.version": 2,
        }
        assert store.feature("group.version") == 1
        assert store.feature("no.such.feature") == 0


def test_topics_options_and_ids_are_back_after_a_clean_stop(tmp_path):
    with opened(tmp_path) as store:
        store.create_topic("one", 3, 1, {"retention.ms": "5"})
        store.create_topic("two")
        store.create_partitions("two", 4)
        store.create_topic("gone", configs={"retention.ms": "6"})
        store.delete_topic("gone")
        store.next_producer_id_block()
        before = facts(store)
    with opened(tmp_path) as store:
        assert facts(store) == before
        assert store.image.partition_count == 7
        assert store.topic_config("one").retention_ms == 5
        assert (RESOURCE_TOPIC, "gone") not in store.image.configs


def test_a_deleted_topics_options_are_unset_one_by_one(tmp_path, monkeypatch):
    """Kafka's broker, which reads the log at once, forgets none with RemoveTopicRecord."""
    with opened(tmp_path) as store:
        store.create_topic("t", configs={"retention.ms": "6", "cleanup.policy": "compact"})
        committed, commit = [], store.commit
        monkeypatch.setattr(store, "commit", lambda records, *rest: committed.extend(records) or commit(records, *rest))
        store.delete_topic("t")
        assert [type(record).__name__ for record in committed] == ["ConfigRecord"] * 2 + ["RemoveTopicRecord"]
        unset = {(record.resource_type, record.resource_name, record.name, record.value) for record in committed[:2]}
        assert unset == {(2, "t", "retention.ms", None), (2, "t", "cleanup.policy", None)}
        assert (RESOURCE_TOPIC, "t") not in store.image.configs
    with opened(tmp_path) as store:
        store.create_topic("t")
        assert store.image.config_of(RESOURCE_TOPIC, "t") == {}


def test_topics_are_back_after_a_crash_and_have_a_new_leader_epoch(tmp_path):
    broker = Opened(tmp_path).start()
    broker.store.create_topic("one", 2)
    before = facts(broker.store)
    broker.crash()
    with opened(tmp_path) as store:
        assert facts(store) == before
        assert [one.leader_epoch for one in store.topic("one").partitions] == [1, 1]
        assert store._logs.get("one", 0).leader_epoch == 1


def test_a_clean_restart_keeps_leader_epochs_and_begins_a_quorum_epoch(tmp_path):
    with opened(tmp_path) as store:
        store.create_topic("one")
        assert store.epoch == 1
    with opened(tmp_path) as store:
        assert store.epoch == 2
        assert store.topic("one").partitions[0].leader_epoch == 0


def test_a_partition_recorded_but_not_made_before_a_crash_is_made_at_the_start(tmp_path):
    faults = Faults()
    broker = Opened(tmp_path, faults=faults).start()

    def fail(*_, **__):
        raise RuntimeError

    broker.logs.create = fail
    with pytest.raises(RuntimeError):
        broker.store.create_topic("half", 2)
    broker.crash()
    assert not (tmp_path / "half-1").exists()
    with opened(tmp_path) as store:
        assert store._logs.get("half", 1).log_end_offset == 0


def test_a_deleted_name_is_free_at_once_and_gets_another_id(tmp_path):
    with opened(tmp_path) as store:
        first = store.create_topic("one").topic_id
        store.delete_topic("one")
        with pytest.raises(KafkaError) as error:
            store.topic("one")
        assert error.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(KafkaError) as error:
            store.topic_by_id(first)
        assert error.value.code is ErrorCode.UNKNOWN_TOPIC_ID
        assert store.create_topic("one").topic_id != first


def test_hooks_hear_of_topics_after_their_logs_are_there(tmp_path):
    heard = []
    with opened(tmp_path) as store:
        store.on_topic_created.append(lambda topic: heard.append((topic.name, store._logs.has(topic.name, 0))))
        store.on_partitions_added.append(lambda topic, first: heard.append((topic.name, first)))
        store.on_topic_deleted.append(lambda topic: heard.append((topic.name, store._logs.has(topic.name, 0))))
        store.create_topic("one")
        store.create_partitions("one", 3)
        store.delete_topic("one")
    assert heard == [("one", True), ("one", 1), ("one", False)]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("one", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("with_both.signs", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_a_refused_name_leaves_the_log_as_it_was(tmp_path, name, code):
    with opened(tmp_path) as store:
        store.create_topic("one")
        store.create_topic("with.both_signs")
        end = store.next_offset
        with pytest.raises(KafkaError) as error:
            store.create_topic(name)
        assert error.value.code is code
        assert store.next_offset == end


def test_internal_topics_have_kafkas_options(tmp_path):
    with opened(tmp_path, offsets_topic_num_partitions=4) as store:
        offsets = store.ensure_internal_topic(GROUP_METADATA_TOPIC)
        assert store.ensure_internal_topic(GROUP_METADATA_TOPIC) is offsets
        assert len(offsets.partitions) == 4
        assert store.image.config_of(RESOURCE_TOPIC, GROUP_METADATA_TOPIC) == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }
        assert len(store.auto_create_topic(TRANSACTION_STATE_TOPIC).partitions) == 50
        assert store.topic_config(TRANSACTION_STATE_TOPIC).compact


def test_topics_without_options_share_one_configuration(tmp_path):
    with opened(tmp_path) as store:
        store.create_topic("one")
        store.create_topic("two")
        assert store.topic_config("one") is store.topic_config("two")


def test_an_option_of_a_topic_takes_effect_in_its_log_at_once(tmp_path):
    with opened(tmp_path) as store:
        store.create_topic("one", 2)
        log = store._logs.get("one", 1)
        record = ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name="one", name="retention.ms", value="7")
        store.alter_configs([record])
        assert log.config.retention_ms == 7
        record.value = None
        store.alter_configs([record])
        assert log.config.retention_ms == 604800000


def test_producer_id_blocks_never_come_twice_not_even_after_a_crash(tmp_path):
    broker = Opened(tmp_path).start()
    assert broker.store.next_producer_id_block()[:2] == (0, 1000)
    assert broker.store.next_producer_id_block()[:2] == (1000, 1000)
    broker.crash()
    with opened(tmp_path) as store:
        assert store.next_producer_id_block()[:2] == (2000, 1000)


def test_the_last_producer_id_block_is_refused_instead_of_wrapping(tmp_path):
    with opened(tmp_path) as store:
        store.image.next_producer_id = 2**63 - 1001
        assert store.next_producer_id_block()[:2] == (2**63 - 1001, 1000)
        with pytest.raises(KafkaError) as error:
            store.next_producer_id_block()
        assert error.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize(("feature", "level"), [("metadata.version", 31), ("metadata.version", 6), ("new.feature", 1)])
def test_a_directory_of_an_unknown_level_is_refused(tmp_path, feature, level):
    with opened(tmp_path) as store:
        store.commit([FeatureLevelRecord(name=feature, feature_level=level)])
    broker = Opened(tmp_path)
    with pytest.raises(MetadataLogError, match=f"{feature} {level} is finalised here"):
        broker.store.start()
    broker.crash()


@pytest.mark.option("unstable.feature.versions.enable")
def test_a_directory_of_an_unreleased_level_opens_with_the_option_that_allows_it(tmp_path):
    with opened(tmp_path, unstable_feature_versions_enable=True) as store:
        store.commit([FeatureLevelRecord(name="metadata.version", feature_level=31)])
    with opened(tmp_path, unstable_feature_versions_enable=True) as store:
        assert store.image.features["metadata.version"] == 31


def test_a_directory_of_an_older_level_keeps_it_and_is_written_in_its_versions(tmp_path):
    with opened(tmp_path) as store:
        store.commit([FeatureLevelRecord(name="metadata.version", feature_level=14)])
    with opened(tmp_path) as store:
        assert store.feature("metadata.version") == 14
        store.create_topic("old", 2)
    with opened(tmp_path) as store:
        assert [one.directories for one in store.topic("old").partitions] == [(), ()]


def test_an_unfinished_metadata_transaction_is_aborted_at_the_start(tmp_path):
    broker = Opened(tmp_path).start()
    broker.store.commit([BeginTransactionRecord(name="half"), TopicRecord(name="ghost", topic_id=b"g" * 16)])
    broker.crash()
    with opened(tmp_path) as store:
        assert "ghost" not in store.image.topics
        store.create_topic("ghost")
    with opened(tmp_path) as store:
        assert "ghost" in store.image.topics


def test_two_directories_record_the_place_when_the_partition_is_there(tmp_path):
    with opened(tmp_path / "a", tmp_path / "b") as store:
        topic = store.create_topic("one", 4)
        assert {one.directories for one in topic.partitions} == {(UNASSIGNED,)}
        store.assignments.assign_all()
        places = [urlsafe_b64decode(store._logs.directory_id("one", number) + "==") for number in range(4)]
        assert [one.directories for one in topic.partitions] == [(place,) for place in places]
        assert len(set(places)) == 2
    with opened(tmp_path / "a", tmp_path / "b") as store:
        assert store._logs.get("one", 3).partition == 3


def test_the_place_of_a_partition_that_a_crash_left_unrecorded_is_recorded_at_the_start(tmp_path):
    broker = Opened(tmp_path / "a", tmp_path / "b").start()
    topic = broker.store.create_topic("one", 4)
    for number in range(4):
        broker.logs.get("one", number)
    assert {one.directories for one in topic.partitions} == {(UNASSIGNED,)}
    broker.crash()
    with opened(tmp_path / "a", tmp_path / "b") as store:
        places = [urlsafe_b64decode(store._logs.directory_id("one", number) + "==") for number in range(4)]
        assert [one.directories for one in store.image.topics["one"].partitions] == [(place,) for place in places]


def test_a_missing_directory_stops_the_start_instead_of_losing_its_records(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    with opened(first, second) as store:
        store.create_topic("one", 4)
        ids = [directory.directory_id for directory in store._logs.dirs]
    # A disk that is not mounted: the same path, and nothing there.
    second.rename(tmp_path / "unmounted")
    for directories in ((first, second), (first,)):
        broker = Opened(*directories)
        with pytest.raises(StorageError, match=f"{ids[1]}.* 2 partitions"):
            broker.start()
        broker.logs.stop()
    shutil.rmtree(second)
    (tmp_path / "unmounted").rename(second)
    with opened(first, second) as store:
        assert all(store._logs.has("one", partition) for partition in range(4))
    # Given up on purpose: empty directories stand for what was lost.
    for directory in second.glob("one-*"):
        (first / directory.name).mkdir()
    with opened(first) as store:
        assert all(store._logs.has("one", partition) for partition in range(4))


@pytest.mark.parametrize(("lost", "said"), [(1, "1 partition (one-1): "), (4, " ...): ")])
def test_a_missing_directory_is_told_with_how_many_partitions_it_holds(tmp_path, lost, said):
    """One was `1 partitions`, and `...` followed also where all were named."""
    first, second = tmp_path / "a", tmp_path / "b"
    with opened(first, second) as store:
        store.create_topic("one", 2 * lost)
    shutil.rmtree(second)
    broker = Opened(first)
    with pytest.raises(StorageError, match=re.escape(said)):
        broker.start()
    broker.logs.stop()


def test_the_partitions_of_a_failed_directory_are_offline_until_it_is_back(tmp_path, caplog):
    first, second = tmp_path / "a", tmp_path / "b"
    with opened(first, second) as store:
        store.create_topic("one", 4)
        store.create_topic("two", 2)
    second.rename(tmp_path / "broken")
    second.write_text("no directory")
    with opened(first, second) as store:
        logs = store._logs
        assert "3 partitions are offline until" in caplog.text
        offline = [partition for partition in range(4) if logs.is_offline("one", partition)]
        assert (len(offline), logs.offline_count) == (2, 3)
        with pytest.raises(KafkaError) as refused:
            logs.get("one", offline[0])
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert logs.find("one", offline[0]) is None
        # What is made now goes where it can; what is deleted is gone, whatever the directory holds.
        assert all(logs.get(topic.name, 0) for topic in (store.create_topic("three"), store.create_topic("four")))
        store.delete_topic("two")
        assert logs.offline_count == 2
        store.create_topic("two", 2)
    # Not even now, with the entry gone, are its partitions created again.
    broker = Opened(first)
    with pytest.raises(StorageError, match="2 partitions"):
        broker.start()
    broker.logs.stop()
    second.unlink()
    (tmp_path / "broken").rename(second)
    with opened(first, second) as store:
        assert store._logs.offline_count == 0
        assert all(store._logs.get(name, 0) for name in ("one", "two", "three", "four"))
        assert len(list(second.glob("two-*-stray"))) == 1


def test_a_directory_without_partitions_may_go(tmp_path):
    with opened(tmp_path / "a", tmp_path / "b") as store:
        store.create_topic("one", 1)
    with opened(tmp_path / "a") as store:
        assert store._logs.has("one", 0)


def test_a_fault_before_the_commit_changes_nothing_and_one_after_it_is_found_at_the_start(tmp_path):
    faults = Faults()
    broker = Opened(tmp_path, faults=faults).start()
    faults.arm("metadata.before_commit", "error", "UNKNOWN_SERVER_ERROR")
    with pytest.raises(KafkaError):
        broker.store.create_topic("never")
    faults.disarm("metadata.before_commit")
    faults.arm("metadata.after_append", "error", "UNKNOWN_SERVER_ERROR")
    with pytest.raises(KafkaError):
        broker.store.create_topic("later")
    broker.crash()
    with opened(tmp_path) as store:
        assert set(store.image.topics) == {"later"}


def test_a_disk_that_refuses_the_record_changes_nothing_and_the_stop_still_ends(tmp_path):
    faults = Faults()
    broker = Opened(tmp_path, faults=faults).start()
    faults.arm("log.before_write", "oserror", "ENOSPC")
    size_bytes = broker.store._log.bytes_after_snapshot
    for _ in range(2):
        with pytest.raises(KafkaError) as error:
            broker.store.create_topic("t")
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.store.image.topics == {}
    assert broker.store._log.bytes_after_snapshot == size_bytes, "nothing refused brings the next snapshot closer"
    broker.stop()
    with opened(tmp_path) as store:
        assert store.image.topics == {}


def test_a_disk_that_refuses_a_directory_leaves_the_topic_and_the_next_start_makes_it(tmp_path):
    broker = Opened(tmp_path).start()
    (tmp_path / "t-1").write_text("in the way")
    with pytest.raises(KafkaError) as error:
        broker.store.create_topic("t", 3)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.logs.has("t", 2)
    (tmp_path / "t-1").unlink()
    broker.stop()
    with opened(tmp_path) as store:
        assert store._logs.has("t", 1)


def test_logs_made_later_are_there_at_their_first_use_and_in_slices_for_the_rest(tmp_path, caplog):
    async def run(store):
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count())
        await store.await_log_changes()
        counting.cancel()
        return turns

    with opened(tmp_path) as store:
        (topic,) = store.create_topics([("t", [[1]] * 300, {"retention.ms": "5"})], later=True)
        store.create_topics([("gone", [[1]] * 300, {})], later=True)
        assert list(tmp_path.glob("t-*")) == []
        store.alter_configs([ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="7")])
        assert store._logs.get("t", 77).config.retention_ms == 7
        assert store._logs.find("t", 78).topic_id == topic.topic_id
        store.create_partitions("t", 310, later=True)
        store.delete_topic("gone")
        assert len(store._logs.names()) == 310
        assert asyncio.run(run(store)) >= 15
        assert len(list(tmp_path.glob("t-*"))) == len(list(store._logs.all())) == 310
        assert list(tmp_path.glob("gone-*")) == []
        (tmp_path / "u-1").write_text("in the way")
        store.create_topics([("u", [[1]] * 3, {})], later=True)
        asyncio.run(store.await_log_changes())
        assert "u-1 cannot be created" in caplog.text
        assert [store._logs.find("u", partition) is not None for partition in range(3)] == [True, False, True]
        (tmp_path / "u-1").unlink()
        assert store._logs.get("u", 1).topic_id == store.topic("u").topic_id, "its next use makes it"
        store.create_topics([("v", [[1]] * 3, {})], later=True)
    # As after a crash: what had not been made yet is made by the next start.
    with opened(tmp_path) as store:
        assert all(store._logs.get(name, partition) for name in "uv" for partition in range(3))


def test_logs_deleted_later_free_their_names_at_once_and_their_directories_in_slices(tmp_path):
    with opened(tmp_path) as store:
        logs = store._logs
        store.create_topic("t", 50)
        store.create_topic("u", 50)
        old = logs.get("t", 1)
        store.delete_topic("t", later=True)
        assert old.is_closed
        assert not logs.has("t", 1)
        assert len(list(tmp_path.glob("t-*-delete"))) == 0
        topic = store.create_topic("t", 2)
        assert [logs.get("t", partition).topic_id for partition in range(2)] == [topic.topic_id] * 2
        assert len(list(tmp_path.glob("t-*-delete"))) == 2
        asyncio.run(store.await_log_changes())
        assert len(list(tmp_path.glob("t-*-delete"))) == 50
        assert sorted(path.name for path in tmp_path.glob("t-?")) == ["t-0", "t-1"]
        store.delete_topic("u", later=True)
    # A stop leaves none behind that the next start would take for strays.
    assert len(list(tmp_path.glob("u-*-delete"))) == 50
    with opened(tmp_path) as store:
        assert [store._logs.has("t", partition) for partition in range(3)] == [True, True, False]
    assert list(tmp_path.glob("*-stray")) == []


@pytest.mark.parametrize("is_retried", [False, True], ids=["left over", "to be renamed again"])
def test_records_of_a_deleted_topic_do_not_come_back_where_its_name_is_used_again(tmp_path, monkeypatch, is_retried):
    """The system refuses to rename the old directory, and the process ends before that is tried again."""
    broker = Opened(tmp_path).start()
    broker.store.create_topic("t", 1)
    append_as_client(broker.logs.get("t", 0), batch(b"old"), now_ms=broker.clock.now_ms(), version=9)

    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        broker.store.delete_topic("t")
        if not is_retried:
            broker.logs.partitions.to_retire.clear()
        with pytest.raises(KafkaError) as refusal:
            broker.store.create_topic("t", 1)
    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    broker.crash()
    with opened(tmp_path) as store:
        log = store._logs.get("t", 0)
        assert (log.topic_id, log.log_end_offset) == (store.image.topics["t"].topic_id, 0)


def test_what_was_committed_is_on_the_disk_after_waiting(tmp_path):
    faults = Faults()
    synced = []
    faults.arm("log.before_fsync", lambda **facts: synced.append(facts["path"]))
    broker = Opened(tmp_path, faults=faults).start()
    synced.clear()

    async def create():
        broker.store.create_topic("a")
        broker.store.create_topic("b")
        await asyncio.gather(broker.store.flushed(), broker.store.flushed())
        await broker.store.flushed()

    asyncio.run(create())
    assert [path for path in synced if path.endswith(".log")] == [
        str(tmp_path / "__cluster_metadata-0" / "00000000000000000000.log")
    ]
    broker.stop()


@pytest.mark.parametrize("name", ["t", GROUP_METADATA_TOPIC])
def test_an_auto_created_topic_gets_its_directories_in_slices_after_the_answer(tmp_path, name):
    """A request that creates many partitions, such as Metadata or FindCoordinator, must not hold up all other
    clients."""
    with opened(tmp_path, num_partitions=300, offsets_topic_num_partitions=300) as store:

        async def check():
            create = store.auto_create_topic if name == "t" else store.ensure_internal_topic
            create(name)
            assert not list(tmp_path.glob(f"{name}-*"))
            (task,) = store._partition_logs.finishing
            turns = 0
            while not task.done():
                turns += 1
                await asyncio.sleep(0)
            assert turns > 2
            assert len(list(tmp_path.glob(f"{name}-*"))) == 300

        asyncio.run(check())


def test_a_stop_whose_records_a_full_disk_refuses_still_syncs_what_was_committed(tmp_path):
    faults = Faults()
    broker = Opened(tmp_path, faults=faults).start()
    broker.store.create_topic("t")
    broker.clock.advance(1)
    broker.store.run_periodically()
    awaited = []
    wait = broker.store.await_snapshot
    broker.store.await_snapshot = lambda: (awaited.append(True), wait())
    faults.arm("log.before_write", "oserror", "ENOSPC")
    broker.store.stop()
    faults.disarm()
    log = broker.logs.metadata_log
    assert log.recovery_point == log.log_end_offset > 0
    assert awaited
    assert not broker.store._snapshots._scheduler.is_scheduled("snapshot")
    broker.logs.stop()
    with opened(tmp_path) as store:
        assert set(store.image.topics) == {"t"}


@pytest.mark.parametrize("error", ["EIO", "EMFILE"])
def test_a_failed_fsync_fails_no_request_after_the_log_is_good_again(tmp_path, error):
    faults = Faults()
    broker = Opened(tmp_path, faults=faults).start()
    asyncio.run(broker.store.flushed())
    faults.arm("log.before_fsync", "oserror", error, nth=1)
    broker.store.create_topic("t")
    with pytest.raises(KafkaError) as caught:
        asyncio.run(broker.store.flushed())
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    faults.disarm()
    log = broker.logs.metadata_log
    if error == "EIO":
        # Nothing is committed, and no reader uses the log: this wait alone takes it offline, to be opened again.
        with pytest.raises(KafkaError):
            asyncio.run(broker.store.flushed())
        assert log.is_offline
        assert broker.logs.reopen_offline()
    asyncio.run(broker.store.flushed())
    assert log.recovery_point == log.log_end_offset
    broker.stop()


def test_a_log_that_lost_records_takes_no_more_until_a_restart(tmp_path, caplog):
    """They would refer to what was lost, and no start would get past them."""
    faults = Faults()
    broker = Opened(tmp_path, faults=faults).start()
    asyncio.run(broker.store.flushed())
    path = tmp_path / "__cluster_metadata-0" / f"{0:020d}.log"
    size_bytes = path.stat().st_size
    broker.store.create_topic("t")
    faults.arm("log.before_fsync", "oserror", "EIO", nth=1)
    for _ in range(2):
        with pytest.raises(KafkaError):
            asyncio.run(broker.store.flushed())
    faults.disarm()
    os.truncate(path, size_bytes)
    for _ in range(2):
        assert not broker.logs.reopen_offline()
    assert "whose changes are in force until a restart" in caplog.text
    with pytest.raises(KafkaError) as caught:
        broker.store.create_partitions("t", 3)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    broker.stop()
    with opened(tmp_path) as store:
        assert store.image.topics == {}
        store.create_topic("t")


def test_a_change_without_a_descriptor_left_is_carried_out_and_says_so(tmp_path):
    """It was answered with KAFKA_STORAGE_ERROR, and in force."""
    with opened(tmp_path) as store:
        store.create_topic("t")
        loop = asyncio.new_event_loop()

        def alter(value: str) -> None:
            store.alter_configs([ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value=value)])
            loop.run_until_complete(store.flushed())

        alter("6")  # imports what it needs
        with descriptors.none_left():
            alter("7")
        loop.close()
        assert store.topic_config("t").retention_ms == 7


def test_the_producer_ids_of_a_block_that_was_not_synced_are_given_up(tmp_path):
    faults = Faults()
    broker = Opened(tmp_path, faults=faults).start()
    asyncio.run(broker.store.flushed())
    ids = ProducerIds(broker.store.next_producer_id_block)
    faults.arm("log.before_fsync", "oserror", "EMFILE", nth=1)
    flushes = []
    assert ids.next(flushes) == 0
    with pytest.raises(OSError, match="open files"):
        flushes.pop().result(60)
    faults.disarm()
    assert ids.next(flushes) == 1000
    flushes.pop().result(60)
    assert (ids.next(flushes), flushes) == (1001, [])
    broker.stop()
