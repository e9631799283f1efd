"""The longest turn of the event loop that one request with many entries causes: ``python -m bench.turns [NAME...]``.

CPU time of the loop's thread, of a shim in a process of its own (`loop_broker`). Each case prepares what it needs; only
the request itself is watched. ``--entries`` says how many entries it has, ``--json FILE`` keeps the figures.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from bench.loop import MEMBERS, Watched
from bench.loop import rebalance as join_and_sync
from bench.rounds import SHIM, Side
from kafka_shim.cext.records import build
from kafka_shim.targets import requests
from kafka_shim.targets.requests import make
from kafka_shim.wire_client import Connection, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

# The most that one CreateTopics may make, and the most records of one change of the metadata.
MOST_PARTITIONS = requests.MOST_NEW_PARTITIONS
MOST_RECORDS = 10_000
OPTIONS = {
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "metadata.log.max.record.bytes.between.snapshots": "1000000000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
GROUP = "turns"
MOST_OFFSETS = 10_000
# After the answer: what it left for the loop.
AFTER_S = 0.2


class Broker:
    """The broker and one connection to it."""

    def __init__(self, target: Watched, entries: int) -> None:
        self.target = target
        self.entries = entries
        self.client = Connection(target.bootstrap, timeout_s=300)

    def ask(self, name: str, version: int, **fields: Any) -> Any:
        return self.client.request(make(name, **fields), version)

    def topics(self, count: int, partitions: int, word: str) -> list[str]:
        """Make topics, and return their names."""
        names = [f"{word}-{number}" for number in range(count)]
        requests.create_topics(self.client, names, partitions)
        return names

    def producer(self) -> dict[str, Any]:
        self.ask("FindCoordinator", 4, key_type=1, coordinator_keys=["turns"])
        for _ in range(100):
            found = self.ask("InitProducerId", 4, transactional_id="turns", transaction_timeout_ms=60_000)
            if not found.error_code:
                return {"producer_id": found.producer_id, "producer_epoch": found.producer_epoch}
            time.sleep(0.05)
        raise RuntimeError("no producer id")

    def group(self) -> None:
        self.ask("FindCoordinator", 4, key_type=0, coordinator_keys=[GROUP])


def _one(broker: Broker, name: str, version: int, **fields: Any) -> Callable[[], object]:
    request = make(name, **fields)
    return lambda: broker.client.request(request, version)


def metadata(broker: Broker) -> Callable[[], object]:
    """All topics: 20 of 500 partitions."""
    broker.topics(20, 500, "meta")
    return _one(broker, "Metadata", 12, topics=None)


def metadata_names(broker: Broker) -> Callable[[], object]:
    names = [{"name": f"n{number}"} for number in range(broker.entries)]
    return _one(broker, "Metadata", 12, topics=names, allow_auto_topic_creation=False)


def metadata_topic(broker: Broker) -> Callable[[], object]:
    """One topic of 10,000 partitions."""
    broker.topics(1, MOST_PARTITIONS, "one")
    return _one(broker, "Metadata", 12, topics=[{"name": "one-0"}])


def describe_partitions(broker: Broker) -> Callable[[], object]:
    broker.topics(1, MOST_PARTITIONS, "paged")
    return _one(broker, "DescribeTopicPartitions", 0, topics=[{"name": "paged-0"}], response_partition_limit=2000)


def _fetch_fields(numbers: Iterable[int], topic: str) -> dict[str, Any]:
    parts = [{"partition": number, "fetch_offset": 0, "partition_max_bytes": 1000} for number in numbers]
    return {"min_bytes": 1, "max_bytes": 1 << 20, "topics": [{"topic": topic, "partitions": parts}]}


def fetch_unknown(broker: Broker) -> Callable[[], object]:
    return _one(broker, "Fetch", 11, **_fetch_fields(range(broker.entries), "none"), session_epoch=-1)


def fetch_empty(broker: Broker) -> Callable[[], object]:
    """The first fetch of a session: it waits, and has nothing."""
    broker.topics(2, MOST_PARTITIONS, "empty")
    fields = _fetch_fields(range(MOST_PARTITIONS), "empty-0")
    fields["topics"] += _fetch_fields(range(max(broker.entries - MOST_PARTITIONS, 0)), "empty-1")["topics"]
    return _one(broker, "Fetch", 11, **fields, session_epoch=0, max_wait_ms=300)


def fetch_session(broker: Broker) -> Callable[[], object]:
    """All partitions of a session of 10,000 have news."""
    broker.topics(1, MOST_PARTITIONS, "news")
    opened = broker.ask("Fetch", 11, **_fetch_fields(range(MOST_PARTITIONS), "news-0"), session_epoch=0)
    records = bytes(build([(None, b"x" * 10, 1, ())]))
    data = [{"index": number, "records": records} for number in range(MOST_PARTITIONS)]
    broker.ask("Produce", 9, acks=1, timeout_ms=1000, topic_data=[{"name": "news-0", "partition_data": data}])
    return _one(broker, "Fetch", 11, min_bytes=1, max_bytes=1 << 20, session_id=opened.session_id, session_epoch=1)


def produce_unknown(broker: Broker) -> Callable[[], object]:
    data = [{"index": number, "records": b"x"} for number in range(broker.entries)]
    fields = {"acks": 1, "timeout_ms": 1000, "topic_data": [{"name": "none", "partition_data": data}]}
    return _one(broker, "Produce", 9, **fields)


def produce_known(broker: Broker) -> Callable[[], object]:
    broker.topics(1, MOST_PARTITIONS, "filled")
    records = bytes(build([(None, b"x" * 10, 1, ())]))
    data = [{"index": number, "records": records} for number in range(MOST_PARTITIONS)]
    topic = {"name": "filled-0", "partition_data": data}
    first = make("Produce", acks=1, timeout_ms=1000, topic_data=[topic])
    broker.client.request(first, 9)  # the logs are opened by their first use
    return _one(broker, "Produce", 9, acks=1, timeout_ms=1000, topic_data=[topic])


def _offsets(broker: Broker, word: str, more: Mapping[str, Any]) -> list[dict[str, Any]]:
    """As many as one batch holds."""
    names = broker.topics(2, MOST_PARTITIONS, word)
    half = MOST_OFFSETS // 2
    return [
        {"name": name, "partitions": [{"partition_index": number, **more} for number in range(half)]} for name in names
    ]


def offset_commit(broker: Broker) -> Callable[[], object]:
    broker.group()
    topics = _offsets(broker, "committed", {"committed_offset": 1})
    first = {**topics[0], "partitions": topics[0]["partitions"][:1]}
    broker.ask("OffsetCommit", 8, group_id=GROUP, topics=[first])  # the first use imports modules
    return _one(broker, "OffsetCommit", 8, group_id=GROUP, topics=topics)


def offset_delete(broker: Broker) -> Callable[[], object]:
    broker.group()
    topics = _offsets(broker, "deleted", {"committed_offset": 1})
    broker.ask("OffsetCommit", 8, group_id=GROUP, topics=topics)
    for topic in topics:
        for part in topic["partitions"]:
            del part["committed_offset"]
    return _one(broker, "OffsetDelete", 0, group_id=GROUP, topics=topics)


def txn_offset_commit(broker: Broker) -> Callable[[], object]:
    broker.group()
    topics = _offsets(broker, "pending", {"committed_offset": 1})
    who = broker.producer()
    added = broker.ask("AddOffsetsToTxn", 3, transactional_id="turns", group_id=GROUP, **who)
    check(added.error_code)
    first = {**topics[0], "partitions": topics[0]["partitions"][:1]}
    broker.ask("TxnOffsetCommit", 3, transactional_id="turns", group_id=GROUP, **who, topics=[first])
    return _one(broker, "TxnOffsetCommit", 3, transactional_id="turns", group_id=GROUP, **who, topics=topics)


def add_partitions(broker: Broker) -> Callable[[], object]:
    names = broker.topics(2, MOST_PARTITIONS, "added")
    topics = [{"name": name, "partitions": list(range(broker.entries // 2))} for name in names]
    who = {f"v3_and_below_{key}": value for key, value in broker.producer().items()}
    fields = {"v3_and_below_transactional_id": "turns", "v3_and_below_topics": topics}
    return _one(broker, "AddPartitionsToTxn", 3, **who, **fields)


def write_markers(broker: Broker) -> Callable[[], object]:
    names = broker.topics(2, MOST_PARTITIONS, "marked")
    topics = [{"name": name, "partition_indexes": list(range(broker.entries // 2))} for name in names]
    marker = {"producer_id": 5, "producer_epoch": 0, "transaction_result": True, "topics": topics}
    return _one(broker, "WriteTxnMarkers", 1, markers=[marker])


def create_topics(broker: Broker) -> Callable[[], object]:
    rows = [
        {"name": f"new-{number}", "num_partitions": 1, "replication_factor": 1} for number in range(MOST_RECORDS // 2)
    ]
    return _one(broker, "CreateTopics", 5, topics=rows, timeout_ms=60_000)


def delete_topics(broker: Broker) -> Callable[[], object]:
    names = broker.topics(MOST_RECORDS, 1, "old")
    return _one(broker, "DeleteTopics", 5, topic_names=names, timeout_ms=60_000)


def _configs(name: str, version: int, more: Mapping[str, Any]) -> Callable[[Broker], Callable[[], object]]:
    def prepare(broker: Broker) -> Callable[[], object]:
        names = broker.topics(MOST_RECORDS, 1, name.lower())
        option = {"name": "retention.ms", "value": "100000000", **more}
        rows = [{"resource_type": 2, "resource_name": topic, "configs": [option]} for topic in names]
        return _one(broker, name, version, resources=rows)

    return prepare


def quotas(broker: Broker) -> Callable[[], object]:
    entries = [
        {
            "entity": [{"entity_type": "user", "entity_name": f"u{number}"}],
            "ops": [{"key": "producer_byte_rate", "value": 1e9, "remove": False}],
        }
        for number in range(MOST_RECORDS)
    ]
    return _one(broker, "AlterClientQuotas", 1, entries=entries)


def scram(broker: Broker) -> Callable[[], object]:
    fields = {"mechanism": 1, "iterations": 4096, "salt": b"s" * 16, "salted_password": b"p" * 32}
    rows = [{"name": f"u{number}", **fields} for number in range(MOST_RECORDS)]
    return _one(broker, "AlterUserScramCredentials", 0, deletions=[], upsertions=rows)


def _acl(number: int) -> dict[str, Any]:
    return {
        "resource_type": 2,
        "resource_name": f"t{number}",
        "resource_pattern_type": 3,
        "principal": "User:a",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }


def create_acls(broker: Broker) -> Callable[[], object]:
    return _one(broker, "CreateAcls", 3, creations=[_acl(number) for number in range(MOST_RECORDS)])


def delete_acls(broker: Broker) -> Callable[[], object]:
    """One filter that matches 10,000."""
    broker.ask("CreateAcls", 3, creations=[_acl(number) for number in range(MOST_RECORDS)])
    return _one(broker, "DeleteAcls", 3, filters=[_filter(None)])


def delete_acls_each(broker: Broker) -> Callable[[], object]:
    """Many filters that match nothing."""
    return _one(broker, "DeleteAcls", 3, filters=[_filter(f"t{number}") for number in range(broker.entries)])


def _filter(name: str | None) -> dict[str, Any]:
    return {
        "resource_type_filter": 2,
        "resource_name_filter": name,
        "pattern_type_filter": 3,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }


def share_fetch(broker: Broker) -> Callable[[], object]:
    """The first fetch of a share group: 5,000 partitions."""
    (name,) = broker.topics(1, 5000, "shared")
    told = broker.ask("Metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=False)
    topic_id = told.topics[0].topic_id
    broker.group()
    member = "AAAAAAAAAAAAAAAAAAAAAQ"
    who = {"group_id": GROUP, "member_id": member}
    answer = broker.ask("ShareGroupHeartbeat", 1, **who, member_epoch=0, subscribed_topic_names=[name])
    for _ in range(600):
        if answer.assignment is not None and answer.assignment.topic_partitions:
            break
        time.sleep(0.1)
        answer = broker.ask("ShareGroupHeartbeat", 1, **who, member_epoch=answer.member_epoch)
    else:
        raise RuntimeError(f"no assignment: {answer}")
    parts = [{"partition_index": number} for number in range(5000)]
    fields = {"share_session_epoch": 0, "max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500}
    topics = [{"topic_id": topic_id, "partitions": parts}]
    return _one(broker, "ShareFetch", 1, **who, **fields, batch_size=500, topics=topics)


def rebalance(broker: Broker) -> Callable[[], object]:
    """1,000 members of a classic group join, twice, and sync."""
    broker.group()
    side = Side(SHIM, broker.target)
    join_and_sync(side, MEMBERS)()  # one member: the first use imports modules
    return join_and_sync(side, 1)


def snapshot(broker: Broker) -> Callable[[], object]:
    """A snapshot of 10,000 partitions."""
    broker.topics(20, 500, "snap")
    folder = broker.target.data_dir / "__cluster_metadata-0"

    def do() -> None:
        before = set(folder.glob("*.checkpoint"))
        row = {"name": "due", "num_partitions": 1, "replication_factor": 1}
        broker.ask("CreateTopics", 5, topics=[row], timeout_ms=60_000)
        end = time.monotonic() + 60
        while not set(folder.glob("*.checkpoint")) - before:
            if time.monotonic() > end:
                raise RuntimeError("no snapshot")
            time.sleep(0.05)

    return do


CASES: dict[str, Callable[[Broker], Callable[[], object]]] = {
    "metadata snapshot, 10,000 partitions": snapshot,
    "rebalance of 1,000 members": rebalance,
    "Metadata, 20 topics of 500 partitions": metadata,
    "Metadata, a topic of 10,000 partitions": metadata_topic,
    "Metadata, unknown names": metadata_names,
    "DescribeTopicPartitions, 2,000": describe_partitions,
    "Fetch, unknown partitions": fetch_unknown,
    "Fetch, first of a session": fetch_empty,
    "Fetch, 10,000 with news": fetch_session,
    "Produce, unknown partitions": produce_unknown,
    "Produce, 10,000 partitions": produce_known,
    "OffsetCommit, 10,000": offset_commit,
    "OffsetDelete, 10,000": offset_delete,
    "TxnOffsetCommit, 10,000": txn_offset_commit,
    "AddPartitionsToTxn": add_partitions,
    "WriteTxnMarkers": write_markers,
    "CreateTopics, 5,000": create_topics,
    "DeleteTopics, 10,000": delete_topics,
    "AlterConfigs, 10,000": _configs("AlterConfigs", 1, {}),
    "IncrementalAlterConfigs, 10,000": _configs("IncrementalAlterConfigs", 1, {"config_operation": 0}),
    "AlterClientQuotas, 10,000": quotas,
    "AlterUserScramCredentials, 10,000": scram,
    "CreateAcls, 10,000": create_acls,
    "DeleteAcls, one filter, 10,000 ACLs": delete_acls,
    "DeleteAcls, filters": delete_acls_each,
    "ShareFetch, first of 5,000": share_fetch,
}


def longest_ms(prepare: Callable[[Broker], Callable[[], object]], entries: int) -> dict[str, float]:
    """CPU and wall milliseconds of the longest turn while a case is done, on a broker of its own."""
    options = dict(OPTIONS)
    if prepare is snapshot:
        options["metadata.log.max.record.bytes.between.snapshots"] = "1"
    with Watched(options) as target:
        broker = Broker(target, entries)
        with broker.client:
            do = prepare(broker)
            time.sleep(AFTER_S)
            target.longest()
            do()
            time.sleep(AFTER_S)
            return target.longest()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.turns", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the cases' names; default: all")
    parser.add_argument("--entries", type=int, default=20_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    found: dict[str, dict[str, float]] = {}
    for name, prepare in CASES.items():
        if given.names and not any(part.lower() in name.lower() for part in given.names):
            continue
        found[name] = figures = longest_ms(prepare, given.entries)
        print(f"{name:42} {figures['turn_cpu_ms']:8.1f} ms CPU {figures['turn_ms']:8.1f} ms", flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
