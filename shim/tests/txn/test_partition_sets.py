"""The sets of partitions that are kept between the transactions of a producer."""

from __future__ import annotations

import gc
import tracemalloc

from kafka_shim.tests.txn.harness import Node
from kafka_shim.txn import partition_sets
from kafka_shim.txn.partition_sets import PartitionSets
from kafka_shim.txn.records import CACHED_PARTITIONS

IDS = 3000


def test_a_set_is_kept_for_the_next_transaction_and_is_the_one_that_was_asked_for() -> None:
    sets = PartitionSets()
    first, second = [("t", 0), ("t", 1)], [("t", 1)]
    begun = sets.set_of("app", first, is_first=True)
    assert begun == frozenset(first)
    assert sets.set_of("app", list(first), is_first=True) is begun
    assert sets.set_of("app", second, is_first=False) == frozenset(second)
    assert sets.set_of("app", list(first), is_first=True) is begun
    assert sets.set_of("app", second, is_first=True) == frozenset(second)
    assert sets.set_of("app", first, is_first=True) == frozenset(first)
    assert sets.set_of("other", second, is_first=True) == frozenset(second)


def test_the_sets_of_the_last_ids_are_kept_alone() -> None:
    sets, added = PartitionSets(), [("t", 0)]
    oldest, next_one = (sets.set_of(name, added, is_first=True) for name in ("oldest", "next"))
    for number in range(partition_sets.KEPT_IDS - 1):
        sets.set_of(f"app-{number}", added, is_first=True)
    assert sets.set_of("next", list(added), is_first=True) is next_one
    assert sets.set_of("oldest", list(added), is_first=True) is not oldest


def test_a_large_set_is_not_kept() -> None:
    sets, added = PartitionSets(), [("t", number) for number in range(CACHED_PARTITIONS + 1)]
    large = sets.set_of("app", added, is_first=True)
    assert large == frozenset(added)
    assert sets.set_of("app", list(added), is_first=True) is not large


def test_an_id_at_rest_holds_nothing_of_its_last_transaction(node: Node) -> None:
    """Each kept the set of its last transaction and the list that it was made of: 432 bytes."""

    def transactions(prefix: str) -> None:
        for number in range(IDS):
            name = f"{prefix}-{number}"
            producer = node.init(name)
            node.produce(name, producer, "orders", 0, "v")
            node.end(name, producer, commit=True)
        node.sequences.clear()
        node.markers.clear()
        gc.collect()

    def bytes_of_sets() -> int:
        files = ("*/txn/log.py", "*/txn/admission.py", "*/txn/partition_sets.py")
        snapshot = tracemalloc.take_snapshot()
        return sum(one.size for one in snapshot.filter_traces([tracemalloc.Filter(True, f) for f in files]).traces)

    transactions("before")
    tracemalloc.start()
    try:
        transactions("app")
        held = bytes_of_sets()
    finally:
        tracemalloc.stop()
    assert held < 200 * IDS
