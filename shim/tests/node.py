"""One broker's state over real files, without its network, under a virtual clock; crash and come back."""

from __future__ import annotations

import shutil
from pathlib import Path

from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig
from kafka_shim.faults import Faults
from kafka_shim.metadata.store import MetadataStore
from kafka_shim.storage.logs import Logs


class Node:
    """Logs and metadata; subclasses add a coordinator in `start_coordinator`. `crash()` forgets memory; `start()` comes
    back from the files."""

    # The coordinator's topic.
    topic_name = ""

    def __init__(self, path: Path, **options: object) -> None:
        self.path = path / "life-0"
        self.lives = 0
        self.clock = VirtualClock()
        self.options = options
        self.start()

    def start(self) -> None:
        self.config = BrokerConfig(log_dirs=(str(self.path),), **self.options)
        self.faults = Faults()
        self.logs = Logs(self.config, self.clock, self.faults)
        self.logs.open_dirs("AAAAAAAAQACAAAAAAAAAAQ")
        self.metadata = MetadataStore(self.config, self.clock, self.logs, self.faults)
        self.metadata.start()
        self.logs.start(self.metadata.lookup)
        self.metadata.create_missing_logs()
        self.metadata.ensure_internal_topic(self.topic_name)
        self.start_coordinator()

    def start_coordinator(self) -> None:
        raise NotImplementedError

    def stop_coordinator(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self.stop_coordinator()
        self.metadata.stop()
        self.logs.stop()

    def crash(self) -> None:
        """What the operating system has at this moment is all that is left; the broker comes back on a copy of it."""
        self.lives += 1
        copy = self.path.with_name(f"life-{self.lives}")
        shutil.copytree(self.path, copy)
        self.faults.disarm()
        self.stop()
        shutil.rmtree(self.path)
        self.path = copy
        self.start()

    def restart(self) -> None:
        """A clean stop and a start."""
        self.stop()
        self.start()

    def topic(self, name: str, partitions: int = 2) -> bytes:
        """Makes a topic; its id."""
        return self.metadata.create_topic(name, partitions, 1).topic_id
