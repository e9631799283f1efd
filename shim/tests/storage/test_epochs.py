"""Leader epochs: every change is in the file at once, because a crash leaves nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim.storage.checkpoint import CheckpointError
from kafka_shim.storage.epochs import UNKNOWN, LeaderEpochs
from kafka_shim.storage.names import LEADER_EPOCHS

STORED = [(1, 0), (3, 10), (4, 25)]


def stored(directory: Path) -> list[tuple[int, int]]:
    """What the next start reads."""
    epochs = LeaderEpochs(str(directory))
    epochs.load()
    return epochs.entries


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    epochs = LeaderEpochs(str(tmp_path))
    for epoch, start_offset in STORED:
        epochs.assign(epoch, start_offset)
    assert stored(tmp_path) == STORED
    return epochs


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda epochs: epochs.assign(4, 30), STORED),
        (lambda epochs: epochs.assign(5, 30), [*STORED, (5, 30)]),
        (lambda epochs: epochs.assign(4, 20), [(1, 0), (3, 10), (4, 20)]),
        (lambda epochs: epochs.assign(2, 5), [(1, 0), (2, 5)]),
        (lambda epochs: epochs.truncate_from_end(26), STORED),
        (lambda epochs: epochs.truncate_from_end(25), STORED[:2]),
        (lambda epochs: epochs.truncate_from_end(0), []),
        (lambda epochs: epochs.clear(), []),
    ],
)
def test_every_change_is_in_the_file(
    tmp_path: Path, epochs: LeaderEpochs, change: Callable[[LeaderEpochs], None], left: list[tuple[int, int]]
) -> None:
    change(epochs)
    assert epochs.entries == left
    assert stored(tmp_path) == left


@pytest.mark.parametrize(
    ("start_offset", "left"),
    [
        (0, STORED),
        (7, [(1, 7), (3, 10), (4, 25)]),
        (10, STORED[1:]),
        (12, [(3, 12), (4, 25)]),
        (99, [(4, 99)]),
    ],
)
@pytest.mark.parametrize("ending", ["close", "change"])
def test_what_ended_before_the_log_start_offset_leaves_the_file_with_the_next_change_or_at_the_end(
    tmp_path: Path, epochs: LeaderEpochs, start_offset: int, left: list[tuple[int, int]], ending: str
) -> None:
    epochs.truncate_from_start(start_offset)
    assert epochs.entries == left
    assert stored(tmp_path) == STORED
    if ending == "close":
        epochs.close()
        assert stored(tmp_path) == left
    else:
        epochs.assign(5, 100)
        assert stored(tmp_path) == [*left, (5, 100)]
    (tmp_path / LEADER_EPOCHS).unlink()
    epochs.close()
    assert not (tmp_path / LEADER_EPOCHS).exists(), "there was nothing to replace"


def test_epoch_of_an_offset_and_end_of_an_epoch(epochs: LeaderEpochs) -> None:
    assert [epochs.at(offset) for offset in (0, 9, 10, 24, 25, 1000)] == [1, 1, 3, 3, 4, 4]
    assert [epochs.end_offset_for(epoch, 40, 4) for epoch in (-1, 0, 1, 2, 3, 4, 5)] == [
        UNKNOWN,
        (0, 0),
        (1, 10),
        (1, 10),
        (3, 25),
        (4, 40),
        UNKNOWN,
    ]
    # The epochs from 5 on have no record.
    assert [epochs.end_offset_for(epoch, 40, 7) for epoch in (3, 4, 5, 6, 7, 8)] == [
        (3, 25),
        (4, 40),
        (4, 40),
        (4, 40),
        (7, 40),
        UNKNOWN,
    ]


def test_damaged_file_is_refused_with_its_path(tmp_path: Path, epochs: LeaderEpochs) -> None:
    (tmp_path / LEADER_EPOCHS).write_text("0\n1\none 2\n")
    with pytest.raises(CheckpointError, match=LEADER_EPOCHS):
        epochs.load()
