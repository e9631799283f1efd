"""The rules of the codec engine, on small messages made for them. Kafka's own messages are in shim/tests/protocol."""

from __future__ import annotations

import gc
import struct
import sys
import threading
from typing import Any

import pytest

from kafka_shim.cext.messages import (
    EncodeError,
    UnsupportedVersionError,
    WireError,
    decode,
    decode_prefix,
    encode,
    encode_parts,
    encode_response_frame,
)


class Base:
    __slots__ = ("unknown_tags",)
    FIELDS: tuple[tuple[Any, ...], ...] = ()
    API_KEY, MIN_VERSION, MAX_VERSION, FLEXIBLE_FROM = 1, 0, 9, 5

    def __init__(self, **values: Any) -> None:
        self.unknown_tags = None
        for row in self.FIELDS:
            default = values.get(row[0], row[3])
            if default == () and row[0] not in values:
                default = [] if row[1].startswith("[]") else globals()[row[1]]()
            setattr(self, row[0], default)

    def __eq__(self, other: object) -> bool:
        names = [row[0] for row in self.FIELDS]
        return type(self) is type(other) and all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = None  # type: ignore[assignment]


class Inner(Base):
    __slots__ = ("number",)
    FIELDS = (("number", "int32", "0+", 7),)


class Outer(Base):
    __slots__ = ("always", "early", "items", "kept", "late", "maybe", "tagged", "text")
    FIELDS = (
        ("always", "int16", "0+", 0),
        ("early", "int32", "0-2", 3),
        ("kept", "int32", "3+", 4, "", True),
        ("late", "int32", "3+", -1),
        ("text", "string", "0+", "", "1+"),
        ("items", "[]Inner", "0+", (), "2+"),
        ("maybe", "Inner", "4+", None, "4+"),
        ("tagged", "Inner", "6+", (), "", False, 2, "6+"),
    )


class Blob(Base):
    __slots__ = ("after", "records")
    FIELDS = (("records", "records", "0+", None, "0+"), ("after", "int8", "0+", 1))


class Numbers(Base):
    __slots__ = ("numbers",)
    FIELDS = (("numbers", "[]int8", "0+", ()),)


class Every(Base):
    __slots__ = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "names")
    FIELDS = (
        ("a", "bool", "0+", False),
        ("b", "int8", "0+", 0),
        ("c", "int16", "0+", 0),
        ("d", "int32", "0+", 0),
        ("e", "int64", "0+", 0),
        ("f", "uint16", "0+", 0),
        ("g", "uint32", "0+", 0),
        ("h", "float64", "0+", 0.0),
        ("i", "uuid", "0+", bytes(16)),
        ("j", "bytes", "0+", b""),
        ("k", "string16", "0+", ""),
        ("names", "[]string", "0+", ()),
    )


def test_fields_are_written_in_order_in_the_forms_of_the_version() -> None:
    message = Outer(always=1, text="ab", items=[Inner(number=5)])
    assert encode(message, 0) == struct.pack(">hih2sii", 1, 3, 2, b"ab", 1, 5)
    assert encode(message, 3) == struct.pack(">hiih2sii", 1, 4, -1, 2, b"ab", 1, 5)
    # Version 5 is flexible: lengths and counts are varints of one more, every struct ends with its tags.
    assert encode(message, 5) == b"\0\1\0\0\0\4\xff\xff\xff\xff\3ab\2\0\0\0\5\0\xff\0"


def test_every_kind_has_its_bytes() -> None:
    message = Every(
        a=True, b=-1, c=-2, d=-3, e=-4, f=65535, g=2**32 - 1, h=0.5, i=b"u" * 16, j=b"by", k="tx", names=["n"]
    )
    data = struct.pack(">?bhiqHId16s", True, -1, -2, -3, -4, 65535, 2**32 - 1, 0.5, b"u" * 16)
    assert encode(message, 0) == data + b"\0\0\0\2by\0\2tx\0\0\0\1\0\1n"
    assert encode(message, 5) == data + b"\3by\0\2tx\2\2n\0"
    for version in (0, 5):
        assert decode(Every, version, encode(message, version)) == message


