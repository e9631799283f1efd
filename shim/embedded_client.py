"""What a test does with an embedded broker's records, without a client library: `EmbeddedClient` is a part of `Broker`.

broker.create_topic("orders", partitions=3)
broker.produce("orders", "a", {"b": 1}, key="k")
assert [record.text for record in broker.consume("orders", count=2)] == ["a", '{"b": 1}']
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

from kafka_shim.client.cluster import Cluster
from kafka_shim.client.reading import EARLIEST, fetch, is_data, list_offsets, read_all
from kafka_shim.client.topics import create_topic, delete_topics
from kafka_shim.client.writing import Producer
from kafka_shim.config import ConfigError
from kafka_shim.embedded_control import OWN_THREAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from typing import Any

    from kafka_shim.client.cluster import TopicPartition
    from kafka_shim.client.records import Record
    from kafka_shim.client.writing import Written

    # What is stored as it is, as UTF-8, or as JSON.
    Content = bytes | str | Mapping[str, Any] | list[Any] | int | float | None

# Options whose values are directories.
DIRECTORIES = ("log.dirs", "log.dir", "metadata.log.dir", "cordoned.log.dirs")
# Between two looks for records: the broker's clock may stand still, so that no Fetch may wait there.
POLL_S = 0.005


class EmbeddedClient:
    """Topics, records and offsets of a running broker. Every method raises WireClientError, and RequestError for an
    error code."""

    # While it runs in a thread of this process.
    _thread: threading.Thread | None = None
    # Who starts or ends it holds this (`in_turn`).
    _life: AbstractContextManager[object]

    def client_config(self, library: str, user: str | None = None) -> dict[str, Any]:
        raise NotImplementedError

    @property
    def bootstrap_servers(self) -> str:
        raise NotImplementedError

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return int(self.bootstrap_servers.rpartition(":")[2])

    def cluster(self, user: str | None = None) -> Cluster:
        """Returns a client of this broker, for `with`. `user` is one of `users`, the first if it is None. Raises
        RuntimeError on the broker's own thread, which could not answer."""
        if self._thread is threading.current_thread():
            raise RuntimeError(OWN_THREAD)
        java = {name: str(value) for name, value in self.client_config("java", user).items()}
        if java.get("security.protocol", "PLAINTEXT") == "PLAINTEXT":
            return Cluster(java["bootstrap.servers"], client_id="kafka-shim-test")
        from kafka_shim.client_security import ClientSecurity

        return Cluster(java["bootstrap.servers"], client_id="kafka-shim-test", security=ClientSecurity(java))

    # --- topics

    def create_topic(self, name: str, partitions: int = 1, **options: object) -> None:
        """Make a topic, and return once it can be used. `options` are Kafka's with underscores in place of dots:
        `create_topic("orders", 3, cleanup_policy="compact")`."""
        configs = {option.replace("_", "."): text_of(value) for option, value in options.items()}
        with self.cluster() as cluster:
            create_topic(cluster, name, partitions=partitions, configs=configs)

    def ensure_topic(self, name: str, partitions: int = 1, **options: object) -> None:
        """As `create_topic`, but it may be there, with as many partitions. Raises ValueError if it has others."""
        with self.cluster() as cluster:
            known = {topic.name: len(topic.partitions) for topic in cluster.metadata().topics}
        if name not in known:
            self.create_topic(name, partitions, **options)
        elif known[name] != partitions:
            raise ValueError(f"topic {name} has {known[name]} partitions, not {partitions}: take another name")

    def delete_topic(self, *names: str) -> None:
        """Delete topics."""
        with self.cluster() as cluster:
            delete_topics(cluster, names)

    def topics(self) -> list[str]:
        """Returns the names of all topics but the broker's own."""
        with self.cluster() as cluster:
            return sorted(topic.name for topic in cluster.metadata().topics if not topic.is_internal)

    # --- records

    def produce(
        self,
        topic: str,
        *values: Content,
        key: Content = None,
        headers: Mapping[str, Content] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> list[Written]:
        """Write records and return when they are stored. Text is stored as UTF-8, a dict, list or number as JSON, None
        as a tombstone. A missing topic is made if the broker does so."""
        raw = [(name, bytes_of(value)) for name, value in (headers or {}).items()]
        with self.cluster() as cluster:
            producer = Producer(cluster)
            for value in values:
                producer.send(
                    topic,
                    bytes_of(value),
                    bytes_of(key),
                    headers=raw,
                    partition=partition,
                    timestamp_ms=self._now_ms() if timestamp_ms is None else timestamp_ms,
                )
            return producer.flush()

    def _now_ms(self) -> int | None:
        return None

    def consume(
        self,
        topic: str,
        count: int | None = None,
        *,
        partition: int | None = None,
        read_committed: bool = True,
        timeout_s: float = 10.0,
    ) -> list[Record]:
        """Returns the records of a topic, by partition and offset: those that are there, or with `count` the first so
        many that arrive, also where the topic is made meanwhile. Commits no offsets. Raises TimeoutError if fewer
        arrive, and says which did."""
        with self.cluster() as cluster:
            if count is None:
                parts = cluster.partitions(topic) if partition is None else [partition]
                return read_all(cluster, [(topic, each) for each in parts], read_committed=read_committed)
            deadline = time.monotonic() + timeout_s
            made = cluster.partitions_once_made(topic, timeout_s)
            wanted = [(topic, each) for each in (made if partition is None else [partition])]
            found = _await_records(cluster, wanted, count, deadline, read_committed=read_committed)
        if len(found) < count:
            kind = "committed records" if read_committed else "records"
            values = ", ".join(repr(one.value) for one in found[:10])
            raise TimeoutError(f"{topic} has {len(found)} {kind} after {timeout_s} s, not {count}: [{values}]")
        return sorted(found[:count], key=lambda one: (one.partition, one.offset))


def _await_records(
    cluster: Cluster, partitions: list[TopicPartition], count: int, deadline: float, *, read_committed: bool
) -> list[Record]:
    """Returns the data records in the order in which they are read, at least `count` unless the deadline passes."""
    positions = list_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
    found: list[Record] = []
    while len(found) < count:
        for got in fetch(cluster, positions, max_wait_ms=0, read_committed=read_committed):
            positions[got.topic, got.partition] = got.next_offset
            found += filter(is_data, got.records)
        if len(found) < count:
            if time.monotonic() > deadline:
                break
            time.sleep(POLL_S)
    return found


def bytes_of(content: Content) -> bytes | None:
    """Returns what is stored of a key, value or header."""
    if content is None or isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content)).encode()


