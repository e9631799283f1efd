"""The coordinator over real logs against a small model: any interleaving of requests, crashes and clock moves.

The model knows three things per transactional id: who may write, what is open, and what became of every transaction.
From these follows what a read_committed reader sees in each partition, after every step.
"""

from __future__ import annotations

import asyncio

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafka_shim import memory_dir
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.tests.txn.harness import Node
from kafka_shim.txn.transaction import STATE_NAMES, TV0, TV2

IDS = ("app", "job")
PARTITIONS = (0, 1)
TIMEOUT_MS = 20_000

POINTS = (
    ("txn.before_prepare", False),
    ("txn.after_prepare", True),
    ("txn.after_marker", True),
    ("txn.before_complete", True),
    ("txn.after_complete", True),
)


class Txn:
    """One transaction of the model: open until `outcome` is True (committed) or False (aborted)."""

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.outcome: bool | None = None


class Owner:
    """One transactional id of the model."""

    def __init__(self) -> None:
        self.producer: tuple[int, int] | None = None
        self.open: Txn | None = None
        self.last_end: tuple[tuple[int, int], bool] | None = None  # what a TV2 retry would repeat
        self.stale: list[tuple[int, int]] = []

    def move(self, producer: tuple[int, int]) -> None:
        if self.producer is not None and self.producer != producer:
            self.stale.append(self.producer)
        self.producer = producer


class Stopped(Exception):
    pass


def stop_here(**facts: object) -> None:
    raise Stopped


