"""A share group under chaos, and its history for `kafka_shim.history.share_checker`.

Members speak the protocol by hand: they join by heartbeats, acquire records of the partitions that they are assigned,
and accept, release, reject, renew or forget them. They leave, vanish with a fetch under way, or fall silent until their
locks have ended. The broker is killed and started again.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections import Counter

from kafka_shim.cext.batch import scan_all
from kafka_shim.cext.records import build, iterate
from kafka_shim.errors import ErrorCode
from kafka_shim.history.share_operations import (
    ACCEPT,
    ACKNOWLEDGE,
    CLOSE,
    FETCH,
    REJECT,
    RELEASE,
    RENEW,
    SEND,
    ShareOperation,
)
from kafka_shim.targets.requests import make as request
from kafka_shim.targets.requests import produce
from kafka_shim.wire_client import Connection, WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kafka_shim.targets import Target

    # Partition, first offset, last offset.
    Range = tuple[int, int, int]

PARTITIONS = 4
MEMBERS = 5
LOCK_MS = 1000
DELIVERY_LIMIT = 10
SETTINGS = {
    "group.share.min.record.lock.duration.ms": str(LOCK_MS),
    "group.share.record.lock.duration.ms": str(LOCK_MS),
    "group.share.delivery.count.limit": str(DELIVERY_LIMIT),
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.min.session.timeout.ms": "3000",
    "group.share.session.timeout.ms": "3000",
    "share.coordinator.snapshot.update.records.per.snapshot": "20",
    "share.coordinator.state.topic.num.partitions": "4",
}
HEARTBEAT_S = 0.1
TIMEOUT_S = 60
KILL_EVERY_S = 4.0
# So many records are acknowledged before a broker is killed, and in each of these ways before the chaos may end: on a
# busy machine that takes longer.
LEAST_PER_LIFE = 20
LEAST_IN_ALL = {ACCEPT: 20, RELEASE: 20, REJECT: 20}
# What a member does with records that it has; None: nothing.
CHOICES = (ACCEPT,) * 8 + (RELEASE, RELEASE, REJECT, RENEW, None)
TOPIC, GROUP = "chaos", "sharers"


class ShareChaos:
    """One run on a target with SETTINGS. `run` returns the history."""

    def __init__(self, target: Target, seed: int) -> None:
        self.target = target
        self.random = random.Random(seed)
        self.life = 0
        self.kills = 0
        self.history: list[ShareOperation] = []
        # Held while the broker is away, so that each connection belongs to one life.
        self.gate = threading.Lock()
        self.is_over = threading.Event()
        self.errors: list[BaseException] = []
        self._sent = 0
        # Records whose acknowledgement was answered without error, by its type, in so many lines of the history.
        self._acknowledged: Counter[int] = Counter()
        self._counted = 0
        with Connection(target.bootstrap) as client:
            row = {"name": TOPIC, "num_partitions": PARTITIONS, "replication_factor": 1}
            client.request(request("CreateTopics", topics=[row], timeout_ms=30_000), 7)
            option = {"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}
            resource = {"resource_type": 32, "resource_name": GROUP, "configs": [option]}
            client.request(request("IncrementalAlterConfigs", resources=[resource]), 1)
            client.request(request("FindCoordinator", key_type=0, coordinator_keys=[GROUP]), 4)
        self._keeper = self._open_session()

    def _open_session(self) -> Connection:
        """Returns a connection with a session of no partition. With the last session of a group its share partitions
        are forgotten, as in Kafka, and with them deliveries of partitions that a member left out of its session before
        it vanished: their counts would come again in the same life."""
        connection = Connection(self.target.bootstrap, timeout_s=TIMEOUT_S)
        try:
            fields = {"group_id": GROUP, "member_id": f"keeper-{self.life}", "share_session_epoch": 0}
            answer = connection.request(request("ShareFetch", max_wait_ms=0, **fields), 2)
            _check(answer)
        except BaseException:
            connection.close()
            raise
        return connection

    def run(self, duration_s: float, least_kills: int) -> list[ShareOperation]:
        """Chaos for at least so long, with so many kills, and then one member that takes what is left. Raises what a
        thread raised."""
        works = [self._produce, *(self._come_and_go for _ in range(MEMBERS))]
        threads = [
            threading.Thread(target=self._guard, args=(work, random.Random(self.random.random()))) for work in works
        ]
        for thread in threads:
            thread.start()
        try:
            try:
                end_s = time.monotonic() + duration_s
                while self._live(end_s) and not self._is_enough(end_s, least_kills):
                    with self.gate:
                        self._keeper.close()
                        self.target.restart(kill=True)
                        self.life += 1
                        self._keeper = self._open_session()
                    self.kills += 1
            finally:
                self.is_over.set()
                for thread in threads:
                    thread.join(3 * TIMEOUT_S)
            assert not any(thread.is_alive() for thread in threads), "a member or the producer has not ended"
            if self.errors:
                raise self.errors[0]
            self._drain()
        finally:
            self._keeper.close()
        return self.history

    def _live(self, end_s: float) -> bool:
        """Let the members live with one broker, until it is to be killed or the chaos has lasted long enough. Returns
        False if a thread has failed."""
        now_s = time.monotonic()
        until_s = min(now_s + KILL_EVERY_S, end_s) if now_s < end_s else now_s + KILL_EVERY_S
        least = self._count().total() + LEAST_PER_LIFE
        while time.monotonic() < until_s or self._count().total() < least:
            if self.is_over.wait(0.1):
                return False
        return True

    def _is_enough(self, end_s: float, least_kills: int) -> bool:
        done = self._count()
        is_seen = all(done[kind] >= least for kind, least in LEAST_IN_ALL.items())
        return is_seen and self.kills >= least_kills and time.monotonic() >= end_s

    def _count(self) -> Counter[int]:
        """Returns how many records were acknowledged without error, by type."""
        for operation in self.history[self._counted :]:
            self._counted += 1
            if operation.kind == ACKNOWLEDGE and operation.outcome == "ok":
                self._acknowledged.update(kind for _, kind in operation.types)
        return self._acknowledged

    def _guard(self, work: Callable[[random.Random], None], dice: random.Random) -> None:
        try:
            while not self.is_over.is_set():
                try:
                    work(dice)
                except WireClientError:  # the broker is away; what was under way is in the history as unknown
                    time.sleep(0.05)
        except BaseException as error:  # for the thread that waits
            self.errors.append(error)
            self.is_over.set()

    def connect(self) -> tuple[Connection, int]:
        """Returns a connection and the life of the broker that it belongs to."""
        with self.gate:
            return Connection(self.target.bootstrap, timeout_s=TIMEOUT_S), self.life

    def _produce(self, dice: random.Random) -> None:
        connection, life = self.connect()
        with connection:
            while not self.is_over.is_set():
                partition = dice.randrange(PARTITIONS)
                values = [str(self._sent + number) for number in range(dice.randint(1, 20))]
                self._sent += len(values)
                stored = bytes(build([(None, value.encode(), time.time_ns() // 1_000_000, ()) for value in values]))
                with _Recorded(self, SEND, life, key=_key(partition)) as operation:
                    answer = connection.request(produce(TOPIC, partition, stored), 11)
                    (told,) = answer.responses[0].partition_responses
                    operation.outcome = "fail" if told.error_code else "ok"
                    operation.records = [(told.base_offset + number, value) for number, value in enumerate(values)]
                self.is_over.wait(dice.uniform(0, 0.05))

    def _come_and_go(self, dice: random.Random) -> None:
        member = ShareChaosMember(self, dice)
        try:
            member.live(time.monotonic() + dice.uniform(0.5, 6))
        finally:
            member.close()

    def _drain(self) -> None:
        """One member takes what is left, until a fetch that began when every lock had ended brought nothing. Partitions
        of members that vanished come when the group has given them up."""
        member = ShareChaosMember(self, random.Random(0))
        member.choices = (ACCEPT,)
        try:
            busy_s = begin_s = time.monotonic()
            while begin_s < busy_s + 3 * LOCK_MS / 1000:
                begin_s = time.monotonic()
                if member.turn() or member.held or len(member.assigned) < PARTITIONS:
                    busy_s = time.monotonic()
        finally:
            member.close()


class ShareChaosMember:
    """One session of one member, on one connection."""

    def __init__(self, chaos: ShareChaos, dice: random.Random) -> None:
        self.chaos = chaos
        self.dice = dice
        self.name = str(uuid.UUID(int=dice.getrandbits(128)))
        self.connection, self.life = chaos.connect()
        self.choices: tuple[int | None, ...] = CHOICES
        self.member_epoch = 0
        self.session_epoch = 0
        self.topic_id = b""
        self.assigned: set[int] = set()
        # The partitions of the session.
        self.read: set[int] = set()
        self.held: list[Range] = []
        self._next_heartbeat_s = 0.0

    def live(self, until_s: float) -> None:
        """Take part until then, or until the chaos is over; then leave in one of three ways."""
        while time.monotonic() < until_s and not self.chaos.is_over.is_set():
            self.turn()
        way = self.dice.random()
        if way < 0.4:
            self._leave()
        elif way < 0.7 and self.read:
            # Vanish with a fetch under way, whose answer nobody reads.
            with _Recorded(self.chaos, FETCH, self.life, member=self.name) as operation:
                operation.acquired = {_key(number): [] for number in self.read | self.assigned}
                self.connection.send(self._fetch_request([]), 2)

    def turn(self) -> bool:
        """One heartbeat if it is due, one fetch, and what becomes of the records. Returns whether there were any."""
        if time.monotonic() >= self._next_heartbeat_s:
            self._heartbeat()
        if not self.assigned:
            time.sleep(0.05)
            return False
        acks: list[tuple[Range, int]] = []
        if self.held and self.dice.random() < 0.5:
            acks = self._decide()
        elif self.held:
            self._acknowledge(self._decide())
        got = self._fetch(acks)
        if got and self.dice.random() < 0.05 and len(self.choices) > 1:
            self._fall_silent()
        return got

    def close(self) -> None:
        now_ms = time.monotonic() * 1000
        self.chaos.history.append(ShareOperation(CLOSE, "ok", (now_ms, now_ms), member=self.name, life=self.life))
        self.connection.close()

    def _fall_silent(self) -> None:
        """Keep the session, and the locks run out."""
        until_s = time.monotonic() + LOCK_MS / 1000 * 1.3
        while time.monotonic() < until_s and not self.chaos.is_over.is_set():
            time.sleep(0.05)
            self._heartbeat()

    def _heartbeat(self) -> None:
        self._next_heartbeat_s = time.monotonic() + HEARTBEAT_S
        fields: dict[str, Any] = {"group_id": GROUP, "member_id": self.name, "member_epoch": self.member_epoch}
        if not self.member_epoch:
            fields["subscribed_topic_names"] = [TOPIC]
        answer = self.connection.request(request("ShareGroupHeartbeat", **fields), 1)
        if answer.error_code:
            self.member_epoch = 0
            time.sleep(0.05)
            return
        self.member_epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned = set()
            for topic in answer.assignment.topic_partitions:
                self.topic_id = topic.topic_id
                self.assigned = set(topic.partitions)

    def _leave(self) -> None:
        """End the session, which releases what is held, and leave the group."""
        if self.session_epoch:
            fields = {"group_id": GROUP, "member_id": self.name, "share_session_epoch": -1}
            now_ms = time.monotonic() * 1000
            self.chaos.history.append(ShareOperation(CLOSE, "ok", (now_ms, now_ms), member=self.name, life=self.life))
            self.connection.request(request("ShareAcknowledge", topics=[], **fields), 2)
        fields = {"group_id": GROUP, "member_id": self.name, "member_epoch": -1}
        self.connection.request(request("ShareGroupHeartbeat", **fields), 1)

    # --- records

    def _decide(self) -> list[tuple[Range, int]]:
        """Returns what becomes of some of the records; others stay held, and what is forgotten is locked."""
        taken: list[tuple[Range, int]] = []
        kept: list[Range] = []
        for partition, first, last in self.held:
            cut = self.dice.randint(first, last) if self.dice.random() < 0.3 else last
            kind = self.dice.choice(self.choices)
            if kind is not None:
                taken.append(((partition, first, cut), kind))
            if cut < last:
                kept.append((partition, cut + 1, last))
            if kind == RENEW:
                kept.append((partition, first, cut))
        self.held = kept
        return taken

    def _acknowledge(self, acks: list[tuple[Range, int]]) -> None:
        batches: dict[int, list[dict[str, Any]]] = {}
        for (partition, first, last), kind in sorted(acks):
            row = {"first_offset": first, "last_offset": last, "acknowledge_types": [kind]}
            batches.setdefault(partition, []).append(row)
        if not batches:
            return
        rows = [{"partition_index": number, "acknowledgement_batches": rows} for number, rows in batches.items()]
        fields = {"group_id": GROUP, "member_id": self.name, "share_session_epoch": self.session_epoch}
        fields["is_renew_ack"] = any(kind == RENEW for _, kind in acks)
        message = request("ShareAcknowledge", topics=[{"topic_id": self.topic_id, "partitions": rows}], **fields)
        with _Acknowledgements(self, acks) as told:
            answer = self.connection.request(message, 2)
            _check(answer)
            self.session_epoch += 1
            for topic in answer.responses:
                for one in topic.partitions:
                    told.answer(one.partition_index, one.error_code)

    def _fetch(self, acks: list[tuple[Range, int]]) -> bool:
        if any(kind == RENEW for _, kind in acks):
            self._acknowledge(acks)
            acks = []
        recorded = _Recorded(self.chaos, FETCH, self.life, member=self.name)
        with _Acknowledgements(self, acks) as told, recorded as operation:
            wanted = self.assigned | {partition for (partition, _, _), _ in acks}
            operation.acquired = {_key(number): [] for number in wanted | self.read}
            message = self._fetch_request(acks)
            answer = self.connection.request(message, 2)
            _check(answer)
            operation.outcome, operation.acquired = "ok", {}
            self.session_epoch += 1
            self.read = wanted
            for topic in answer.responses:
                for one in topic.partitions:
                    told.answer(one.partition_index, one.acknowledge_error_code)
                    self._take(operation, one)
        return bool(operation.acquired)

    def _take(self, operation: ShareOperation, answer: Any) -> None:
        if not answer.acquired_records:
            return
        stored = b"".join(map(bytes, answer.records)) if isinstance(answer.records, list) else bytes(answer.records)
        values = {
            record.offset: (record.value or b"").decode()
            for batch in scan_all(stored)
            for record in iterate(stored, batch.position, batch.position + batch.size_bytes)
        }
        operation.acquired[_key(answer.partition_index)] = [
            (offset, one.delivery_count, values.get(offset))
            for one in answer.acquired_records
            for offset in range(one.first_offset, one.last_offset + 1)
        ]
        self.held += [(answer.partition_index, one.first_offset, one.last_offset) for one in answer.acquired_records]

    def _fetch_request(self, acks: list[tuple[Range, int]]) -> Any:
        batches: dict[int, list[dict[str, Any]]] = {}
        for (partition, first, last), kind in sorted(acks):
            row = {"first_offset": first, "last_offset": last, "acknowledge_types": [kind]}
            batches.setdefault(partition, []).append(row)
        numbers = (self.assigned - self.read) | set(batches) if self.session_epoch else self.assigned
        rows = [{"partition_index": number, "acknowledgement_batches": batches.get(number, [])} for number in numbers]
        gone = sorted(self.read - self.assigned - set(batches)) if self.session_epoch else []
        return request(
            "ShareFetch",
            group_id=GROUP,
            member_id=self.name,
            share_session_epoch=self.session_epoch,
            max_wait_ms=self.dice.choice((0, 20, 200)),
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=self.dice.choice((1, 10, 100)),
            batch_size=self.dice.choice((1, 10, 100)),
            share_acquire_mode=self.dice.randrange(2),
            topics=[{"topic_id": self.topic_id, "partitions": rows}] if rows else [],
            forgotten_topics_data=[{"topic_id": self.topic_id, "partitions": gone}] if gone else [],
        )


class _Recorded:
    """One request in the history: unknown, unless its answer said more."""

    def __init__(self, chaos: ShareChaos, kind: str, life: int, **fields: Any) -> None:
        self._history = chaos.history
        begin_ms = time.monotonic() * 1000
        self._operation = ShareOperation(kind, "info", (begin_ms, begin_ms), life=life, **fields)

    def __enter__(self) -> ShareOperation:
        return self._operation

    def __exit__(self, *_: object) -> None:
        self._operation.end_ms = time.monotonic() * 1000
        self._history.append(self._operation)


class _Acknowledgements:
    """The acknowledgements of one request in the history, one line for each partition."""

    def __init__(self, member: ShareChaosMember, acks: list[tuple[Range, int]]) -> None:
        self._history = member.chaos.history
        begin_ms = time.monotonic() * 1000
        self._operations: dict[int, ShareOperation] = {}
        for (partition, first, last), kind in acks:
            operation = self._operations.get(partition)
            if operation is None:
                operation = self._operations[partition] = ShareOperation(
                    ACKNOWLEDGE,
                    "info",
                    (begin_ms, begin_ms),
                    member=member.name,
                    life=member.life,
                    key=_key(partition),
                )
            operation.types += [(offset, kind) for offset in range(first, last + 1)]

    def __enter__(self) -> _Acknowledgements:
        return self

    def answer(self, partition: int, error_code: int) -> None:
        """What the broker said of a partition."""
        if partition in self._operations:
            self._operations[partition].outcome = "fail" if error_code else "ok"

    def __exit__(self, *_: object) -> None:
        for operation in self._operations.values():
            operation.end_ms = time.monotonic() * 1000
            self._history.append(operation)


def _check(answer: Any) -> None:
    """No session here has a reason to be refused: its requests come one after the other on its own connection."""
    assert not answer.error_code, f"a share session was refused: {ErrorCode(answer.error_code).name}"


def _key(partition: int) -> str:
    return f"{TOPIC}-{partition}"