def text_of(value: object) -> str:
    """Returns the text of an option's value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(str(one) for one in value)
    return str(value)


def option_name(keyword: str) -> str:
    """Kafka's name of a keyword. One with a dot is Kafka's name already, such as `listener.name.sasl_ssl.`..."""
    return keyword if "." in keyword else keyword.replace("_", ".")


def absolute_path(directory: str | os.PathLike[str]) -> str:
    """Returns the directory of now. Raises ConfigError for none, as of a variable that is empty: it would be the
    working directory."""
    if not os.fspath(directory):
        raise ConfigError("data_dir is the name of a directory, not ''")
    return str(Path(directory).absolute())


def absolute_paths(options: Mapping[str, str]) -> dict[str, str]:
    """Returns options whose directories are those of now also where the program changes its working directory."""
    return {
        name: ",".join(_absolute(path.strip()) for path in text.split(",")) if name in DIRECTORIES else text
        for name, text in options.items()
    }


def _absolute(path: str) -> str:
    """Nothing, `*` and a reference to a value that is kept elsewhere stay."""
    return path if path in ("", "*") or path.startswith("${") else str(Path(path).absolute())


def class_name(authorizer: type | str | None) -> str:
    """The dotted path of an authorizer's class; Kafka's StandardAuthorizer for None."""
    if authorizer is None:
        return "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    return authorizer if isinstance(authorizer, str) else f"{authorizer.__module__}.{authorizer.__qualname__}"
