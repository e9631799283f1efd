"""The shim with one deliberate bug, in a process of its own (``python -m kafka_shim.compat.tests.compat.planted BUG
serve``).

Each bug is a patch of one part, and names the scenario that must catch it. The broker itself knows nothing of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kafka_shim.targets.shim_process import ShimProcess

BUGS: dict[str, tuple[str, Callable[[], None]]] = {}


class PlantedShim(ShimProcess):
    """The shim process with a bug."""

    def __init__(self, bug: str, settings: Mapping[str, str] | None = None, data_dir: Path | None = None) -> None:
        super().__init__(settings, data_dir)
        self.bug = bug

    def command(self) -> list[str]:
        python, _, _, *rest = super().command()
        return [python, "-m", "kafka_shim.compat.tests.compat.planted", self.bug, *rest]


def caught_by(scenario: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(plant: Callable[[], None]) -> Callable[[], None]:
        BUGS[plant.__name__] = (scenario, plant)
        return plant

    return register


# --- the data path


@caught_by("b14-nothing-at-or-above-the-first-open-transaction")
def lso_is_off_by_one() -> None:
    from kafka_shim.storage.log import PartitionLog

    right = PartitionLog.last_stable_offset.fget
    assert right is not None
    PartitionLog.last_stable_offset = property(  # type: ignore[assignment, method-assign]
        lambda log: min(right(log) + 1, log.log_end_offset)
    )


@caught_by("a4-five-batches-are-remembered")
def nothing_is_a_duplicate() -> None:
    from kafka_shim.storage.producers import ProducerEntry

    ProducerEntry.duplicate_of = lambda entry, batch: None  # type: ignore[method-assign]


@caught_by("a4-five-batches-are-remembered")
def six_batches_are_cached() -> None:
    from kafka_shim.storage import producers

    producers.CACHED_BATCHES = 6  # type: ignore[misc]


@caught_by("a6-epochs-up-and-down")
def an_old_epoch_has_the_wrong_code() -> None:
    from kafka_shim.errors import ErrorCode
    from kafka_shim.storage.producers import Producers

    Producers._stale_epoch = lambda states, epoch, entry: states._refuse(  # type: ignore[method-assign]
        ErrorCode.PRODUCER_FENCED, entry.producer_id, f"epoch {epoch}"
    )


@caught_by("a3-the-sequence-wraps")
def the_sequence_does_not_wrap() -> None:
    from kafka_shim.storage import producers

    producers.MAX_SEQUENCE = 2**31  # type: ignore[misc]


@caught_by("a9-the-snapshot-knows-the-last-batch")
def snapshots_are_empty() -> None:
    from kafka_shim.storage import producer_snapshot

    write = producer_snapshot.write
    producer_snapshot.write = lambda path, entries, *, sync: write(path, [], sync=sync)


@caught_by("b14-aborted-transactions-come-in-the-order-of-their-markers")
def aborts_are_in_the_order_of_first_offsets() -> None:
    from kafka_shim.storage import lookup

    right = lookup._aborted
    lookup._aborted = lambda *where: sorted(right(*where), key=lambda entry: entry[1])


@caught_by("b14-the-list-is-complete-for-the-range")
def the_first_abort_is_forgotten() -> None:
    from kafka_shim.storage import lookup

    right = lookup._aborted
    lookup._aborted = lambda *where: right(*where)[1:]


@caught_by("b15-a-parked-reader-wakes-with-its-isolation")
def markers_wake_nobody() -> None:
    from kafka_shim.storage.log import PartitionLog

    append_marker, wake = PartitionLog.append_marker, PartitionLog._wake

    def asleep(log: PartitionLog, *arguments: Any, **more: Any) -> int:
        PartitionLog._wake = lambda log: None  # type: ignore[method-assign]
        try:
            return append_marker(log, *arguments, **more)
        finally:
            PartitionLog._wake = wake  # type: ignore[method-assign]

    PartitionLog.append_marker = asleep  # type: ignore[method-assign]


@caught_by("a9-producers-expire")
def producers_never_expire() -> None:
    from kafka_shim.storage.producers import Producers

    Producers.expire = lambda states, now_ms, expiration_ms: 0  # type: ignore[method-assign]


@caught_by("b9-a-marker-between-verification-and-append")
def markers_leave_guards() -> None:
    from kafka_shim.storage.producers import Producers

    right = Producers.apply_marker

    def leaves(states: Any, marker: Any, offset: int) -> Any:
        guards = dict(states._verifications)
        found = right(states, marker, offset)
        states._verifications = guards
        return found

    Producers.apply_marker = leaves  # type: ignore[method-assign]


@caught_by("b11-markers-from-outside")
def any_marker_is_taken() -> None:
    from kafka_shim.storage.producers import Producers

    Producers.check_marker = lambda states, marker, transaction_version: None  # type: ignore[method-assign]


# --- producer ids and transactions


@caught_by("a1-a-restart-takes-a-new-block")
def blocks_of_ids_are_not_recorded() -> None:
    from kafka_shim.metadata.store import MetadataStore

    MetadataStore.next_producer_id_block = lambda store: (store.image.next_producer_id, 1000, None)  # type: ignore[method-assign]


@caught_by("a1-producer-ids-run-out")
def producer_ids_begin_anew() -> None:
    from kafka_shim.metadata.store import MetadataStore

    right = MetadataStore.next_producer_id_block

    def anew(store: MetadataStore) -> tuple[object, ...]:
        return (0, 1000, None) if store.image.next_producer_id > 2**62 else right(store)

    MetadataStore.next_producer_id_block = anew  # type: ignore[method-assign]


@caught_by("b7-transactional-ids-expire")
def transactional_ids_never_expire() -> None:
    from kafka_shim.txn.coordinator import TransactionCoordinator

    TransactionCoordinator.remove_expired = lambda coordinator: None  # type: ignore[method-assign]


@caught_by("b24-markers-of-kip-890-carry-the-next-epoch")
def tv2_does_not_bump() -> None:
    from kafka_shim.txn import state

    right = state._prepare

    def stays(txn: Any, target: Any, client_version: int, now_ms: int, new_producer_id: Any, *more: Any) -> Any:
        return right(txn, target, client_version, now_ms, None, *more)

    state._prepare = stays


@caught_by("b9-produce-to-what-was-not-added")
def old_versions_add_partitions_too() -> None:
    from kafka_shim.txn import admission

    admission.operation_of_produce = lambda version: admission.ADDED


@caught_by("b5-timeouts-out-of-range")
def any_timeout_is_taken() -> None:
    from kafka_shim.txn.coordinator import TransactionCoordinator

    TransactionCoordinator._check_timeout = lambda coordinator, timeout_ms: None  # type: ignore[method-assign]


@caught_by("b13-a-transaction-times-out")
def nothing_times_out() -> None:
    from kafka_shim.txn.coordinator import TransactionCoordinator

    TransactionCoordinator.abort_timed_out = lambda coordinator: None  # type: ignore[method-assign]


@caught_by("b12-killed-between-the-markers")
def what_was_prepared_is_not_resumed() -> None:
    from kafka_shim.txn.completion import Completion

    Completion.resume = lambda completion, slot, prepared: None  # type: ignore[method-assign]


# --- groups and offsets


@caught_by("b16-pending-offsets-are-unstable")
def pending_offsets_are_lost() -> None:
    from kafka_shim.group.offsets import Offsets

    right = Offsets.complete
    Offsets.complete = lambda offsets, producer_id, commit: right(offsets, producer_id, False)  # type: ignore[method-assign]


@caught_by("b16-pending-offsets-are-unstable")
def require_stable_is_ignored() -> None:
    from kafka_shim.group.offsets import Offsets

    Offsets.has_pending = lambda offsets, group_id, topic, partition: False  # type: ignore[method-assign]


@caught_by("c2-strangers-and-old-generations")
def strangers_are_members() -> None:
    from kafka_shim.group.classic import ClassicGroup

    right = ClassicGroup.check_member

    def anyone(group: ClassicGroup, member_id: str, instance_id: str | None) -> Any:
        return group.members.get(member_id) or next(iter(group.members.values()), None) or right(group, member_id, None)

    ClassicGroup.check_member = anyone  # type: ignore[method-assign]


@caught_by("c16-offsets-come-back-after-a-kill")
def offsets_are_only_in_memory() -> None:
    from kafka_shim.group import replay

    replay._apply = lambda *_: None


# --- the wire


@caught_by("b26-advertised-versions")
def an_api_is_advertised_too_high() -> None:
    from kafka_shim.api import k18_api_versions

    next(row for row in k18_api_versions._RANGES if row.api_key == 22).max_version = 6


def main() -> None:
    bug, *arguments = sys.argv[1:]
    BUGS[bug][1]()
    from kafka_shim.cli import main as serve

    sys.exit(serve(arguments))


if __name__ == "__main__":
    main()
