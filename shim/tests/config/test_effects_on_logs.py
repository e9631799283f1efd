"""What the options of logs do, in a broker whose clock the test moves, or in a log."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim.clock import RealClock
from kafka_shim.config import MAX_INT64, SYNONYMS, BrokerConfig, TopicConfig
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.faults import Faults
from kafka_shim.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kafka_shim.storage.compaction import Round
from kafka_shim.storage.logs import Logs
from kafka_shim.storage.offset_checkpoints import OffsetCheckpoints
from kafka_shim.storage.throttle import Throttle
from kafka_shim.tests.produced import batch, fetch, make_topic, produce
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, put, refused
from kafka_shim.wire_client import Connection

HOUR_MS = 3_600_000
# Broker option -> its value, and what the topics have of it. Each unit of a family is one entry.
DEFAULTS_OF_TOPICS = {
    "compression.gzip.level": ("3", 3),
    "compression.lz4.level": ("4", 4),
    "compression.type": ("zstd", "zstd"),
    "compression.zstd.level": ("5", 5),
    "log.cleaner.delete.retention.ms": ("6", 6),
    "log.cleaner.max.compaction.lag.ms": ("7", 7),
    "log.cleaner.min.cleanable.ratio": ("0.25", 0.25),
    "log.cleaner.min.compaction.lag.ms": ("8", 8),
    "log.cleanup.policy": ("compact", ("compact",)),
    "log.flush.interval.messages": ("9", 9),
    "log.flush.interval.ms": ("10", 10),
    "log.flush.scheduler.interval.ms": ("11", 11),
    "log.index.interval.bytes": ("12", 12),
    "log.index.size.max.bytes": ("1200", 1200),
    "log.message.timestamp.after.max.ms": ("13", 13),
    "log.message.timestamp.before.max.ms": ("14", 14),
    "log.message.timestamp.type": ("LogAppendTime", "LogAppendTime"),
    "log.retention.bytes": ("15", 15),
    "log.retention.hours": ("16", 16 * HOUR_MS),
    "log.retention.minutes": ("17", 17 * 60_000),
    "log.retention.ms": ("18", 18),
    "log.roll.hours": ("19", 19 * HOUR_MS),
    "log.roll.jitter.hours": ("20", 20 * HOUR_MS),
    "log.roll.jitter.ms": ("21", 21),
    "log.roll.ms": ("22", 22),
    "log.segment.bytes": ("2000000", 2_000_000),
    "log.segment.delete.delay.ms": ("23", 23),
    "message.max.bytes": ("24", 24),
}


@pytest.mark.option(
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "log.cleaner.delete.retention.ms",
    "log.cleaner.max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio",
    "log.cleaner.min.compaction.lag.ms",
    "log.cleanup.policy",
    "log.flush.interval.messages",
    "log.flush.interval.ms",
    "log.flush.scheduler.interval.ms",
    "log.index.interval.bytes",
    "log.index.size.max.bytes",
    "log.message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.type",
    "log.retention.bytes",
    "log.retention.hours",
    "log.retention.minutes",
    "log.retention.ms",
    "log.roll.hours",
    "log.roll.jitter.hours",
    "log.roll.jitter.ms",
    "log.roll.ms",
    "log.segment.bytes",
    "log.segment.delete.delay.ms",
    "message.max.bytes",
)
def test_option_of_the_broker_is_in_force_for_topics_without_one() -> None:
    """What a topic's option does is shown where that option has its test."""
    topic_option = {name: topic for topic, synonyms in SYNONYMS.items() for name, _ in synonyms}
    for name, (text, value) in DEFAULTS_OF_TOPICS.items():
        config = TopicConfig(BrokerConfig.parse({name: text}))
        assert getattr(config, topic_option[name].replace(".", "_")) == value, name


