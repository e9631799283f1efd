"""Snapshots of the metadata log: whole, enough for a start, and bounded on the disk."""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from kafka_shim.metadata import snapshots
from kafka_shim.metadata.features import METADATA_VERSION, record_version
from kafka_shim.metadata.image import RESOURCE_TOPIC, Image
from kafka_shim.metadata.log import MetadataLog, MetadataLogError, read_records, snapshot_bytes
from kafka_shim.metadata.replay import Replayer
from kafka_shim.metadata.snapshots import ImageView, SnapshotGenerator, image_records
from kafka_shim.protocol.records.access_control_entry_record import AccessControlEntryRecord
from kafka_shim.protocol.records.begin_transaction_record import BeginTransactionRecord
from kafka_shim.protocol.records.client_quota_record import ClientQuotaRecord, EntityData
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.protocol.records.end_transaction_record import EndTransactionRecord
from kafka_shim.protocol.records.user_scram_credential_record import UserScramCredentialRecord
from kafka_shim.scheduler import Scheduler
from kafka_shim.targets.waiting import wait_until
from kafka_shim.tests.metadata.opened import Opened, opened
from kafka_shim.tests.metadata.test_store import facts
from kafka_shim.tests.no_memory import no_memory_left

QUOTA = ClientQuotaRecord(
    entity=[EntityData(entity_type="user", entity_name=None)], key="producer_byte_rate", value=1.0
)
ACL = AccessControlEntryRecord(id=b"a" * 16, resource_name="r", principal="User:x", host="*")
SCRAM = UserScramCredentialRecord(name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096)


def fill(store):
    store.create_topic("kept", 3, 1, {"retention.ms": "5"})
    store.create_topic("a.b")
    store.create_topic("gone")
    store.delete_topic("gone")
    store.next_producer_id_block()
    store.commit([QUOTA, ACL, SCRAM])


def fill_more(store):
    for _ in range(10):
        store.next_producer_id_block()


def checkpoints(directory):
    return sorted(path.name for path in (directory / "__cluster_metadata-0").glob("*.checkpoint"))


def fields(record):
    return {name: getattr(record, name) for name in record.__slots__}


def everything(image):
    """All of an image, comparable."""
    topics = {
        name: (topic.topic_id, [{key: getattr(one, key) for key in one.__slots__} for one in topic.partitions])
        for name, topic in image.topics.items()
    }
    records = [image.brokers, image.controllers, image.acls, image.scram, image.delegation_tokens]
    kept = [{key: repr(fields(record)) for key, record in some.items()} for some in records]
    return topics, image.configs, image.features, image.quotas, image.next_producer_id, image.colliding_names, kept


def test_the_records_of_an_image_make_an_equal_one(tmp_path):
    with opened(tmp_path) as store:
        fill(store)
        level = store.image.features[METADATA_VERSION]
        records = [(record, record_version(record, level)) for record in image_records(ImageView(store.image))]
        again = Image()
        replayer = Replayer(again)
        for record in read_records(snapshot_bytes(records, 1)):
            replayer.apply(record)
        assert everything(again) == everything(store.image)
        assert again.partition_count == store.image.partition_count


def test_a_snapshot_is_made_when_enough_was_appended_and_a_start_needs_nothing_before_it(tmp_path, monkeypatch):
    with opened(tmp_path, metadata_log_max_record_bytes_between_snapshots=4000) as store:
        fill(store)
        for number in range(200):
            store.create_topic(f"churn-{number % 2}")
            store.delete_topic(f"churn-{number % 2}")
            store.await_snapshot()
        before = facts(store)
        end = store.next_offset
    (*_, newest) = checkpoints(tmp_path)
    replayed = []
    apply = Replayer.apply
    monkeypatch.setattr(Replayer, "apply", lambda self, record: (replayed.append(record), apply(self, record)))
    with opened(tmp_path) as store:
        assert facts(store) == before
    assert end - int(newest[:20]) < 100
    assert len(replayed) < 150 < end