def test_a_field_the_version_lacks_gets_its_default() -> None:
    message = decode(Outer, 0, encode(Outer(always=1), 0))
    assert (message.kept, message.late, message.maybe) == (4, -1, None)
    assert message.tagged == Inner()
    assert message.items == []
    assert decode(Outer, 3, encode(Outer(), 3)).early == 3


def test_defaults_are_not_shared_between_messages() -> None:
    data = encode(Outer(), 0)
    first, second = decode(Outer, 0, data), decode(Outer, 0, data)
    first.items.append(Inner())
    first.tagged.number = 99
    assert (second.items, second.tagged.number) == ([], 7)
    assert decode(Outer, 0, data) == second


def test_a_set_field_that_the_version_lacks_is_refused_unless_it_may_be_ignored() -> None:
    assert encode(Outer(kept=99), 0) == encode(Outer(), 0)
    for message in (Outer(late=5), Outer(maybe=Inner()), Outer(tagged=Inner(number=1))):
        with pytest.raises(UnsupportedVersionError, match="is set"):
            encode(message, 0)
    with pytest.raises(UnsupportedVersionError):
        encode(Outer(early=5), 3)
    unknown = Outer()
    unknown.unknown_tags = {9: b""}
    with pytest.raises(UnsupportedVersionError, match="tagged"):
        encode(unknown, 4)


def test_versions_that_a_message_lacks_are_refused() -> None:
    for version in (-1, 10, 1000):
        with pytest.raises(UnsupportedVersionError):
            encode(Outer(), version)
        with pytest.raises(UnsupportedVersionError):
            decode(Outer, version, b"")


def test_null_is_read_and_written_only_where_the_version_has_it() -> None:
    assert decode(Outer, 2, encode(Outer(text=None, items=None), 2)) == Outer(text=None, items=None)
    with pytest.raises(EncodeError, match="text is null"):
        encode(Outer(text=None), 0)
    with pytest.raises(EncodeError, match="items is null"):
        encode(Outer(items=None), 1)
    with pytest.raises(WireError, match="text is null"):
        decode(Outer, 0, struct.pack(">hihi", 0, 0, -1, 0))
    with pytest.raises(WireError, match="items is null"):
        decode(Outer, 1, struct.pack(">hihi", 0, 0, -1, -1))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("always", 2**15),
        ("always", -(2**15) - 1),
        ("always", 2**70),
        ("always", "1"),
        ("always", 1.0),
        ("always", None),
        ("text", 5),
        ("text", b"ab"),
        ("text", "x" * 32768),
        ("text", "\ud800"),
        ("items", "ab"),
        ("items", {1: 2}),
        ("items", [5]),
        ("items", [None]),
        ("items", [Inner(number="x")]),
        ("maybe", Outer()),
        ("tagged", 5),
        ("tagged", None),
    ],
)
def test_values_of_the_wrong_type_or_size_are_refused(field: str, value: object) -> None:
    with pytest.raises(EncodeError):
        encode(Outer(**{field: value}), 6)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("a", 1),
        ("b", 128),
        ("f", -1),
        ("f", 65536),
        ("g", 2**32),
        ("h", "1"),
        ("i", b"short"),
        ("i", None),
        ("i", "u" * 16),
        ("j", "text"),
        ("j", None),
        ("k", None),
        ("names", [None]),
        ("names", [5]),
    ],
)
def test_scalars_of_the_wrong_type_or_size_are_refused(field: str, value: object) -> None:
    with pytest.raises(EncodeError):
        encode(Every(**{field: value}), 0)


def test_a_field_that_was_deleted_is_refused() -> None:
    message = Outer()
    del message.always
    with pytest.raises(EncodeError, match="always is not set"):
        encode(message, 0)


def test_tuples_and_subclasses_are_taken_as_lists_and_their_bases() -> None:
    class Text(str):
        __slots__ = ()

    assert encode(Outer(items=(Inner(number=5),), text=Text("a")), 0) == encode(
        Outer(items=[Inner(number=5)], text="a"), 0
    )


