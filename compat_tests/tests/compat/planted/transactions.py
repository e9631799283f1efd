"""Bugs of producer ids and transactions."""

from __future__ import annotations

from typing import Any

from kafka_shim.compat.tests.compat.planted import caught_by


@caught_by("a1-a-restart-takes-a-new-block", "a later block after the kill: False where True is right")
def blocks_of_ids_are_not_recorded() -> None:
    from kafka_shim.metadata.store import MetadataStore

    MetadataStore.next_producer_id_block = lambda store: (store.image.next_producer_id, 1000, None)  # type: ignore[method-assign]


@caught_by("a1-producer-ids-run-out", "'NONE' where 'COORDINATOR_LOAD_IN_PROGRESS' is right")
def producer_ids_begin_anew() -> None:
    from kafka_shim.metadata.store import MetadataStore

    right = MetadataStore.next_producer_id_block

    def anew(store: MetadataStore) -> tuple[object, ...]:
        return (0, 1000, None) if store.image.next_producer_id > 2**62 else right(store)

    MetadataStore.next_producer_id_block = anew  # type: ignore[method-assign]


@caught_by("b7-transactional-ids-expire", "their end: not within")
def transactional_ids_never_expire() -> None:
    from kafka_shim.txn.coordinator import TransactionCoordinator

    TransactionCoordinator.remove_expired = lambda coordinator: None  # type: ignore[method-assign]


@caught_by("b24-markers-of-kip-890-carry-the-next-epoch", "markers written: not within")
def tv2_does_not_bump() -> None:
    from kafka_shim.api import k26_end_txn
    from kafka_shim.txn import state

    k26_end_txn.PLAIN = None  # type: ignore[assignment]
    right = state._prepare

    def stays(txn: Any, target: Any, client_version: int, now_ms: int, new_producer_id: Any, *more: Any) -> Any:
        return right(txn, target, client_version, now_ms, None, *more)

    state._prepare = stays


@caught_by("b9-produce-to-what-was-not-added", "Produce v3 at sequence 0: 'NONE' where 'INVALID_TXN_STATE' is right")
def old_versions_add_partitions_too() -> None:
    from kafka_shim.txn import admission

    admission.operation_of_produce = lambda version: admission.ADDED


@caught_by("b5-timeouts-out-of-range", "'NONE' where 'INVALID_TRANSACTION_TIMEOUT' is right")
def any_timeout_is_taken() -> None:
    from kafka_shim.txn.coordinator import TransactionCoordinator

    TransactionCoordinator._check_timeout = lambda coordinator, timeout_ms: None  # type: ignore[method-assign]


@caught_by("b13-a-transaction-times-out", "the abort marker: not within")
def nothing_times_out() -> None:
    from kafka_shim.txn.coordinator import TransactionCoordinator

    TransactionCoordinator.abort_timed_out = lambda coordinator: None  # type: ignore[method-assign]


@caught_by("b12-killed-between-the-markers", "killed at txn.after_prepare: [] where [b'data'] is right")
def what_was_prepared_is_not_resumed() -> None:
    from kafka_shim.txn.completion import Completion

    Completion.resume_all = lambda completion, slots: None  # type: ignore[method-assign]