@pytest.mark.option("log.initial.task.delay.ms", "log.retention.check.interval.ms")
def test_retention_begins_after_the_first_delay_and_comes_again_at_its_interval() -> None:
    options = {"log_initial_task_delay_ms": 1000, "log_retention_check_interval_ms": 5000}
    with Broker(clock="virtual", **options) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t", 1, retention_ms="1")

        def starts_at(offset: int) -> bool:
            return fetch(client, "t", 0, offset).log_start_offset == offset

        def add() -> None:
            assert produce(client, "t", 0, batch(b"a", timestamp_ms=broker.clock.now_ms())).error_code == 0

        add()
        broker.clock.advance(999)
        assert starts_at(0)
        broker.clock.advance(1)
        assert starts_at(1)
        add()
        broker.clock.advance(4999)
        assert starts_at(1)
        broker.clock.advance(1)
        assert starts_at(2)


@pytest.mark.option("log.initial.task.delay.ms", "log.flush.offset.checkpoint.interval.ms")
def test_high_watermarks_are_written_at_the_interval_of_recovery_points(tmp_path: Path) -> None:
    options = {"log_initial_task_delay_ms": 1000, "log_flush_offset_checkpoint_interval_ms": 5000}
    file = tmp_path / "replication-offset-checkpoint"
    with Broker(data_dir=tmp_path, clock="virtual", **options) as broker, Connection(broker.bootstrap_servers) as it:
        make_topic(it, "t", 1)
        produce(it, "t", 0, batch(b"a"))
        broker.clock.advance(999)
        assert not file.exists() or "t 0 1" not in file.read_text().splitlines()
        broker.clock.advance(1)
        assert "t 0 1" in file.read_text().splitlines()
        produce(it, "t", 0, batch(b"b"))
        broker.clock.advance(4999)
        assert "t 0 1" in file.read_text().splitlines()
        broker.clock.advance(1)
        assert "t 0 2" in file.read_text().splitlines()


