"""Apache Kafka opens, without a complaint, the directory of a shim that met failing system calls and was killed."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.cext.records import build, iterate
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.targets import make, requests
from kafka_shim.tests.storage.fault_injection import KINDS, Injector
from kafka_shim.wire_client import Connection

FAULTS, MOST_CALLS, RECORD_BYTES = 30, 25, 8_000
TOPICS = {"plain": {}, "again": {}, "compact": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}}
# What Kafka says of its files, apart from what any broker says that was killed.
OF_FILES = re.compile(r" (?:WARN|ERROR) .*(?:LogLoader|UnifiedLog|LocalLog|LogSegment|Index|ProducerState|LogManager)")


def key_of(value: bytes) -> bytes:
    return b"k%d" % (int(value.split()[0]) % 50)


class Writer:
    """One idempotent producer for each topic, and what was acknowledged to it by offset."""

    def __init__(self, client: Connection, broker: Broker) -> None:
        self._client = client
        self._broker = broker
        self._number = 0
        request = requests.make("InitProducerId", transactional_id=None, transaction_timeout_ms=60_000)
        self._producers = {topic: client.request(request, 4) for topic in TOPICS}
        self._sequences = dict.fromkeys(TOPICS, 0)
        self.acknowledged: dict[str, dict[int, bytes]] = {topic: {} for topic in TOPICS}

    def write(self, topic: str) -> None:
        """Send one record until it is acknowledged, as a producer does."""
        self._number += 1
        value = (b"%d " % self._number).ljust(RECORD_BYTES, b".")
        producer = self._producers[topic]
        batch = build(
            [(key_of(value), value, 1, ())],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=self._sequences[topic],
        )
        while True:
            answer = self._client.request(requests.produce(topic, 0, batch), 9)
            told = answer.responses[0].partition_responses[0]
            if not told.error_code:
                break
            assert told.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            self._broker.call(self._broker.state.logs.reopen_offline)
        assert told.base_offset not in self.acknowledged[topic]
        self.acknowledged[topic][told.base_offset] = value
        self._sequences[topic] += 1


def storm(broker: Broker, injector: Injector, seed: int) -> dict[str, dict[int, bytes]]:
    """Write while one call in a while fails. Returns what was acknowledged."""
    chance = random.Random(seed)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        for topic, options in TOPICS.items():
            requests.create_topic(
                client, topic, 1, {"segment.bytes": "1048576", "index.interval.bytes": "1", **options}
            )
        writer = Writer(client, broker)
        for _ in range(FAULTS):
            injector.fired, injector.kind = "", chance.choice(KINDS)
            injector.nth = injector.count + chance.randrange(1, MOST_CALLS)
            injector.is_active = True
            while not injector.fired:
                writer.write(chance.choice(sorted(TOPICS)))
            injector.is_active = False
            if chance.random() < 0.2:
                broker.call(broker.state.logs.checkpoints.write_aside)
    return writer.acknowledged


def stored(bootstrap: str, topic: str) -> dict[int, bytes]:
    """All records of the topic's partition, by offset."""
    found: dict[int, bytes] = {}
    with Connection(bootstrap, timeout_s=60) as client:
        offset = 0
        while True:
            answer: Any = client.request(requests.fetch(topic, 0, offset, max_bytes=1 << 24), 12)
            part = answer.responses[0].partitions[0]
            assert part.error_code == 0
            if not part.records:
                return found
            for record in iterate(bytes(part.records)):
                found[record.offset] = bytes(record.value or b"")
            offset = max(found) + 1


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak), pytest.param(3, marks=pytest.mark.soak)])
def test_kafka_opens_what_failing_calls_and_a_kill_left(tmp_path: Path, seed: int) -> None:
    injector = Injector()
    with injector.installed(), Broker(data_dir=tmp_path / "live") as broker:
        acknowledged = storm(broker, injector, seed)
        # What SIGKILL leaves is what the files hold at this moment.
        broker.call(shutil.copytree, tmp_path / "live", tmp_path / "data")
    with make("kafka-native", data_dir=tmp_path / "data") as kafka:
        complaints = [line for line in kafka.log().splitlines() if OF_FILES.search(line)]
        assert complaints == []
        for topic, values in acknowledged.items():
            found = stored(kafka.bootstrap, topic)
            assert found.items() <= values.items()
            newest = {key_of(value): offset for offset, value in sorted(values.items())}
            wanted = newest.values() if topic == "compact" else values
            assert {offset for offset in wanted if offset not in found} == set()
