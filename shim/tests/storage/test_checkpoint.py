"""The text checkpoints of a data directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka_shim.storage import checkpoint


@pytest.mark.parametrize("text", ["1\n0\n", "0\n2\nt 0 1\n", "0\n1\nt 0\n", "0\n1\nt x 1\n", "0\nx\nt 0 1\n"])
def test_malformed_checkpoints_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c"
    path.write_text(text)
    with pytest.raises(checkpoint.CheckpointError, match="c: "):
        checkpoint.read_offsets(str(path))


def test_checkpoints_round_trip_and_missing_ones_are_empty(tmp_path: Path) -> None:
    path = str(tmp_path / "c")
    assert checkpoint.read_offsets(path) == {}
    checkpoint.write_offsets(path, {("a", 1): 5, ("b.c-d", 0): 2**62}, sync=True)
    assert checkpoint.read_offsets(path) == {("a", 1): 5, ("b.c-d", 0): 2**62}
    assert (tmp_path / "c").read_text().startswith("0\n2\na 1 5\n")
    assert os.listdir(tmp_path) == ["c"]
