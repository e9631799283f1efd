"""Sends the same random requests of three transactional producers of one topic, valid and invalid ones in all versions,
to two brokers. After each request the response and the state visible from outside must be equal.

Compared are: the response's error code, epoch and id; state, epoch and partitions of the transactional id; the stored
batches, the last stable offsets and the aborted transactions for both isolation levels; the producers that the log
knows; the group's offset, stable and not. Producer ids are named in the order in which they were allocated.
"""

from __future__ import annotations

import time
from random import Random
from typing import Any

from kafka_shim.cext.batch import scan_all
from kafka_shim.cext.java_hash import internal_partition
from kafka_shim.compat.comparison import lines
from kafka_shim.targets.requests import create_topic, make
from kafka_shim.targets.waiting import PATIENCE_S, wait_until
from kafka_shim.tests.txn.raw import Client
from kafka_shim.wire_client import Connection

PRODUCERS = 3
PARTITIONS = 2
OFFSETS_PARTITIONS = 50  # by default, on both
UNKNOWN_PARTITION = 9
# A producer id that no producer gets, and of which a log keeps no state.
NEGATIVE_ID = -2
# Kafka writes markers after it has sent the EndTxn response: so long is waited for a transaction that may never be
# settled. Where the shim has settled it, Kafka may take longer.
SETTLE_S, SETTLE_PAUSE_S = 10.0, 0.01
# No transaction ends by its time, on whichever broker first.
OPEN_MS = 900_000

# A request: its name and arguments. `shift` is added to the (producer id, epoch) that the producer holds.
Request = tuple[Any, ...]
SHIFTS = ((0, 0), (0, -1), (0, 1), (1, 0))


def random_request(chance: Random, *, markers: bool) -> Request:
    """Returns the next request. With `markers` it may be WriteTxnMarkers, as an administrator sends it."""
    shift = chance.choices(SHIFTS, (8, 2, 1, 1))[0]
    kinds = ("init", "add", "verify", "batch", "add_offsets", "produce", "commit_offsets", "end", "mark")
    kind = chance.choices(kinds, (2, 3, 1, 2, 1, 7, 2, 5, 2 if markers else 0))[0]
    partition = chance.randrange(PARTITIONS)
    if kind == "init":
        return kind, chance.choice((3, 4, 5)), chance.choice((None, None, *SHIFTS))
    if kind == "add":
        return kind, chance.randrange(4), shift, partition
    if kind == "verify":
        return kind, partition, chance.random() < 0.6
    if kind == "batch":
        numbers = (*range(PARTITIONS), UNKNOWN_PARTITION)
        asked = [
            (chance.choices(SHIFTS, (8, 2, 1, 1))[0], chance.random() < 0.5, chance.choices(numbers, (4, 4, 1))[0])
            for _ in range(PRODUCERS)
        ]
        return kind, chance.choice((4, 5)), tuple(asked)
    if kind == "add_offsets":
        return kind, chance.randrange(5), shift
    if kind == "produce":
        sequence = chance.choice((0, 0, 1, 2, 3, 4, 5, 2**31 - 1))
        return kind, chance.choice((9, 10, 11, 12, 12, 12)), shift, partition, sequence, chance.randint(1, 2)
    if kind == "commit_offsets":
        return kind, chance.choice((0, 2, 3, 4, 5)), shift, chance.choice((-1, -1, 0, 5)), chance.randrange(100)
    if kind == "end":
        return kind, chance.choice((0, 1, 2, 3, 4, 5, 5, 5, 5)), chance.random() < 0.6, shift
    return (
        kind,
        chance.choice((1, 2)),
        tuple(random_marker(chance, number) for number in range(chance.choice((1, 1, 2)))),
    )


def random_marker(chance: Random, partition: int) -> tuple[Any, ...]:
    """Returns the arguments of one marker of a request, whose markers have different partitions: Kafka never answers
    one that names a partition twice, nor one with a marker for unknown partitions alone."""
    unknown = (UNKNOWN_PARTITION,) if chance.random() < 0.1 else ()
    return (
        chance.choice((*SHIFTS, *SHIFTS, None)),
        chance.choices((0, 1, 2, -1), (3, 3, 3, 1))[0],
        chance.random() < 0.5,
        (partition, *unknown),
        chance.choice((0, 0, 1, -1)),
    )


