"""Bugs of the data path."""

from __future__ import annotations

from typing import Any

from kafka_shim.compat.tests.compat.planted import caught_by


@caught_by("b14-nothing-at-or-above-the-first-open-transaction", "from 0: (3, 4, [0, 1, 2])")
def lso_is_off_by_one() -> None:
    from kafka_shim.storage.log import PartitionLog

    right = PartitionLog.last_stable_offset.fget
    assert right is not None
    PartitionLog.last_stable_offset = property(  # type: ignore[assignment, method-assign]
        lambda log: min(right(log) + 1, log.log_end_offset)
    )


@caught_by(
    "a4-five-batches-are-remembered", "Produce v12 at sequence 2: 'OUT_OF_ORDER_SEQUENCE_NUMBER' where 'NONE' is right"
)
def nothing_is_a_duplicate() -> None:
    from kafka_shim.storage.producers import ProducerEntry

    ProducerEntry.duplicate_of = lambda entry, batch: None  # type: ignore[method-assign]


@caught_by("a4-five-batches-are-remembered", "'NONE' where 'OUT_OF_ORDER_SEQUENCE_NUMBER' is right")
def six_batches_are_cached() -> None:
    from kafka_shim.storage import producers

    producers.CACHED_BATCHES = 6  # type: ignore[misc]


@caught_by("a6-epochs-up-and-down", "'PRODUCER_FENCED' where 'INVALID_PRODUCER_EPOCH' is right")
def an_old_epoch_has_the_wrong_code() -> None:
    from kafka_shim.errors import ErrorCode
    from kafka_shim.storage.producers import Producers

    Producers._stale_epoch = lambda states, epoch, entry: states._refuse(  # type: ignore[method-assign]
        ErrorCode.PRODUCER_FENCED, entry.producer_id, f"epoch {epoch}"
    )


@caught_by("a3-the-sequence-wraps", "Produce v12 at sequence 0: 'OUT_OF_ORDER_SEQUENCE_NUMBER' where 'NONE' is right")
def the_sequence_does_not_wrap() -> None:
    from kafka_shim.storage import producers

    producers.MAX_SEQUENCE = 2**31  # type: ignore[misc]


@caught_by(
    "a9-the-snapshot-knows-the-last-batch",
    "Produce v12 at sequence 3: 'NONE' where 'OUT_OF_ORDER_SEQUENCE_NUMBER' is right",
)
def snapshots_are_empty() -> None:
    from kafka_shim.storage import producer_snapshot

    write = producer_snapshot.write
    producer_snapshot.write = lambda path, entries, *, sync: write(path, [], sync=sync)


@caught_by("b14-aborted-transactions-come-in-the-order-of-their-markers", "the list: [(0, 0), (1, 1), (2, 3)]")
def aborts_are_in_the_order_of_first_offsets() -> None:
    from kafka_shim.storage import lookup

    right = lookup._aborted
    lookup._aborted = lambda *where: sorted(right(*where), key=lambda entry: entry[1])


@caught_by("b14-the-list-is-complete-for-the-range", "first offsets: [2, 6] where [0, 2, 6] is right")
def the_first_abort_is_forgotten() -> None:
    from kafka_shim.storage import lookup

    right = lookup._aborted
    lookup._aborted = lambda *where: right(*where)[1:]


@caught_by("b15-a-parked-reader-wakes-with-its-isolation", "one answer from")
def markers_wake_nobody() -> None:
    from kafka_shim.api import k26_end_txn
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.txn import marking

    k26_end_txn.PLAIN = None  # type: ignore[assignment]
    wake = PartitionLog._wake

    def asleep(append: Any) -> Any:
        def appended(*arguments: Any, **more: Any) -> Any:
            PartitionLog._wake = lambda log: None  # type: ignore[method-assign]
            try:
                return append(*arguments, **more)
            finally:
                PartitionLog._wake = wake  # type: ignore[method-assign]

        return appended

    PartitionLog.append_marker = asleep(PartitionLog.append_marker)  # type: ignore[method-assign]
    marking.commit_each = asleep(marking.commit_each)


@caught_by("a9-producers-expire", "the old one's end: not within")
def producers_never_expire() -> None:
    from kafka_shim.storage.producers import Producers

    Producers.expire_in_slices = lambda states, now_ms, expiration_ms: iter(())  # type: ignore[method-assign]


@caught_by("b9-a-marker-between-verification-and-append", "'NONE' where 'INVALID_TXN_STATE' is right")
def markers_leave_guards() -> None:
    from kafka_shim.storage.producers import Producers

    right = Producers.apply_marker

    def leaves(states: Any, marker: Any, offset: int) -> Any:
        guards = dict(states._verifications)
        found = right(states, marker, offset)
        states._verifications = guards
        return found

    Producers.apply_marker = leaves  # type: ignore[method-assign]


@caught_by("b11-markers-from-outside", "TV2 at the same epoch: 'NONE' where 'INVALID_PRODUCER_EPOCH' is right")
def any_marker_is_taken() -> None:
    from kafka_shim.storage.producers import Producers

    Producers.check_marker = lambda states, marker, transaction_version: None  # type: ignore[method-assign]