def test_tagged_fields_at_their_default_are_not_written() -> None:
    assert encode(Outer(), 6)[-1:] == b"\0"
    assert encode(Outer(tagged=Inner(number=1)), 6).endswith(b"\1\2\5\0\0\0\1\0")


def test_unknown_tags_are_kept_and_written_in_order() -> None:
    data = encode(Outer(tagged=Inner(number=1)), 6)[:-8] + b"\3\1\1a\2\5\0\0\0\1\0\x0f\2bc"
    message = decode(Outer, 6, data)
    assert message.unknown_tags == {1: b"a", 15: b"bc"}
    assert message.tagged.number == 1
    assert encode(message, 6) == data
    message.unknown_tags = {15: b"bc", 1: b"a"}
    assert encode(message, 6) == data
    message.unknown_tags = {2: b""}
    with pytest.raises(EncodeError, match="tag 2"):
        encode(message, 6)


def test_tags_are_read_in_any_order_and_a_later_one_wins() -> None:
    """As Kafka's generated readers, which do not look at the size of a known tag either."""
    head = encode(Outer(), 6)[:-1]
    data = head + b"\4\x0f\0\2\5\0\0\0\1\0\2\5\0\0\0\2\0\x0f\1z"
    message = decode(Outer, 6, data)
    assert (message.tagged.number, message.unknown_tags) == (2, {15: b"z"})
    assert decode(Outer, 6, head + b"\1\2\x7f\0\0\0\1\0").tagged.number == 1


def test_a_tag_of_another_version_is_refused() -> None:
    head = encode(Outer(), 5)[:-1]
    with pytest.raises(WireError, match="tag 2"):
        decode(Outer, 5, head + b"\1\2\5\0\0\0\1\0")


def test_a_tagged_value_longer_than_the_first_block_is_moved_whole() -> None:
    class Long(Base):
        __slots__ = ("text",)
        FIELDS = (("text", "string", "5+", "", "", False, 0, "5+"),)

    text = "x" * 30_000
    data = encode(Long(text=text), 5)
    assert data == b"\1\0" + bytes([0xB3, 0xEA, 1]) + bytes([0xB1, 0xEA, 1]) + text.encode()
    assert decode(Long, 5, data).text == text


def test_records_are_a_view_of_the_frame() -> None:
    frame = bytearray(b"xx" + encode(Blob(records=b"batch"), 0) + b"yy")
    message = decode(Blob, 0, frame, 2, len(frame) - 2)
    assert type(message.records) is memoryview
    assert message.records == b"batch"
    frame[6:11] = b"BATCH"
    assert message.records == b"BATCH"
    assert decode(Blob, 0, encode(Blob(records=None), 0)).records is None
    assert decode(Blob, 0, memoryview(encode(Blob(records=b""), 0))).records == b""


def test_records_of_one_frame_release_it_when_the_last_is_gone() -> None:
    frame = bytearray(encode(Blob(records=b"batch"), 0))
    message = decode(Blob, 0, frame)
    with pytest.raises(BufferError):
        frame.clear()
    del message
    frame.clear()


@pytest.mark.parametrize("version", [0, 5])
def test_long_records_are_sent_as_they_were_given(version: int) -> None:
    long, other, short = memoryview(b"L" * 5000), bytearray(b"M" * 2000), b"s" * 10
    message = Blob(records=[long, short, other])
    parts = encode_parts(message, version, b"head")
    assert [part for part in parts if part is long or part is other] == [long, other]
    assert b"".join(parts) == b"head" + encode(message, version)
    assert decode(Blob, version, encode(message, version)).records == bytes(long) + short + other
    assert len(encode_parts(Blob(records=short), version)) == 1


@pytest.mark.parametrize("records", [5, "text", [5], ["text"], {1: 2}])
def test_records_that_are_no_buffer_are_refused(records: object) -> None:
    with pytest.raises(EncodeError):
        encode(Blob(records=records), 0)