def test_a_snapshot_is_made_when_enough_time_went_by(tmp_path):
    broker = Opened(tmp_path, metadata_log_max_snapshot_interval_ms=1000).start()
    broker.store.create_topic("one")
    assert checkpoints(tmp_path) == []
    broker.clock.advance(1000)
    broker.store.create_topic("two")
    broker.stop()
    assert len(checkpoints(tmp_path)) == 1


def test_a_snapshot_is_made_when_time_goes_by_without_a_commit(tmp_path):
    broker = Opened(tmp_path, metadata_log_max_snapshot_interval_ms=1000).start()
    broker.store.run_periodically()
    broker.store.create_topic("one")
    broker.clock.advance(999)
    broker.store.await_snapshot()
    assert checkpoints(tmp_path) == []
    broker.clock.advance(1)
    broker.store.await_snapshot()
    assert [int(name[:20]) for name in checkpoints(tmp_path)] == [broker.store.next_offset]
    (path,) = (tmp_path / "__cluster_metadata-0").glob("*.checkpoint")
    written = path.stat().st_ino
    broker.clock.advance(100_000)
    broker.store.await_snapshot()
    assert (len(checkpoints(tmp_path)), path.stat().st_ino) == (1, written), "nothing new was committed"
    broker.store.create_topic("two")
    broker.store.await_snapshot()
    broker.store.create_topic("three")
    broker.clock.advance(1000)
    broker.store.await_snapshot()
    assert int(checkpoints(tmp_path)[-1][:20]) == broker.store.next_offset
    broker.stop()


def test_a_snapshot_is_made_when_time_goes_by_although_memory_ended_when_it_was_looked_at(tmp_path, monkeypatch):
    broker = Opened(tmp_path, metadata_log_max_snapshot_interval_ms=1000).start()
    broker.store.run_periodically()
    broker.clock.advance(500)
    broker.store.create_topic("one")

    with monkeypatch.context() as patch:
        patch.setattr(SnapshotGenerator, "committed", no_memory_left)
        patch.setattr(Scheduler, "after", no_memory_left)
        with pytest.raises(MemoryError):
            broker.clock.advance(500)
    broker.clock.advance(1000)
    broker.store.await_snapshot()
    assert len(checkpoints(tmp_path)) == 1
    broker.stop()


def test_no_snapshot_is_made_by_the_timer_within_a_metadata_transaction(tmp_path):
    broker = Opened(tmp_path, metadata_log_max_snapshot_interval_ms=1000).start()
    broker.store.run_periodically()
    broker.store.commit([BeginTransactionRecord(name="test")])
    broker.clock.advance(1000)
    broker.store.await_snapshot()
    assert checkpoints(tmp_path) == []
    broker.store.commit([EndTransactionRecord()])
    broker.store.await_snapshot()
    assert len(checkpoints(tmp_path)) == 1
    broker.stop()


def test_a_snapshot_is_made_one_interval_after_the_last_not_after_the_last_look(tmp_path):
    broker = Opened(tmp_path, metadata_log_max_snapshot_interval_ms=1000).start()
    broker.store.run_periodically()
    broker.store.commit([BeginTransactionRecord(name="test")])
    broker.clock.advance(1300)
    broker.store.commit([EndTransactionRecord()])
    broker.store.await_snapshot()
    assert len(checkpoints(tmp_path)) == 1
    broker.store.create_topic("two")
    broker.clock.advance(999)
    broker.store.await_snapshot()
    assert int(checkpoints(tmp_path)[-1][:20]) < broker.store.next_offset
    broker.clock.advance(1)
    broker.store.await_snapshot()
    assert int(checkpoints(tmp_path)[-1][:20]) == broker.store.next_offset
    broker.stop()


def test_a_snapshot_waits_until_its_records_are_on_the_disk(tmp_path, monkeypatch):
    """A power cut could leave a snapshot of what the log does not have."""
    broker = Opened(tmp_path, metadata_log_max_snapshot_interval_ms=1000).start()
    flushing = Future()
    with monkeypatch.context() as patch:
        patch.setattr(MetadataLog, "flushing", lambda log: flushing)
        broker.clock.advance(1000)
        broker.store.create_topic("one")
    writer = broker.store._snapshots._writer
    writer.join(0.2)
    assert writer.is_alive()
    assert checkpoints(tmp_path) == []
    flushing.set_result(None)
    broker.store.await_snapshot()
    assert len(checkpoints(tmp_path)) == 1
    broker.stop()