@pytest.mark.option("log.flush.offset.checkpoint.interval.ms")
def test_without_an_interval_recovery_points_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Kafka; they were written at each turn of the loop, which never rested."""
    written: list[object] = []
    config = BrokerConfig(log_flush_offset_checkpoint_interval_ms=0, log_initial_task_delay_ms=0)
    logs = Logs(config, RealClock(), Faults())
    monkeypatch.setattr(OffsetCheckpoints, "write_aside", lambda checkpoints: written.append(checkpoints))  # noqa: PLW0108

    async def turns() -> None:
        logs.tasks.start(config)
        for _ in range(100):
            await asyncio.sleep(0)
        logs.tasks.stop()

    asyncio.run(turns())
    assert written == [logs.checkpoints]


@pytest.mark.option("producer.id.expiration.ms", "producer.id.expiration.check.interval.ms")
def test_producer_that_writes_nothing_is_forgotten_at_the_check_after_its_time() -> None:
    options = {"producer_id_expiration_ms": 5000, "producer_id_expiration_check_interval_ms": 2000}
    with Broker(clock="virtual", **options) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t", 1)

        def producers() -> list[int]:
            request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
            (partition,) = client.request(request, 0).topics[0].partitions
            return [one.producer_id for one in partition.active_producers]

        now_ms = broker.clock.now_ms()
        data = batch(b"a", timestamp_ms=now_ms, producer_id=7, producer_epoch=0, base_sequence=0)
        assert produce(client, "t", 0, data).error_code == 0
        broker.clock.advance(5999)
        assert producers() == [7]
        broker.clock.advance(1)
        assert producers() == []


@pytest.mark.option("log.cleaner.enable", "log.cleaner.backoff.ms", "topic:cleanup.policy")
@pytest.mark.parametrize(("is_enabled", "backoff_ms"), [(True, 1000), (False, 1000), (True, 90_000)])
def test_compaction_looks_for_work_at_its_interval_where_it_is_enabled(is_enabled: bool, backoff_ms: int) -> None:
    options = {"log_cleaner_enable": is_enabled, "log_cleaner_backoff_ms": backoff_ms}
    with Broker(clock="virtual", **options) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(
            client, "t", 1, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", segment_ms="1", retention_ms="1"
        )
        began_ms = broker.clock.now_ms()
        for number in range(3):
            data = bytes(_keyed(b"k", b"%d" % number, broker.clock.now_ms()))
            assert produce(client, "t", 0, data).error_code == 0
            broker.clock.advance(10)
        stored = Path(broker.data_dir) / "t-0" / f"{0:020d}.log"
        before = stored.stat().st_size
        broker.clock.advance(999 - (broker.clock.now_ms() - began_ms))
        assert stored.stat().st_size == before
        broker.clock.advance(2000)
        is_cleaned = fetch(client, "t", 0, 0).records is not None and not _has_value(broker, b"0")
        assert is_cleaned is (is_enabled and backoff_ms == 1000)


def _keyed(key: bytes, value: bytes, timestamp_ms: int) -> bytes:
    from kafka_shim.cext.records import build

    return bytes(build([(key, value, timestamp_ms, ())]))


def _has_value(broker: Broker, value: bytes) -> bool:
    from kafka_shim.cext.batch import scan_all
    from kafka_shim.cext.records import iterate

    for path in sorted((Path(broker.data_dir) / "t-0").glob("*.log")):
        data = path.read_bytes()
        for header in scan_all(data):
            if any(record.value == value for record in iterate(data, header.position, header.end_position)):
                return True
    return False


def begun(disk: Disk) -> Round:
    from kafka_shim.storage.candidates import examine

    log = disk.open()
    put(log, b"a", key=b"k")
    log.roll(NOW_MS)
    assert disk.logs is not None
    return disk.logs.cleaner.begin(examine(log, None, NOW_MS))


@pytest.mark.option("log.cleaner.dedupe.buffer.size", "log.cleaner.io.buffer.load.factor")
def test_map_of_keys_has_its_size_and_is_as_full_as_allowed(make_disk: Callable[..., Disk]) -> None:
    def capacity(**options: object) -> int:
        return begun(make_disk({"cleanup.policy": "compact"}, **options))._map.capacity

    whole = capacity()
    assert capacity(log_cleaner_io_buffer_load_factor=0.45) == pytest.approx(whole / 2, rel=0.01)
    assert capacity(log_cleaner_dedupe_buffer_size=134217728 // 4) == pytest.approx(whole / 4, rel=0.01)
    # Kafka allows these too; compaction goes on.
    assert capacity(log_cleaner_io_buffer_load_factor=1.0) == pytest.approx(whole * 0.99 / 0.9, rel=0.01)
    for factor in (0.0, float("nan")):
        assert capacity(log_cleaner_io_buffer_load_factor=factor) == pytest.approx(whole * 0.01 / 0.9, rel=0.01)


@pytest.mark.option("log.cleaner.dedupe.buffer.size")
def test_map_of_keys_takes_two_gigabytes_at_most(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Kafka. A size near the greatest of a LONG, which the table of slots cannot have, held the loop for good."""
    sizes: list[int] = []

    def no_map(map_bytes: int, *rest: object) -> None:
        sizes.append(map_bytes)

    monkeypatch.setattr("kafka_shim.storage.compaction.OffsetMap", no_map)
    begun(make_disk({"cleanup.policy": "compact"}, log_cleaner_dedupe_buffer_size=MAX_INT64))
    assert sizes == [0x7FFFFFFF]


@pytest.mark.option("log.cleaner.io.max.bytes.per.second")
def test_compaction_waits_by_its_rate(make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch) -> None:
    rates = []
    monkeypatch.setattr(
        "kafka_shim.storage.cleaner.Throttle", lambda rate, clock: rates.append(rate) or Throttle(rate, clock)
    )
    begun(make_disk({"cleanup.policy": "compact"}, log_cleaner_io_max_bytes_per_second=5000.0))
    assert rates == [5000.0]