def test_a_response_frame_begins_with_its_own_length() -> None:
    message = Blob(records=b"r" * 5000)
    frame = b"".join(encode_response_frame(77, message, 0))
    assert frame == struct.pack(">ii", len(frame) - 4, 77) + encode(message, 0)
    frame = b"".join(encode_response_frame(-1, message, 5))
    assert frame == struct.pack(">iib", len(frame) - 4, -1, 0) + encode(message, 5)


def test_a_count_that_lies_is_refused_before_memory_is_taken() -> None:
    for count in (2, 1000, 2**31 - 1):
        with pytest.raises(WireError, match="claims"):
            decode(Outer, 0, struct.pack(">hihii", 0, 0, 0, count, 5))
    # Each Inner of a flexible version takes five bytes.
    with pytest.raises(WireError, match="claims 200 elements"):
        decode(Outer, 5, b"\0\0\0\0\0\0\0\0\0\0\1\xc9\1" + bytes(999))


def test_a_frame_that_swells_in_memory_is_refused() -> None:
    """Four bytes on the wire become a struct, an integer and a place in a list; the refusal comes before the first."""
    count = 3_500_000
    data = struct.pack(">hihi", 0, 0, 0, count) + bytes(4 * count)
    with pytest.raises(WireError, match="more memory"):
        decode(Outer, 0, data)


def test_the_whole_range_is_read_or_the_rest_is_reported() -> None:
    data = b"..." + encode(Inner(number=5), 0) + b"rest"
    assert decode_prefix(Inner, 0, data, 3) == (Inner(number=5), 7)
    assert decode(Inner, 0, data, 3, 7) == Inner(number=5)
    with pytest.raises(WireError, match="4 bytes after the end"):
        decode(Inner, 0, data, 3)
    for start, end in ((-1, 2), (5, 4), (0, 99)):
        with pytest.raises(ValueError, match="not inside"):
            decode(Inner, 0, data, start, end)


def test_a_class_without_slots_is_refused() -> None:
    class Loose(Base):
        FIELDS = (("number", "int32", "0+", 7),)
        number = 7

    with pytest.raises(TypeError, match="not a slot"):
        decode(Loose, 0, b"")


def test_references_are_balanced() -> None:
    """Decoding and encoding, also when they fail, leave no object behind."""
    data = encode(Outer(always=1, text="abc", items=[Inner(number=2**20)] * 3, tagged=Inner(number=1)), 6)
    bad = data[:-1] + b"\x05\x00"

    def work() -> None:
        for _ in range(1000):
            message = decode(Outer, 6, data)
            encode(message, 6)
            encode_parts(Blob(records=[b"x" * 2000]), 5)
            for broken in (data[:-1], data[:9], bad):
                with pytest.raises(WireError):
                    decode(Outer, 6, broken)
            message.items.append(None)
            with pytest.raises(EncodeError):
                encode(message, 6)

    work()
    gc.collect()
    before = len(gc.get_objects()), sys.getrefcount(Inner), sys.getrefcount(None)
    work()
    gc.collect()
    after = len(gc.get_objects()), sys.getrefcount(Inner), sys.getrefcount(None)
    assert all(abs(now - then) < 500 for now, then in zip(after, before, strict=True))


def test_threads_that_meet_a_class_at_the_same_time_share_its_plan() -> None:
    """A plan in use is never replaced: two threads may both make the first one."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):

            class Fresh(Base):
                __slots__ = tuple(f"field_{number}" for number in range(100))
                FIELDS = tuple((f"field_{number}", "int32", "0+", number) for number in range(100))

            message, results = Fresh(), []
            gate = threading.Barrier(4)

            def work(message: Any = message, results: list[bytes] = results, gate: threading.Barrier = gate) -> None:
                gate.wait()
                results.extend(encode(message, 9) for _ in range(50))

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert set(results) == {struct.pack(">100i", *range(100)) + b"\0"}
            assert len(results) == 200
    finally:
        sys.setswitchinterval(interval)
