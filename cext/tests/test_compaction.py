"""compaction: the map of offsets, and what survey and copy_kept make of a batch."""

import random

import pytest

from kafka_shim.cext.batch import BatchError, scan, scan_all
from kafka_shim.cext.compaction import OffsetMap, copy_kept, index_records, seal, survey
from kafka_shim.cext.records import build, iterate

SECRET = bytes(range(16))


def make_map(limit_bytes: int = 1 << 20) -> OffsetMap:
    return OffsetMap(limit_bytes, 0.9, SECRET)


def section(batch: bytearray) -> memoryview:
    return memoryview(batch)[61:]


def put(offsets: OffsetMap, pairs: list[tuple[bytes | None, int]]) -> bool:
    """Put in (key, offset) pairs, each through a batch of its own."""
    for key, offset in pairs:
        batch = build([(key, b"v", 0, ())], base_offset=offset)
        if not index_records(offsets, section(batch), scan(batch), 0):
            return False
    return True


def test_map_answers_the_last_offset_of_a_key() -> None:
    offsets = make_map()
    put(offsets, [(b"a", 1), (b"b", 2), (b"a", 3), (b"", 4), (b"x" * 1000, 5), (None, 6)])
    assert [offsets.find(key) for key in (b"a", b"b", b"", b"x" * 1000, b"c")] == [3, 2, 4, 5, -1]
    assert offsets.count == 4


def test_map_grows_and_agrees_with_a_dictionary() -> None:
    dice = random.Random(3)
    offsets = make_map(4 << 20)
    model: dict[bytes, int] = {}
    for start in range(0, 60_000, 500):
        keys = [dice.randbytes(dice.randrange(1, 12)) for _ in range(500)]
        batch = build([(key, None, 0, ()) for key in keys], base_offset=start)
        assert index_records(offsets, section(batch), scan(batch), 0)
        model.update({key: start + number for number, key in enumerate(keys)})
    assert offsets.count == len(model)
    assert all(offsets.find(key) == offset for key, offset in model.items())


def test_full_map_takes_nothing_more() -> None:
    offsets = make_map(1)
    keys = [b"%d" % number for number in range(offsets.capacity)]
    assert put(offsets, [(key, number) for number, key in enumerate(keys)])
    assert not put(offsets, [(b"one more", 5000)])
    assert offsets.find(b"one more") == -1
    assert offsets.count == offsets.capacity


def test_records_below_the_first_dirty_offset_are_left_out() -> None:
    offsets = make_map()
    batch = build([(b"a", b"", 0, ()), (b"b", b"", 0, ())], base_offset=10)
    index_records(offsets, section(batch), scan(batch), 11)
    assert (offsets.find(b"a"), offsets.find(b"b")) == (-1, 11)


@pytest.mark.parametrize("seed", range(20))
def test_survey_and_copy_agree_with_plain_python(seed: int) -> None:
    dice = random.Random(seed)
    rows = [
        (
            None if dice.random() < 0.1 else b"k%d" % dice.randrange(8),
            None if dice.random() < 0.3 else dice.randbytes(dice.randrange(200)),
            dice.choice((-1, dice.randrange(1 << 44))),
            [("h", None if dice.random() < 0.5 else b"x")] * dice.randrange(3),
        )
        for _ in range(dice.randrange(1, 40))
    ]
    batch = build(rows, base_offset=100, producer_id=5, producer_epoch=1, base_sequence=7, transactional=True)
    header = scan(batch)
    offsets = make_map()
    model = {b"k%d" % number: dice.randrange(90, 150) for number in range(8) if dice.random() < 0.8}
    put(offsets, list(model.items()))
    offsets.latest_offset = dice.randrange(99, 145)
    tombstones = dice.random() < 0.5
    kept = [
        record
        for record in iterate(batch)
        if record.offset > offsets.latest_offset
        or (
            record.key is not None
            and record.offset >= model.get(record.key, -1)
            and (record.value is not None or tombstones)
        )
    ]
    found = survey(offsets, section(batch), header, tombstones)
    assert (found.read_count, found.kept_count) == (len(rows), len(kept))
    assert found.max_timestamp == max((record.timestamp for record in kept), default=-1)
    assert found.has_tombstones == any(record.value is None for record in kept)
    for base in (header.base_timestamp, dice.randrange(1 << 45)):
        copied = copy_kept(offsets, section(batch), header, tombstones, base)
        sealed = seal(copied, header, header.attributes | 0x40, base, found.max_timestamp, found.kept_count)
        (again,) = scan_all(sealed)
        assert (again.base_offset, again.last_offset, again.base_sequence) == (100, header.last_offset, 7)
        assert (again.base_timestamp, again.has_delete_horizon, again.is_transactional) == (base, True, True)
        assert list(map(facts, iterate(sealed))) == list(map(facts, kept))


def facts(record: object) -> tuple[object, ...]:
    return tuple(getattr(record, name) for name in ("offset", "timestamp", "key", "value", "headers"))


def test_copy_without_a_map_keeps_all_under_a_new_base() -> None:
    batch = build([(None, None, 5, ()), (b"a", None, 1 << 50, ())], base_offset=3)
    header = scan(batch)
    copied = copy_kept(None, section(batch), header, True, 1 << 52)
    sealed = seal(copied, header, 0x40, 1 << 52, 1 << 50, 2)
    assert [(record.offset, record.timestamp) for record in iterate(sealed)] == [(3, 5), (4, 1 << 50)]


def test_empty_batch_keeps_its_offsets_and_sequence() -> None:
    header = scan(build([(b"a", b"", 1, ())] * 4, base_offset=9, producer_id=1, producer_epoch=0, base_sequence=2))
    again = scan(seal(b"", header, 0, -1, 1, 0))
    assert (again.size_bytes, again.record_count, again.last_offset, again.last_sequence) == (61, 0, 12, 5)


@pytest.mark.parametrize("cut", range(1, 12))
def test_cut_records_are_refused(cut: int) -> None:
    batch = build([(b"key", b"value", 1, ())])
    header = scan(batch)
    short = section(batch)[:-cut]
    for work in (
        lambda: index_records(make_map(), short, header, 0),
        lambda: survey(make_map(), short, header, True),
        lambda: copy_kept(make_map(), short, header, True, 0),
    ):
        with pytest.raises(BatchError):
            work()


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        OffsetMap(1, 0.9, b"short")
    with pytest.raises(ValueError, match="load factor"):
        OffsetMap(1, 1.0, SECRET)