@pytest.mark.option("topic:compression.gzip.level", "topic:compression.lz4.level", "topic:compression.zstd.level")
@pytest.mark.parametrize(("codec", "fast", "small"), [("gzip", 1, 9), ("lz4", 1, 12), ("zstd", -50, 19)])
def test_higher_level_compresses_better(make_disk: Callable[..., Disk], codec: str, fast: int, small: int) -> None:
    value = b"".join(b"%d a word and another %d " % (number * number % 977, number % 13) for number in range(3000))
    sizes = []
    for level in (fast, small):
        log = make_disk({"compression.type": codec, f"compression.{codec}.level": str(level)}).open()
        put(log, value)
        sizes.append(log.size_bytes)
    assert sizes[1] < sizes[0] < len(value)


@pytest.mark.option("topic:index.interval.bytes")
@pytest.mark.parametrize(("interval_bytes", "entries"), [(0, 9), (1000, 4), (4096, 1)])
def test_index_has_an_entry_after_each_interval(
    make_disk: Callable[..., Disk], interval_bytes: int, entries: int
) -> None:
    log = make_disk({"index.interval.bytes": str(interval_bytes)}).open()
    for _ in range(10):
        put(log, b"z" * 600)
    assert log.active.offset_index.count == entries


@pytest.mark.option("topic:internal.segment.bytes")
def test_segments_of_kafkas_own_tests_may_be_smaller(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"internal.segment.bytes": "200"}).open()
    for _ in range(6):
        put(log, b"z" * 50)
    assert len(log.segments) > 2
    assert all(segment.size_bytes <= 200 for segment in log.segments)


@pytest.mark.option("topic:message.timestamp.after.max.ms")
def test_record_from_the_future_is_refused(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"message.timestamp.after.max.ms": "1000"}).open()
    assert put(log, b"a", timestamp=NOW_MS + 1000).base_offset == 0
    with refused(ErrorCode.INVALID_TIMESTAMP):
        put(log, b"a", timestamp=NOW_MS + 1001)


@pytest.mark.option("topic:max.message.bytes")
def test_batch_over_the_limit_is_refused(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"max.message.bytes": "500"}).open()
    put(log, b"z" * 300)
    with refused(ErrorCode.MESSAGE_TOO_LARGE):
        put(log, b"z" * 600)


@pytest.mark.option("topic:segment.bytes", "topic:segment.ms")
def test_segments_end_by_size_and_time(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"segment.bytes": "1048576", "segment.ms": "5000"}).open()
    for _ in range(11):
        put(log, os.urandom(100_000))
    assert [segment.base_offset for segment in log.segments] == [0, 10]
    put(log, b"a", timestamp=NOW_MS + 5000, now_ms=NOW_MS + 5000)
    assert len(log.segments) == 2
    put(log, b"a", timestamp=NOW_MS + 5001, now_ms=NOW_MS + 5001)
    assert len(log.segments) == 3


@pytest.mark.option("log.dir", "log.dirs", "metadata.log.dir")
def test_partitions_and_the_metadata_log_are_where_the_options_say(tmp_path: Path) -> None:
    one, two, three = (str(tmp_path / name) for name in ("one", "two", "three"))
    with Broker(clock="virtual", log_dirs=f"{one},{two}", metadata_log_dir=two) as broker:
        with Connection(broker.bootstrap_servers) as client:
            make_topic(client, "t", 4)
        found = {path.name: path.parent.name for path in tmp_path.glob("*/*") if path.is_dir()}
    assert found["__cluster_metadata-0"] == "two"
    assert sorted(found[f"t-{number}"] for number in range(4)) == ["one", "one", "two", "two"]
    with Broker(clock="virtual", log_dir=three):
        assert (tmp_path / "three" / "__cluster_metadata-0").is_dir()
