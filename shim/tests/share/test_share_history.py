"""A share group in any order of appends, fetches, acknowledgements, silence, ends of locks and sessions, and crashes.

The checker judges its history. Planted faults show that it would find them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.history.share_checker import ShareReport, check
from kafka_shim.history.share_operations import ACCEPT, REJECT, RELEASE, RENEW, ShareOperation
from kafka_shim.share import share_partition_acknowledge
from kafka_shim.share.in_flight_batch import InFlightState
from kafka_shim.share.persister import ShareStatePersister
from kafka_shim.share.record_state import RecordState
from kafka_shim.share.share_partition_acknowledge import release_members
from kafka_shim.share.state import StateBatch
from kafka_shim.tests.share.share_node import ShareNode

KEY = "t-0"
LIMIT = 4
LOCK_MS = 15_000
# What a member does with a range that it has acquired; None: nothing.
CHOICES = (ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT, RENEW, None)


class Chaos:
    """Members of one group on one broker without its network, under its virtual clock."""

    def __init__(self, path: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.node = ShareNode(
            path,
            group_share_delivery_count_limit=LIMIT,
            group_share_record_lock_duration_ms=LOCK_MS,
            share_coordinator_state_topic_num_partitions=1,
            share_coordinator_snapshot_update_records_per_snapshot=20,
        )
        self.history: list[ShareOperation] = []
        self.life = 0
        self.sent = 0
        self.turn = 0
        self.members = 0
        # Member -> ranges that it was given and did nothing with yet.
        self.held: dict[str, list[tuple[int, int]]] = {}
        for _ in range(3):
            self.join()

    def now(self) -> tuple[float, float]:
        """When a request began and ended: no two at the same time."""
        self.turn += 1
        start = self.node.clock.monotonic_ms() + self.turn * 1e-3
        return start, start + 5e-4

    def join(self) -> None:
        self.members += 1
        self.held[f"m{self.members}"] = []

    def produce(self) -> None:
        count = self.random.randint(1, 8)
        first, self.sent = self.sent, self.sent + count
        records = [(offset, str(offset)) for offset in range(first, self.sent)]
        self.node.produce(count)
        self.history.append(ShareOperation("send", "ok", self.now(), key=KEY, records=records))

    def fetch(self, member: str, most: int) -> bool:
        at = self.now()
        got = self.node.acquire(member, most, self.random.randint(1, 6), strict=self.random.random() < 0.5)
        acquired = [(offset, count, str(offset)) for first, last, count in got for offset in range(first, last + 1)]
        # What it gets again it has once: what is acknowledged below the start offset is answered without error, as on
        # Kafka.
        kept = [one for one in self.held[member] if all(one[1] < first or last < one[0] for first, last, _ in got)]
        self.held[member] = kept + [(first, last) for first, last, _ in got]
        self.history.append(
            ShareOperation("fetch", "ok", at, member=member, life=self.life, acquired={KEY: acquired} if got else None)
        )
        return bool(got)

    def acknowledge(self, member: str, first: int, last: int, kind: int) -> None:
        at = self.now()
        code = self.node.acknowledge(member, (first, last, [kind]))
        types = [(offset, kind) for offset in range(first, last + 1)]
        outcome = "ok" if code is ErrorCode.NONE else "fail"
        self.history.append(
            ShareOperation("acknowledge", outcome, at, member=member, life=self.life, key=KEY, types=types)
        )

    def conclude(self, member: str) -> None:
        """Do something with what was acquired last, or a part of it."""
        if not self.held[member]:
            return
        first, last = self.held[member].pop(self.random.randrange(len(self.held[member])))
        kind = self.random.choice(CHOICES)
        if self.random.random() < 0.3:
            last = self.random.randint(first, last)
        if kind is not None:
            self.acknowledge(member, first, last, kind)

    def leave(self, member: str) -> None:
        self.history.append(ShareOperation("close", "ok", self.now(), member=member, life=self.life))
        release_members(self.node.share, {member})
        del self.held[member]
        self.join()

    def crash(self) -> None:
        self.node.crash()
        self.life += 1
        for member in list(self.held):
            del self.held[member]
            self.join()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            member = self.random.choice(list(self.held))
            weights = (8, 20, 30, 6, 3, 1)
            actions: tuple[Callable[[], object], ...] = (
                self.produce,
                lambda member=member: self.fetch(member, self.random.randint(1, 12)),
                lambda member=member: self.conclude(member),
                lambda: self.node.clock.advance(self.random.choice((1, 5_000, LOCK_MS))),
                lambda member=member: self.leave(member),
                self.crash,
            )
            self.random.choices(actions, weights)[0]()

    def report(self) -> ShareReport:
        """Let the locks end, and accept the rest."""
        self.node.clock.advance(LOCK_MS)
        self.join()
        member = f"m{self.members}"
        while self.fetch(member, 100):
            for first, last in self.held[member]:
                self.acknowledge(member, first, last, ACCEPT)
            self.held[member].clear()
        return check(self.history, delivery_limit=LIMIT, lock_ms=LOCK_MS)


def chaos(path: Path, seed: int, steps: int) -> ShareReport:
    """The report on one run."""
    run = Chaos(path, seed)
    try:
        run.run(steps)
        return run.report()
    finally:
        run.node.stop()


@pytest.mark.parametrize("seed", range(3))
def test_every_record_is_acknowledged_by_those_who_may(tmp_path: Path, seed: int) -> None:
    report = chaos(tmp_path, seed, 500)
    assert report.is_clean, "\n".join(report.lines())
    assert min(report.sent, report.accepted, report.released, report.rejected) > 5
    assert report.delivered > report.sent


@pytest.mark.soak
def test_every_record_is_acknowledged_by_those_who_may_in_many_runs(tmp_path: Path) -> None:
    for seed in range(100, 300):
        report = chaos(tmp_path / str(seed), seed, 1000)
        assert report.is_clean, "\n".join([f"seed {seed}", *report.lines()])


# --- planted faults


def accepted_stays_available(monkeypatch: pytest.MonkeyPatch) -> None:
    def enter(self: InFlightState, target: RecordState) -> None:
        self.state = RecordState.AVAILABLE if target is RecordState.ACKNOWLEDGED else target
        self.member_id, self.lock_until_ms = "", 0

    monkeypatch.setattr(InFlightState, "enter", enter)
    monkeypatch.setattr(share_partition_acknowledge, "TERMINAL", frozenset({RecordState.ACKNOWLEDGED}))
    original = share_partition_acknowledge._Plan.apply

    def apply(self: object) -> None:
        original(self)  # type: ignore[arg-type]
        self._share.found_available(-1)  # type: ignore[attr-defined]

    monkeypatch.setattr(share_partition_acknowledge._Plan, "apply", apply)


def a_crash_loses_acknowledgements(monkeypatch: pytest.MonkeyPatch) -> None:
    original = ShareStatePersister.read_state

    def read_state(self: ShareStatePersister, *key: object) -> tuple[int, int, int, list[StateBatch]]:
        state_epoch, start_offset, count, stored = original(self, *key)  # type: ignore[arg-type]
        kept = [one for one in stored if one.delivery_state != RecordState.ACKNOWLEDGED]
        return state_epoch, start_offset, count, kept

    monkeypatch.setattr(ShareStatePersister, "read_state", read_state)


def a_release_forgets_the_delivery(monkeypatch: pytest.MonkeyPatch) -> None:
    original = InFlightState.enter

    def enter(self: InFlightState, target: RecordState) -> None:
        original(self, target)
        if target is RecordState.AVAILABLE:
            self.delivery_count -= 1

    monkeypatch.setattr(InFlightState, "enter", enter)


def a_release_counts_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    original = InFlightState.enter

    def enter(self: InFlightState, target: RecordState) -> None:
        original(self, target)
        if target is RecordState.AVAILABLE:
            self.delivery_count += 1

    monkeypatch.setattr(InFlightState, "enter", enter)


def a_lock_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    original = InFlightState.acquire

    def acquire(self: InFlightState, member_id: str, lock_until_ms: int) -> None:
        original(self, member_id, lock_until_ms)
        self.state = RecordState.AVAILABLE

    monkeypatch.setattr(InFlightState, "acquire", acquire)


def anybody_may_acknowledge(monkeypatch: pytest.MonkeyPatch) -> None:
    original = ShareNode.acknowledge

    def acknowledge(self: ShareNode, member_id: str, *batches: tuple[int, int, list[int]]) -> ErrorCode:
        for batch in self.share.batches:
            for _, _, state in batch.pieces(batch.first_offset, batch.last_offset):
                if state.state is RecordState.ACQUIRED:
                    state.member_id = member_id
        return original(self, member_id, *batches)

    monkeypatch.setattr(ShareNode, "acknowledge", acknowledge)


def a_released_record_is_never_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    original = InFlightState.enter

    def enter(self: InFlightState, target: RecordState) -> None:
        original(self, RecordState.ARCHIVED if target is RecordState.AVAILABLE else target)

    monkeypatch.setattr(InFlightState, "enter", enter)


PLANTED = {
    accepted_stays_available: "delivered-after-accept",
    a_crash_loses_acknowledgements: "delivered-after-accept",
    a_release_forgets_the_delivery: "delivery-count-went-back",
    a_release_counts_twice: "delivery-count-skipped",
    a_lock_ends_early: "delivered-under-lock",
    anybody_may_acknowledge: "acknowledged-by-another",
    a_released_record_is_never_found_again: "lost",
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[..., None]) -> None:
    plant(monkeypatch)
    run = Chaos(tmp_path, 7)
    try:
        run.run(250)
    finally:
        run.node.stop()
    report = check(run.history, delivery_limit=LIMIT, lock_ms=LOCK_MS)
    assert PLANTED[plant] in report.errors, "\n".join(report.lines())
