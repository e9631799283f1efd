"""The soak test: transactional producers that commit and abort at random, readers of both isolation levels, and kills
of the broker. The history checker checks what all of them saw.
"""

from __future__ import annotations

import random
import threading
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_shim.history import checker, operations
from kafka_shim.history.operations import FAIL, INFO, OK, Operation
from kafka_shim.targets.requests import finalise
from kafka_shim.targets.shim_process import ShimProcess
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

TOPIC = "soak"
PARTITIONS = 12
PRODUCERS = 8
ABORT_SHARE = 0.3
KILLS_PER_MINUTE = 3
QUIET_S = 3.0
# The mean pause between two transactions of a producer. Hundreds a second are enough and can be checked in a minute.
PAUSE_S = 0.03
CLIENT = {
    # librdkafka 2.16 loses a TxnOffsetCommit that waits for a coordinator which it dropped to rebootstrap (KIP-899).
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "socket.timeout.ms": 10_000,
    "log_level": 0,
}


class History:
    """The operations of all threads, in the order in which they finished."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.operations: list[Operation] = []
        self._processes = 0

    def new_process(self) -> int:
        with self._lock:
            self._processes += 1
            return self._processes

    def add(self, process: int, outcome: str, ops: list[Any], committed_reads: bool = True) -> None:
        with self._lock:
            self.operations.append(Operation(len(self.operations), process, outcome, ops, committed_reads))


class Writer(threading.Thread):
    """One transactional id. Starts a new client, and a new process in the history, after each fatal error."""

    def __init__(self, number: int, bootstrap: str, history: History, seed: int) -> None:
        super().__init__(name=f"soak-writer-{number}", daemon=True)
        self._number = number
        self._address = bootstrap
        self._history = history
        self._chance = random.Random(seed * 1000 + number)
        self._written = 0
        self.ends = False
        self.failure: BaseException | None = None
        self.fatal_errors = 0

    def run(self) -> None:
        try:
            while not self.ends:
                self._live()
        except BaseException as failed:
            self.failure = failed
            raise

    def _live(self) -> None:
        process = self._history.new_process()
        producer = Producer(
            {
                **CLIENT,
                "bootstrap.servers": self._address,
                "transactional.id": f"soak-{self._number}",
                "transaction.timeout.ms": 30_000,
                "linger.ms": 1,
            }
        )
        if not self._retrying(lambda: producer.init_transactions(20)):
            return
        while not self.ends and self._transact(producer, process):
            time.sleep(self._chance.uniform(0, 2 * PAUSE_S))

    def _transact(self, producer: Producer, process: int) -> bool:
        """Runs one transaction and logs it in the history. Returns False if the client cannot be used any more."""
        sends: list[list[Any]] = []
        producer.begin_transaction()
        failed = False
        try:
            for _ in range(self._chance.randint(1, 6)):
                self._send(producer, sends)
                producer.poll(0)
            producer.flush(30)
        except KafkaException:
            failed = True
        commit = self._chance.random() >= ABORT_SHARE
        if commit and not failed:
            try:
                if self._retrying(lambda: producer.commit_transaction(20)):
                    self._history.add(process, OK, sends)
                    return True
            except AbortNeeded:
                pass
            else:
                # The outcome is unknown. The next client's InitProducerId ends the transaction.
                self._history.add(process, INFO, _without_offsets(sends))
                return False
        try:
            aborted = self._retrying(lambda: producer.abort_transaction(20))
        except AbortNeeded:
            aborted = False
        # A fatal error here leaves an abort to the next client's InitProducerId: it never commits.
        self._history.add(process, FAIL, _without_offsets(sends))
        return aborted

    def _send(self, producer: Producer, sends: list[list[Any]]) -> None:
        partition = self._chance.randrange(PARTITIONS)
        value = f"{self._number}:{self._written}"
        self._written += 1
        send: list[Any] = ["send", f"{TOPIC}-{partition}", None, value]
        sends.append(send)

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                send[2] = message.offset()

        producer.produce(TOPIC, value.encode(), partition=partition, on_delivery=delivered)

    def _retrying(self, call: Callable[[], object]) -> bool:
        """Returns True on success, False after a fatal error. Raises AbortNeeded."""
        while True:
            try:
                call()
            except KafkaException as raised:
                error = raised.args[0]
                if error.txn_requires_abort():
                    raise AbortNeeded from raised
                if error.retriable():
                    continue
                self.fatal_errors += 1
                return False
            return True


class AbortNeeded(Exception):
    """librdkafka requires an abort."""


def _without_offsets(sends: list[list[Any]]) -> list[list[Any]]:
    return [["send", key, None, value] for _, key, _, value in sends]


class Reader(threading.Thread):
    """Reads all partitions from the beginning. Ends on request, once no records have arrived for a while."""

    def __init__(self, bootstrap: str, history: History, isolation: str) -> None:
        super().__init__(name=f"soak-reader-{isolation}", daemon=True)
        self._history = history
        self._committed = isolation == operations.READ_COMMITTED
        self._process = history.new_process()
        self._consumer = Consumer(
            {
                **CLIENT,
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 200,
            }
        )
        self.ends = False
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._read()
        except BaseException as failed:
            self.failure = failed
            raise
        finally:
            self._consumer.close()

    def _read(self) -> None:
        self._consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
        quiet_since = time.monotonic()
        while True:
            polled: dict[str, list[list[Any]]] = {}
            for message in self._consumer.consume(2000, 0.3):
                error = message.error()
                if error is not None:
                    assert error.code() not in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET), error
                    continue
                key = f"{TOPIC}-{message.partition()}"
                polled.setdefault(key, []).append([message.offset(), (message.value() or b"").decode()])
            if polled:
                self._history.add(self._process, OK, [["poll", polled]], self._committed)
                quiet_since = time.monotonic()
            elif not self.ends:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > QUIET_S:
                return


def soak(
    duration_s: float,
    seed: int,
    kills_per_minute: float = KILLS_PER_MINUTE,
    keep: Path | None = None,
    transaction_version: int = 2,
) -> str:
    """Runs the soak test and checks the history. Returns the figures; fails by assertion. `keep`: a file for the
    history.
    """
    chance = random.Random(seed)
    history = History()
    # A transaction of a client that is gone must time out before the soak ends, because it blocks readers.
    settings = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}
    kills = 0
    with ShimProcess(settings) as target:
        admin = AdminClient({"bootstrap.servers": target.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
        del admin
        with Connection(target.bootstrap) as client:
            finalise(client, "transaction.version", transaction_version)
        writers = [Writer(number, target.bootstrap, history, seed) for number in range(PRODUCERS)]
        isolations = (operations.READ_COMMITTED, operations.READ_UNCOMMITTED)
        readers = [Reader(target.bootstrap, history, isolation) for isolation in isolations]
        for thread in (*writers, *readers):
            thread.start()
        end = time.monotonic() + duration_s
        while True:
            pause_s = chance.uniform(0.5, 1.5) * 60 / kills_per_minute
            if time.monotonic() + pause_s >= end:
                break
            time.sleep(pause_s)
            target.restart(kill=True)
            kills += 1
        time.sleep(max(0, end - time.monotonic()))
        _join(writers, 90, target)
        _settle(target)
        _join(readers, 90, target)
        if keep is not None:
            with keep.open("w") as file:
                operations.write(history.operations, file)
        report = checker.check(history.operations)
        fatal = sum(writer.fatal_errors for writer in writers)
    lines = "\n".join(report.lines())
    assert report.is_clean, lines
    return f"{duration_s:.0f} s, {kills} kills (seed {seed}), {fatal} fatal client errors\n{lines}"


def _settle(target: ShimProcess) -> None:
    """Fences every writer once more, so that no transaction of a dead client is open when the readers finish."""
    for number in range(PRODUCERS):
        producer = Producer({**CLIENT, "bootstrap.servers": target.bootstrap, "transactional.id": f"soak-{number}"})
        producer.init_transactions(30)


def _join(threads: list[Any], timeout_s: float, target: ShimProcess) -> None:
    for thread in threads:
        thread.ends = True
    deadline = time.monotonic() + timeout_s
    for thread in threads:
        thread.join(max(0.1, deadline - time.monotonic()))
        assert not thread.is_alive(), f"{thread.name} does not end; the broker's log ends:\n{target.tail()}"
        assert thread.failure is None, f"{thread.name} failed: {thread.failure!r}"