class Side:
    """One broker: its producers and its visible state."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._connection = Connection(bootstrap)
        self._topic = topic
        self._producer_ids: list[int] = []
        for key_type in (0, 1):  # Kafka makes the coordinators' topics on the first request
            self._ask("FindCoordinator", 4, key_type=key_type, coordinator_keys=["any"])
        create_topic(self._connection, topic, PARTITIONS)
        wait_until(self._is_served, f"{topic} is served")
        self._clients = [Client(self._connection, f"{topic}-{number}") for number in range(PRODUCERS)]
        for client in self._clients:
            client.topic = topic
            wait_until(lambda client=client: client.init(timeout_ms=OPEN_MS) == 0, "a producer id")  # type: ignore[misc]
            wait_until(lambda client=client: self._committed(client.name, False) == (-1, 0), "the group is there")  # type: ignore[misc]
            self._know(client)

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def _ask(self, name: str, version: int, **fields: Any) -> Any:
        return self._connection.request(make(name, **fields), version)

    def _is_served(self) -> bool:
        """Returns whether the partitions of the new topic have a leader. Kafka responds to CreateTopics before that."""
        asked = [{"partition_index": partition, "timestamp": -1} for partition in range(PARTITIONS)]
        answer = self._ask("ListOffsets", 5, topics=[{"name": self._topic, "partitions": asked}])
        return not any(part.error_code for part in answer.topics[0].partitions)

    def _know(self, client: Client) -> None:
        if client.producer[0] not in self._producer_ids:
            self._producer_ids.append(client.producer[0])

    def _number(self, producer_id: int) -> int:
        return self._producer_ids.index(producer_id) if producer_id in self._producer_ids else -1

    # --- requests

    def send(self, number: int, request: Request) -> Any:
        """Sends a request of the producer with this number and returns the result."""
        client, (kind, *arguments) = self._clients[number], request

        def who(shift: tuple[int, int]) -> tuple[int, int]:
            return client.producer[0] + shift[0], client.producer[1] + shift[1]

        if kind == "init":
            version, shift = arguments
            code: Any = client.init(version, (-1, -1) if shift is None else who(shift), OPEN_MS)
        elif kind == "add":
            version, shift, partition = arguments
            code = client.add(version, who(shift), (self._topic, partition))
        elif kind == "verify":
            partition, verify_only = arguments
            code = client.verify((self._topic, partition), verify_only=verify_only)
        elif kind == "batch":
            code = self._batch(*arguments)
        elif kind == "add_offsets":
            version, shift = arguments
            code = client.add_offsets(version, who(shift))
        elif kind == "produce":
            version, shift, partition, sequence, records = arguments
            code = client.produce(version, who(shift), partition, sequence, records)
        elif kind == "commit_offsets":
            version, shift, generation, offset = arguments
            code = client.commit_offsets(version, who(shift), generation, self._topic, offset)
        elif kind == "end":
            version, commit, shift = arguments
            code = client.end(version, commit, who(shift))
        else:
            code = self._mark(client, *arguments)
        self._know(client)
        return code, client.producer[1], self._number(client.producer[0])

    def _batch(self, version: int, asked: tuple[Any, ...]) -> list[Any]:
        """AddPartitionsToTxn as another broker sends it, of all producers."""
        transactions = [
            {
                "transactional_id": client.name,
                "producer_id": client.producer[0] + shift[0],
                "producer_epoch": client.producer[1] + shift[1],
                "verify_only": verify_only,
                "topics": [{"name": self._topic, "partitions": [partition]}],
            }
            for client, (shift, verify_only, partition) in zip(self._clients, asked, strict=True)
        ]
        answer = self._ask("AddPartitionsToTxn", version, transactions=transactions)
        return [
            answer.error_code,
            *sorted(
                (result.transactional_id, part.partition_index, part.partition_error_code)
                for result in answer.results_by_transaction
                for topic in result.topic_results
                for part in topic.results_by_partition
            ),
        ]

    def _mark(self, client: Client, version: int, asked: tuple[Any, ...]) -> list[Any]:
        markers = []
        for shift, level, commit, partitions, coordinator_epoch in asked:
            marker = {
                "producer_id": NEGATIVE_ID if shift is None else client.producer[0] + shift[0],
                "producer_epoch": client.producer[1] + (0 if shift is None else shift[1]),
                "transaction_result": commit,
                "coordinator_epoch": coordinator_epoch,
                "topics": [{"name": self._topic, "partition_indexes": list(partitions)}],
            }
            if version >= 2:
                marker["transaction_version"] = level
            markers.append(marker)
        answer = self._ask("WriteTxnMarkers", version, markers=markers)
        return sorted(
            (self._number(marker.producer_id), part.partition_index, part.error_code)
            for marker in answer.markers
            for topic in marker.topics
            for part in topic.partitions
        )

    # --- visible state

    def seen(self, number: int, patience_s: float) -> dict[str, Any]:
        """Returns all state visible from outside, once the transaction of this producer is in a stable state or so
        much time is over."""
        name = self._clients[number].name
        return {
            "transaction": self._settled(name, patience_s),
            "log": [self._fetched(isolation) for isolation in (0, 1)],
            "producers": [*self._remembered(), self._remembered_by_the_coordinator(name)],
            "offsets": [self._committed(name, require_stable) for require_stable in (False, True)],
        }

    def _settled(self, name: str, patience_s: float) -> tuple[Any, ...]:
        deadline = time.monotonic() + patience_s
        while True:
            (found,) = self._ask("DescribeTransactions", 0, transactional_ids=[name]).transaction_states
            if not found.transaction_state.startswith("Prepare") or time.monotonic() > deadline:
                break
            time.sleep(SETTLE_PAUSE_S)
        # The partition of the offsets topic depends on the group's name alone.
        partitions = sorted((topic.topic, sorted(topic.partitions)) for topic in found.topics)
        return found.transaction_state, found.producer_epoch, self._number(found.producer_id), partitions

    def _fetched(self, isolation: int) -> list[Any]:
        asked = [
            {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
            for partition in range(PARTITIONS)
        ]
        answer = self._ask(
            "Fetch",
            11,
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=isolation,
            topics=[{"topic": self._topic, "partitions": asked}],
        )
        found = []
        for part in sorted(answer.responses[0].partitions, key=lambda part: part.partition_index):
            aborted = part.aborted_transactions
            batches = [
                (batch.base_offset, batch.last_offset, batch.is_control, *self._producer_of(batch), batch.base_sequence)
                for batch in scan_all(bytes(part.records or b""))
            ]
            told = None if aborted is None else [(self._number(txn.producer_id), txn.first_offset) for txn in aborted]
            found.append((part.high_watermark, part.last_stable_offset, told, batches))
        return found

    def _remembered(self) -> list[Any]:
        topics = [{"name": self._topic, "partition_indexes": list(range(PARTITIONS))}]
        answer = self._ask("DescribeProducers", 0, topics=topics)
        return [
            sorted(
                (*self._producer_of(one), one.last_sequence, one.coordinator_epoch, one.current_txn_start_offset)
                for one in part.active_producers
            )
            for part in sorted(answer.topics[0].partitions, key=lambda part: part.partition_index)
        ]

    def _remembered_by_the_coordinator(self, group: str) -> list[Any]:
        """The producers of the group's partition, which other runs have written to as well."""
        partition = internal_partition(group, OFFSETS_PARTITIONS)
        topics = [{"name": "__consumer_offsets", "partition_indexes": [partition]}]
        (found,) = self._ask("DescribeProducers", 0, topics=topics).topics[0].partitions
        return sorted(
            (*self._producer_of(one), one.last_sequence, one.coordinator_epoch, one.current_txn_start_offset >= 0)
            for one in found.active_producers
            if one.producer_id in self._producer_ids
        )

    def _producer_of(self, what: Any) -> tuple[int, int]:
        return self._number(what.producer_id), what.producer_epoch

    def _committed(self, group: str, require_stable: bool) -> tuple[int, int]:
        topics = [{"name": self._topic, "partition_indexes": [0]}]
        answer = self._ask("OffsetFetch", 7, group_id=group, require_stable=require_stable, topics=topics)
        if answer.error_code:
            return -1, answer.error_code
        part = answer.topics[0].partitions[0]
        return part.committed_offset, part.error_code


def compare(ours: str, theirs: str, topic: str, seed: int, steps: int, *, markers: bool) -> int:
    """Sends `steps` requests to both brokers. Returns how many were sent: a stranded transaction (D18) ends the run
    early. Raises AssertionError at the first difference, with the requests before it.
    """
    chance = Random(seed)
    sides = [Side(bootstrap, topic) for bootstrap in (ours, theirs)]
    sent: list[tuple[int, Request]] = []
    try:
        for _ in range(steps):
            number, request = chance.randrange(PRODUCERS), random_request(chance, markers=markers)
            sent.append((number, request))
            told: list[dict[str, Any]] = []
            patience_s = SETTLE_S
            for side in sides:
                told.append({"answer": side.send(number, request), **side.seen(number, patience_s)})
                is_stranded = told[0]["transaction"][0].startswith("Prepare")
                patience_s = SETTLE_S if is_stranded else PATIENCE_S
            found = lines(*told)
            assert not found, "\n".join([f"seed {seed}, after {sent[-6:]}:", *found])
            if is_stranded:
                break
    finally:
        for side in sides:
            side.close()
    return len(sent)
