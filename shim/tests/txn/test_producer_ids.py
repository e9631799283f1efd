"""A1: producer ids come in recorded blocks, and none is handed out twice."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.txn.producer_ids import ProducerIds


class Blocks:
    """Stands for the metadata log: what is recorded stays recorded."""

    def __init__(self, first: int = 0) -> None:
        self.next_id = first
        self.recorded = 0

    def take(self) -> tuple[int, int, None]:
        if self.next_id > 2**63 - 1 - 1000:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "no block left")
        first, self.next_id = self.next_id, self.next_id + 1000
        self.recorded += 1
        return first, 1000, None


def test_ids_run_through_a_block_and_on_into_the_next() -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.take)
    assert [ids.next([]) for _ in range(2001)] == list(range(2001))
    assert blocks.recorded == 3


def test_the_block_is_recorded_before_its_first_id() -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.take)
    assert blocks.recorded == 0
    assert ids.next([]) == 0
    assert blocks.recorded == 1


def test_a_restart_takes_a_new_block() -> None:
    blocks = Blocks()
    assert ProducerIds(blocks.take).next([]) == 0
    assert ProducerIds(blocks.take).next([]) == 1000


def test_nothing_wraps_at_the_end_of_the_range() -> None:
    blocks = Blocks(first=2**63 - 1 - 1000)
    ids = ProducerIds(blocks.take)
    assert [ids.next([]) for _ in range(1000)][-1] == 2**63 - 2
    with pytest.raises(KafkaError) as caught:
        ids.next([])
    assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize("block", [(0, 0), (2**63 - 5, 1000), (-1000, 1000)])
def test_an_unusable_block_is_refused(block: tuple[int, int]) -> None:
    with pytest.raises(KafkaError) as caught:
        ProducerIds(lambda: (*block, None)).next([])
    assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_block_before_the_current_one_is_refused() -> None:
    given = iter([(1000, 1), (500, 1000)])
    ids = ProducerIds(lambda: (*next(given), None))
    assert ids.next([]) == 1000
    with pytest.raises(KafkaError):
        ids.next([])


def test_every_id_of_a_block_waits_for_the_blocks_fsync_until_it_is_done() -> None:
    """Not the first one alone: after a power cut the whole block would be handed out again."""
    fsync: Future[None] = Future()
    ids = ProducerIds(lambda: (0, 1000, fsync))
    flushes: list[Future[None]] = []
    assert [ids.next(flushes), ids.next(flushes)] == [0, 1]
    assert flushes == [fsync, fsync]
    fsync.set_result(None)
    assert ids.next(flushes) == 2
    assert len(flushes) == 2


def test_a_block_whose_fsync_failed_is_given_up() -> None:
    """The ids of the next block begin after it, so none is returned twice."""
    blocks = Blocks()
    fsyncs: list[Future[None]] = []

    def take() -> tuple[int, int, Future[None]]:
        first, count, _ = blocks.take()
        fsyncs.append(Future())
        return first, count, fsyncs[-1]

    ids = ProducerIds(take)
    flushes: list[Future[None]] = []
    assert [ids.next(flushes), ids.next(flushes)] == [0, 1]
    fsyncs[0].set_exception(OSError(5, "Input/output error"))
    assert ids.next(flushes) == 1000
    assert flushes == [fsyncs[0], fsyncs[0], fsyncs[1]]
    fsyncs[1].set_result(None)
    assert ids.next(flushes) == 1001
    assert len(flushes) == 3


class Fsyncs:
    """Blocks with an fsync each, which the test ends."""

    def __init__(self) -> None:
        self.blocks = Blocks()
        self.all: list[Future[None]] = []
        self.ids = ProducerIds(self._take)

    def _take(self) -> tuple[int, int, Future[None]]:
        first, count, _ = self.blocks.take()
        self.all.append(Future())
        return first, count, self.all[-1]

    def told_again(self, producer_id: int) -> list[Future[None]]:
        flushes: list[Future[None]] = []
        self.ids.pending(producer_id, flushes)
        return flushes


def test_an_id_that_is_told_again_waits_for_its_blocks_fsync_until_it_is_done() -> None:
    fsyncs = Fsyncs()
    assert fsyncs.ids.next([]) == 0
    assert fsyncs.told_again(0) == fsyncs.all
    fsyncs.all[0].set_result(None)
    assert fsyncs.told_again(0) == []
    # A full block is no reason to record another one.
    assert [fsyncs.ids.next([]) for _ in range(1000)][-1] == 1000
    assert fsyncs.told_again(999) == []
    assert fsyncs.told_again(1000) == [fsyncs.all[1]]
    assert fsyncs.blocks.recorded == 2


def test_an_id_of_a_block_whose_fsync_failed_is_told_again_after_that_of_another_block() -> None:
    fsyncs = Fsyncs()
    assert fsyncs.ids.next([]) == 0
    fsyncs.all[0].set_exception(OSError(5, "Input/output error"))
    assert fsyncs.told_again(0) == [fsyncs.all[1]]
    assert fsyncs.told_again(0) == [fsyncs.all[1]]
    fsyncs.all[1].set_result(None)
    assert fsyncs.told_again(0) == []
    assert fsyncs.ids.next([]) == 1000
