"""One pass over the partitions of a request; what it does with logs is in shim/tests/storage/test_many_logs.py."""

from __future__ import annotations

import pytest

from kafka_shim.cext.many_logs import PartitionBatch, take_guards
from kafka_shim.cext.tests import oracle
from kafka_shim.cext.tests.exact import exact

PAYLOAD = oracle.write_record(0, 0, b"key", b"value")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (oracle.write_batch(PAYLOAD, 1, attributes=0x10, producer_id=7, producer_epoch=3, base_sequence=9), (7, 3, 9)),
        (oracle.write_batch(PAYLOAD, 1, attributes=0x14), (-1, -1, -1)),
        (oracle.write_batch(PAYLOAD, 1, attributes=0xF, producer_id=7), None),
        (oracle.write_batch(PAYLOAD, 1, attributes=0x10, magic=1), None),
        (oracle.write_batch(PAYLOAD, 1, attributes=0x10, producer_id=7)[:60], None),
        (b"", None),
    ],
)
def test_the_producer_of_a_transactional_batch(data, expected):
    with exact(data) as buffer:
        batch = PartitionBatch(None, buffer)
        batch.records = None
        found = batch.producer_id, batch.producer_epoch, batch.base_sequence
        assert batch.is_transactional is (expected is not None)
        assert found == expected or (expected is None and batch.producer_id == -1)


def test_as_many_outcomes_as_batches():
    with pytest.raises(ValueError, match="2 outcomes of 1 batches"):
        take_guards([PartitionBatch(None, b"")], [None, None])