def test_a_commit_whose_snapshot_cannot_start_is_done_all_the_same(tmp_path, monkeypatch, caplog):
    """Its records are on the disk: a topic without its logs, or an answer with an error, would be a lie."""
    broker = Opened(tmp_path, metadata_log_max_record_bytes_between_snapshots=100).start()
    broker.store.await_snapshot()
    count = len(checkpoints(tmp_path))

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        broker.store.create_topic("t")
        broker.store.create_topic("v")
    (line,) = (record for record in caplog.records if "a later one replaces it" in record.message)
    assert line.exc_info is None
    assert line.message.endswith("can't start new thread")
    assert broker.logs.find("t", 0) is not None
    assert len(checkpoints(tmp_path)) == count
    wait_until(lambda: not broker.clock._work, "the end of all work: the clock waits for no thread that did not start")
    broker.clock.advance(snapshots.RETRY_MS)
    broker.store.create_topic("u", 3, 1)
    broker.store.await_snapshot()
    assert len(checkpoints(tmp_path)) == count + 1
    broker.stop()
    with opened(tmp_path) as store:
        assert {"t", "u"} <= store.image.topics.keys()


def test_an_old_snapshot_that_is_damaged_hinders_nothing(tmp_path):
    broker = Opened(tmp_path, metadata_log_max_record_bytes_between_snapshots=100).start()
    broker.store.await_snapshot()
    old = list((tmp_path / "__cluster_metadata-0").glob("*.checkpoint"))
    assert old
    # There are two if the first was whole before the start had written its last record.
    for path in old:
        path.write_bytes(b"damaged" * 20)
    broker.store.create_topic("t")
    broker.store.await_snapshot()
    broker.store.create_topic("u")
    broker.stop()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    with opened(tmp_path) as store:
        assert {"t", "u"} <= store.image.topics.keys()


def test_the_newest_snapshot_is_named_if_it_is_damaged(tmp_path):
    broker = Opened(tmp_path, metadata_log_max_record_bytes_between_snapshots=100).start()
    broker.store.await_snapshot()
    broker.stop()
    path = max((tmp_path / "__cluster_metadata-0").glob("*.checkpoint"))
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(MetadataLogError, match=f"^{path} cannot be read .* take the file from a backup .*CRC"):
        Opened(tmp_path).start()


def test_old_segments_and_snapshots_go_and_the_rest_is_enough(tmp_path):
    options = {
        "metadata_log_max_record_bytes_between_snapshots": 8000,
        "metadata_max_retention_bytes": 30000,
        "metadata_log_segment_bytes": 4000,
    }
    broker = Opened(tmp_path, **options).start()
    store = broker.store
    fill(store)
    for number in range(800):
        change = ConfigRecord(
            resource_type=RESOURCE_TOPIC, resource_name="kept", name="retention.ms", value=f"{number}"
        )
        store.commit([change])
        store.await_snapshot()
    before = facts(store)
    broker.stop()
    directory = tmp_path / "__cluster_metadata-0"
    segments = sorted(path.name for path in directory.glob("*.log"))
    assert int(segments[0][:20]) > 0
    assert sum(path.stat().st_size for path in directory.glob("*.*") if path.suffix in (".log", ".checkpoint")) < 60000
    with opened(tmp_path, **options) as store:
        assert facts(store) == before


def test_old_snapshots_go_until_the_rest_is_small_enough(tmp_path):
    """Together they are too large by a byte: the first goes, and the others stay."""
    with opened(tmp_path) as store:
        log = store._log
        for number in range(4):
            store.create_topic(f"t{number}")
            content = log.begin_snapshot(store._clock.now_ms(), 0)([(QUOTA, 0)])
            log.write_snapshot(store.image.last_offset + 1, store.image.last_epoch, content)
        before = checkpoints(tmp_path)
        room = log._log.size_bytes + sum((log.directory / name).stat().st_size for name in before)
        log.prune(room - 1, -1, store._clock.now_ms())
        assert checkpoints(tmp_path) == before[1:]


