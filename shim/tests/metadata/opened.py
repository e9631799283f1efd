"""A metadata store on a real directory, with a clock that stands still."""

from __future__ import annotations

from contextlib import contextmanager

from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig
from kafka_shim.faults import Faults
from kafka_shim.metadata.store import MetadataStore
from kafka_shim.storage.logs import Logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENDPOINTS = [("PLAINTEXT", "127.0.0.1", 9092, 0)]


class Opened:
    """What `server` makes of a directory, without the listeners."""

    def __init__(self, *directories: Path, faults: Faults | None = None, **options: object) -> None:
        self.config = BrokerConfig(log_dirs=tuple(str(path) for path in directories), **options)
        self.clock = VirtualClock()
        self.faults = faults or Faults()
        self.logs = Logs(self.config, self.clock, self.faults)
        self.logs.open_dirs()
        self.store = MetadataStore(self.config, self.clock, self.logs, self.faults)

    def start(self) -> Opened:
        self.store.start()
        self.logs.start(self.store.lookup)
        self.store.create_missing_logs()
        self.store.register(ENDPOINTS)
        return self

    def stop(self) -> None:
        self.store.stop()
        self.logs.stop()

    def crash(self) -> None:
        """What SIGKILL leaves behind: the locks are gone, nothing else is done."""
        self.logs.services.flusher.stop()
        for data_dir in self.logs.dirs:
            data_dir.unlock()


@contextmanager
def opened(*directories: Path, **options: object) -> Iterator[MetadataStore]:
    """A started store; stopped cleanly at the end."""
    broker = Opened(*directories, **options).start()
    try:
        yield broker.store
    finally:
        broker.stop()
