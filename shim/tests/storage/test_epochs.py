"""Leader epochs: every change is in the file at once, because a crash leaves nothing else."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim.storage.checkpoint import CheckpointError
from kafka_shim.storage.epochs import UNKNOWN, LeaderEpochs
from kafka_shim.storage.names import LEADER_EPOCHS
from kafka_shim.tests.storage.conftest import Disk, put
from kafka_shim.tests.storage.restarted import EPOCHS

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


def test_leader_epochs_are_found_again_in_the_batches(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    log.leader_epoch = 3
    put(log, b"b")
    disk.crash()
    (disk.partition / "leader-epoch-checkpoint").write_text("nonsense\n")
    assert disk.open().epochs.entries == [(0, 0), (3, 1)]


@pytest.mark.parametrize("ended", ["stop", "crash"])
@pytest.mark.parametrize("left", [None, "", "0\n3\n0 0\n1 "])
def test_lost_leader_epochs_are_read_from_the_batches(
    make_disk: Callable[..., Disk], ended: str, left: str | None
) -> None:
    """Those below the recovery point too, whose segments are not scanned."""
    disk = make_disk({"internal.segment.bytes": "400"})
    log = disk.open()
    for number in range(20):
        log.leader_epoch = number // 7
        put(log, b"x" * 60)
    log.flush()
    disk.checkpoint()
    assert len(log.segments) > 5
    expected = [(0, 0), (1, 7), (2, 14)]
    assert log.epochs.entries == expected
    getattr(disk, ended)()
    file = disk.partition / EPOCHS
    if left is None:
        file.unlink()
    else:
        file.write_text(left)
    log = disk.open()
    assert log.epochs.entries == expected
    assert (log.earliest().leader_epoch, log.end_offset_for_epoch(1)) == (0, (1, 14))
    disk.stop()
    assert disk.open().epochs.entries == expected


def test_a_full_disk_keeps_no_partition_from_its_readers_whose_leader_epochs_are_lost(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    disk = make_disk({"internal.segment.bytes": "400"})
    log = disk.open()
    for _ in range(20):
        put(log, b"x" * 60)
    disk.stop()
    (disk.partition / EPOCHS).unlink()
    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.storage.epochs.LeaderEpochs.save", refuse)
        log = disk.open()
        assert (log.log_end_offset, log.epochs.entries) == (20, [(0, 0)])
    disk.stop()
    assert (disk.partition / EPOCHS).exists()
