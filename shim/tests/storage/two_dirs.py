"""A broker's logs and metadata over two directories, between which partitions move."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig
from kafka_shim.faults import Faults
from kafka_shim.metadata.store import MetadataStore
from kafka_shim.storage import names
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.logs import Logs
from kafka_shim.tests.storage.conftest import NOW_MS, put

SMALL = {"segment.bytes": "2000", "file.delete.delay.ms": "1000", "retention.ms": "-1"}


def copied(directory: Path, copy: Path) -> None:
    """Copies what a kill leaves. A `.tmp` may take the place of its file meanwhile: the flusher thread goes on."""
    shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("*.tmp"))


class TwoDirs:
    """Logs and metadata over two directories, without a network, under a virtual clock."""

    def __init__(self, path: Path, **options: object) -> None:
        self.path = path
        self.options = options
        self.start()

    def start(self) -> None:
        dirs = tuple(str(self.path / name) for name in "ab")
        self.clock = VirtualClock(NOW_MS)
        self.faults = Faults()
        self.config = BrokerConfig(log_dirs=dirs, **self.options)
        self.logs = Logs(self.config, self.clock, self.faults)
        self.logs.open_dirs("AAAAAAAAQACAAAAAAAAAAQ")
        self.store = MetadataStore(self.config, self.clock, self.logs, self.faults)
        self.store.start()
        self.logs.start(self.store.lookup)
        self.store.create_missing_logs()
        self.store.register([])
        self.logs.run_periodically()

    def stop(self) -> None:
        self.store.stop()
        self.logs.stop()

    def crash(self) -> None:
        """Only what the operating system has is left; the broker comes back on a copy of it."""
        copy = self.path.with_name(f"{self.path.name}+")
        copied(self.path, copy)
        self.faults.disarm()
        self.stop()
        self.path = copy
        self.start()

    def make(self, **options: str) -> PartitionLog:
        topic = self.store.create_topic("t", 1, 1, {**SMALL, **options})
        self.clock.advance(100)
        assert topic.partitions[0].directories == (self.raw_id("a"),)
        return self.log

    @property
    def log(self) -> PartitionLog:
        return self.logs.get("t", 0)

    def dir_named(self, name: str) -> str:
        return str(self.path / name)

    def raw_id(self, name: str) -> bytes:
        from base64 import urlsafe_b64decode

        (one,) = [one for one in self.logs.dirs if one.path == self.dir_named(name)]
        return urlsafe_b64decode(one.directory_id + "==")

    def move(self, name: str) -> None:
        self.logs.move("t", 0, self.dir_named(name))

    def settle(self, done: Callable[[], bool] | None = None) -> None:
        """Let the move go on to its end."""
        for _ in range(2000):
            if done() if done is not None else not self.logs.moves.futures():
                return
            self.logs.services.flusher.sync_later([]).result()  # what was asked for before is done then
            self.clock.advance(5)
        raise AssertionError("the move does not end")

    def holder(self) -> str:
        """The name of the directory that holds the partition, which is the one that the metadata names, and the one
        that counts it where new partitions are placed."""
        (name,) = [name for name in "ab" if (self.path / name / "t-0").is_dir()]
        assert Path(self.log.directory).parent.name == name
        assert self.store.topic("t").partitions[0].directories == (self.raw_id(name),)
        assert [one.path for one in self.logs.dirs if ("t", 0) in one.partitions] == [self.dir_named(name)]
        return name


def fill(log: PartitionLog, count: int, first: int = 0) -> list[tuple[int, bytes]]:
    for number in range(first, first + count):
        put(log, b"%d" % number * 20)
    return [(number, b"%d" % number * 20) for number in range(first, first + count)]


def files(directory: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(directory).iterdir() if path.suffix == names.LOG}


def left_as_copy(node, topic: str) -> Path:
    """What a kill leaves between the two renames at the end of a move: the copy alone."""
    (where,) = [node.path / name for name in "ab" if (node.path / name / f"{topic}-0").is_dir()]
    copy = names.retired_name(topic, 0, names.FUTURE_DIR, node.clock.random)
    return (where / f"{topic}-0").rename(where / copy)