def test_a_crash_with_a_snapshot_half_written_leaves_the_one_before(tmp_path, monkeypatch):
    with opened(tmp_path, metadata_log_max_record_bytes_between_snapshots=100) as store:
        fill(store)
        before = facts(store)
    first = checkpoints(tmp_path)
    (tmp_path / "__cluster_metadata-0" / "00000000000000009999-0000000001.checkpoint.tmp").write_bytes(b"half")
    with opened(tmp_path) as store:
        assert facts(store) == before
    assert checkpoints(tmp_path) == first


def test_a_snapshot_that_a_full_disk_refuses_is_made_later(tmp_path, monkeypatch, caplog):
    replace = MetadataLog.write_snapshot

    def full(self, *arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(MetadataLog, "write_snapshot", full)
    broker = Opened(tmp_path, metadata_log_max_record_bytes_between_snapshots=100).start()
    fill(broker.store)
    broker.store.await_snapshot()
    monkeypatch.setattr(MetadataLog, "write_snapshot", replace)
    broker.store.create_topic("not-due-yet")
    broker.store.await_snapshot()
    assert (len(checkpoints(tmp_path)), caplog.text.count("a later one replaces it")) == (0, 1)
    broker.clock.advance(snapshots.RETRY_MS)
    broker.store.create_topic("more")
    broker.store.await_snapshot()
    assert len(checkpoints(tmp_path)) == 1
    broker.stop()


def test_a_snapshot_that_failed_is_due_again_without_new_records_of_its_size(tmp_path, monkeypatch, caplog):
    with opened(tmp_path) as store:
        fill(store)
        grown = store._log.bytes_after_snapshot
    options = {"metadata_log_max_record_bytes_between_snapshots": grown}

    broker = Opened(tmp_path, **options).start()
    broker.store.await_snapshot()
    count = len(checkpoints(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "image_records", no_memory_left)
        while "failed" not in caplog.text:
            fill_more(broker.store)
            broker.store.await_snapshot()
    (line,) = (record for record in caplog.records if "failed" in record.message)
    assert (line.exc_info, line.message[-11:]) == (None, "MemoryError")
    broker.clock.advance(snapshots.RETRY_MS)
    broker.store.next_producer_id_block()
    broker.store.await_snapshot()
    assert len(checkpoints(tmp_path)) == count + 1
    broker.stop()


def test_a_snapshot_that_finds_no_memory_as_it_begins_stays_due(tmp_path, monkeypatch):
    broker = Opened(tmp_path, metadata_log_max_record_bytes_between_snapshots=100).start()
    broker.store.await_snapshot()
    count = len(checkpoints(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.metadata.log.partial", no_memory_left)
        broker.store.create_topic("t")
    assert broker.store._log.bytes_after_snapshot >= 100
    broker.clock.advance(snapshots.RETRY_MS)
    broker.store.next_producer_id_block()
    broker.store.await_snapshot()
    assert len(checkpoints(tmp_path)) == count + 1
    broker.stop()


def test_a_snapshot_that_was_due_by_time_and_failed_does_not_wait_for_another_interval(tmp_path, monkeypatch):
    interval_ms = 10 * snapshots.RETRY_MS
    broker = Opened(tmp_path, metadata_log_max_snapshot_interval_ms=interval_ms).start()

    broker.clock.advance(interval_ms)
    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "image_records", no_memory_left)
        broker.store.create_topic("one")
        broker.store.await_snapshot()
    assert checkpoints(tmp_path) == []
    broker.clock.advance(snapshots.RETRY_MS)
    broker.store.create_topic("two")
    broker.store.await_snapshot()
    assert len(checkpoints(tmp_path)) == 1
    broker.stop()


def test_the_thread_of_a_snapshot_lets_go_of_the_interpreter_after_each_64_records(monkeypatch):
    pauses = []

    class Event(threading.Event):
        def wait(self, timeout=None):
            pauses.append(given)
            return super().wait(timeout)

    monkeypatch.setattr(snapshots, "threading", SimpleNamespace(Event=Event))
    given = 0
    for number in snapshots._patiently(iter(range(150))):
        given = number + 1
    assert pauses == [64, 128]
