"""The index of aborted transactions, by itself. test_log has it with its log."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim.storage.txn_index import TxnIndex


def test_offsets_of_markers_ascend_and_nothing_else_is_added(tmp_path: Path) -> None:
    index = TxnIndex(str(tmp_path / "0.txnindex"))
    index.append(1, 0, 5, 0)
    for last_offset in (5, 4):
        with pytest.raises(ValueError, match=f"{last_offset} is not above the last offset 5"):
            index.append(2, 3, last_offset, 0)
    index.append(2, 3, 6, 0)
    assert list(index.last_offsets) == list(TxnIndex(index.path).last_offsets) == [5, 6]