class Machine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.directory = memory_dir.make()
        self.node = Node(self.directory)
        self.node.topic("t", len(PARTITIONS))
        self.owners = {name: Owner() for name in IDS}
        self.logs: dict[int, list[tuple[str, Txn]]] = {partition: [] for partition in PARTITIONS}
        self.written = 0
        self.since_crash = 0
        for owner, name in zip(self.owners.values(), IDS, strict=True):
            owner.move(self.node.init(name, None, TIMEOUT_MS))

    def teardown(self) -> None:
        if hasattr(self, "node"):
            self.node.faults.disarm()
            self.node.stop()
            memory_dir.remove(self.directory)

    def refused(self, call, *arguments) -> ErrorCode | None:
        try:
            call(*arguments)
        except KafkaError as error:
            return error.code
        return None

    # --- requests

    @rule(name=st.sampled_from(IDS))
    def initialise(self, name: str) -> None:
        owner = self.owners[name]
        if owner.open is not None:
            assert self.refused(self.node.init, name, None, TIMEOUT_MS) is ErrorCode.CONCURRENT_TRANSACTIONS
            owner.open.outcome, owner.open = False, None
            producer_id, epoch = owner.producer or (0, 0)
            owner.move((producer_id, epoch + 1))
        before = owner.producer
        owner.move(self.node.init(name, None, TIMEOUT_MS))
        owner.last_end = None
        if before is not None:
            assert owner.producer == (before[0], before[1] + 1)

    @rule(name=st.sampled_from(IDS), partition=st.sampled_from(PARTITIONS))
    def produce(self, name: str, partition: int) -> None:
        owner = self.owners[name]
        if owner.producer is None:
            return
        value = f"v{self.written}"
        self.written += 1
        self.node.produce(name, owner.producer, "t", partition, value)
        if owner.open is None:
            owner.open = Txn(self.node.clock.now_ms())
        owner.last_end = None
        self.logs[partition].append((value, owner.open))
        self.since_crash += 1

    @rule(name=st.sampled_from(IDS), partition=st.sampled_from(PARTITIONS), pick=st.integers(0, 9))
    def produce_late(self, name: str, partition: int, pick: int) -> None:
        owner = self.owners[name]
        if owner.stale:
            producer = owner.stale[pick % len(owner.stale)]
            code = self.refused(self.node.produce, name, producer, "t", partition, "late")
            assert code is ErrorCode.INVALID_PRODUCER_EPOCH

    @rule(name=st.sampled_from(IDS), commit=st.booleans())
    def end(self, name: str, commit: bool) -> None:
        owner = self.owners[name]
        if owner.producer is None:
            return
        if owner.open is None and commit:
            assert self.refused(self.node.end, name, owner.producer, True) is ErrorCode.INVALID_TXN_STATE
            return
        bumped = self.node.end(name, owner.producer, commit)
        self.ended(owner, commit)
        assert bumped == owner.producer

    def ended(self, owner: Owner, commit: bool) -> None:
        assert owner.producer is not None
        if owner.open is not None:
            owner.open.outcome, owner.open = commit, None
        owner.last_end = (owner.producer, commit)
        owner.move((owner.producer[0], owner.producer[1] + 1))

    @rule(name=st.sampled_from(IDS), commit=st.booleans())
    def end_again(self, name: str, commit: bool) -> None:
        owner = self.owners[name]
        if owner.last_end is None:
            return
        producer, committed = owner.last_end
        code = self.refused(self.node.end, name, producer, commit)
        assert code is (None if commit == committed else ErrorCode.INVALID_TXN_STATE)
        if code is None:
            assert self.node.end(name, producer, commit) == owner.producer

    @rule(name=st.sampled_from(IDS), commit=st.booleans(), pick=st.integers(0, 9))
    def end_late(self, name: str, commit: bool, pick: int) -> None:
        owner = self.owners[name]
        older = [producer for producer in owner.stale if owner.last_end is None or producer != owner.last_end[0]]
        if not older or owner.producer is None:
            return
        producer = older[pick % len(older)]
        if producer[1] + 1 == owner.producer[1] and owner.open is None:
            return  # the epoch before, with nothing open: a retry by its number (B23), which end_again covers
        code = self.refused(self.node.end, name, producer, commit)
        assert code is ErrorCode.PRODUCER_FENCED

    @rule(name=st.sampled_from(IDS), commit=st.booleans())
    def end_classic(self, name: str, commit: bool) -> None:
        """EndTxn v4 of what TV2 began: no bump (B24)."""
        owner = self.owners[name]
        if owner.open is None or owner.producer is None:
            return
        assert self.node.end(name, owner.producer, commit, TV0) == (-1, -1)
        owner.open.outcome, owner.open = commit, None
        owner.last_end = None

    @rule(name=st.sampled_from(IDS), commit=st.booleans(), point=st.sampled_from(POINTS), nth=st.integers(1, 2))
    def end_and_crash(self, name: str, commit: bool, point: tuple[str, bool], nth: int) -> None:
        owner = self.owners[name]
        if owner.open is None or owner.producer is None:
            return
        name_of_point, is_decided = point
        self.node.faults.arm(name_of_point, stop_here, nth=nth)
        try:
            asyncio.run(self.node.coordinator.end_stepwise(name, *owner.producer, commit, TV2))
            is_decided = True
        except Stopped:
            pass
        self.node.crash()
        if is_decided:
            self.ended(owner, commit)

    # --- the world

    @precondition(lambda self: self.since_crash >= 2)
    @rule(clean=st.booleans())
    def crash(self, clean: bool) -> None:
        self.since_crash = 0
        if clean:
            self.node.restart()
        else:
            self.node.crash()

    @rule(ms=st.sampled_from([1, 5_000, 12_000, 31_000]))
    def advance(self, ms: int) -> None:
        start_ms = self.node.clock.now_ms()
        self.node.clock.advance(ms)
        for name, owner in self.owners.items():
            txn = owner.open
            if txn is None:
                continue
            # The check runs every ten seconds of this life; ask the broker when exactly, hold it to the bounds.
            aborted = self.node.coordinator.describe(name).state.name == "COMPLETE_ABORT"
            age_ms = self.node.clock.now_ms() - txn.start_ms
            if aborted:
                assert age_ms > TIMEOUT_MS
                self.ended(owner, False)
            else:
                assert age_ms <= TIMEOUT_MS + ms + 10_000 + (start_ms - txn.start_ms)

    # --- what must hold

    @invariant()
    def readers_see_what_is_committed(self) -> None:
        if not hasattr(self, "node"):
            return
        for partition, entries in self.logs.items():
            expected = []
            for value, txn in entries:
                if txn.outcome is None:
                    break
                if txn.outcome:
                    expected.append(value)
            assert self.node.visible("t", partition) == expected

    @invariant()
    def nothing_hangs(self) -> None:
        if not hasattr(self, "node"):
            return
        open_owners = [owner for owner in self.owners.values() if owner.open is not None]
        for partition in PARTITIONS:
            log = self.node.logs.get("t", partition)
            is_open = any(txn in [owner.open for owner in open_owners] for _, txn in self.logs[partition])
            assert (log.last_stable_offset < log.log_end_offset) == is_open

    @invariant()
    def states_agree(self) -> None:
        if not hasattr(self, "node"):
            return
        for name, owner in self.owners.items():
            if owner.producer is None:
                continue
            txn = self.node.coordinator.describe(name)
            assert (txn.producer_id, txn.producer_epoch) == owner.producer
            assert (STATE_NAMES[txn.state] == "Ongoing") == (owner.open is not None)


TestModel = Machine.TestCase
TestModel.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
