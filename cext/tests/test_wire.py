from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.cext.wire import EncodeError, Reader, WireError, Writer

INTEGERS = {
    "int8": (-(2**7), 2**7 - 1, ">b"),
    "int16": (-(2**15), 2**15 - 1, ">h"),
    "int32": (-(2**31), 2**31 - 1, ">i"),
    "int64": (-(2**63), 2**63 - 1, ">q"),
    "uint8": (0, 2**8 - 1, ">B"),
    "uint16": (0, 2**16 - 1, ">H"),
    "uint32": (0, 2**32 - 1, ">I"),
}
VARINTS = {
    "uvarint": (0, 2**32 - 1),
    "uvarlong": (0, 2**64 - 1),
    "varint": (-(2**31), 2**31 - 1),
    "varlong": (-(2**63), 2**63 - 1),
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def written(name: str, *values: object) -> bytes:
    writer = Writer()
    getattr(writer, name)(*values)
    assert len(writer) == len(writer.finish())
    return writer.finish()


def read(name: str, data: bytes) -> object:
    reader = Reader(data)
    value = getattr(reader, name)()
    assert (reader.position, reader.remaining) == (len(data), 0)
    return value


@pytest.mark.parametrize("name", INTEGERS)
@given(data=st.data())
def test_integers_are_big_endian(name: str, data: st.DataObject) -> None:
    low, high, form = INTEGERS[name]
    value = data.draw(st.integers(low, high))
    assert written(name, value) == struct.pack(form, value)
    assert read(name, struct.pack(form, value)) == value


@pytest.mark.parametrize("name", INTEGERS | VARINTS)
def test_integers_out_of_range_are_refused(name: str) -> None:
    low, high = (INTEGERS | VARINTS)[name][:2]
    for value in (low - 1, high + 1):
        with pytest.raises(EncodeError, match="does not fit"):
            written(name, value)
    assert {read(name, written(name, value)) for value in (low, high)} == {low, high}


def plain_uvarint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


@pytest.mark.parametrize("name", VARINTS)
@given(data=st.data())
def test_varints_are_seven_bits_a_byte_and_signed_ones_zigzag(name: str, data: st.DataObject) -> None:
    low, high = VARINTS[name]
    value = data.draw(st.integers(low, high))
    unsigned = value if low == 0 else (value << 1 if value >= 0 else (-value << 1) - 1)
    assert written(name, value) == plain_uvarint(unsigned)
    assert read(name, plain_uvarint(unsigned)) == value


@pytest.mark.parametrize(("name", "most"), [("uvarint", 5), ("varint", 5), ("uvarlong", 10), ("varlong", 10)])
def test_a_varint_that_goes_on_is_refused(name: str, most: int) -> None:
    with pytest.raises(WireError, match="does not end"):
        read(name, b"\x80" * most + b"\0")
    with pytest.raises(WireError):
        read(name, b"\x80" * (most - 1))
    assert read(name, b"\x80" * (most - 1) + b"\0") == 0


def test_bits_of_a_varint_above_its_width_are_dropped() -> None:
    """``ByteUtils.readUnsignedVarint`` of Kafka shifts them out too."""
    assert read("uvarint", b"\x81\x80\x80\x80\x70") == 1
    assert read("uvarlong", b"\x81" + b"\x80" * 8 + b"\x7e") == 1


@given(st.floats(allow_nan=False))
def test_float64_is_ieee_big_endian(value: float) -> None:
    assert written("float64", value) == struct.pack(">d", value)
    assert read("float64", struct.pack(">d", value)) == value


def test_any_byte_but_zero_is_true() -> None:
    assert [read("boolean", bytes([byte])) for byte in (0, 1, 2, 255)] == [False, True, True, True]
    assert [written("boolean", value) for value in (False, True)] == [b"\0", b"\1"]


@given(TEXT)
def test_strings_have_four_forms(value: str) -> None:
    data = value.encode()
    assert written("string", value) == written("nullable_string", value) == struct.pack(">h", len(data)) + data
    assert written("compact_string", value) == plain_uvarint(len(data) + 1) + data
    for name in ("string", "nullable_string", "compact_string", "compact_nullable_string"):
        assert read(name, written(name, value)) == value


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"a\x80b", "a\ufffdb"),
        # An encoded surrogate is one wrong character to Java: whole, cut short by another character, at the end.
        (b"\xed\xa0\x80z", "\ufffdz"),
        (b"\xed\xbf\xbf", "\ufffd"),
        (b"\xed\xa0z", "\ufffdz"),
        (b"\xed\xa0\xc3\xa4", "\ufffd\u00e4"),
        (b"\xed\xa0", "\ufffd"),
        (b"\xed\x9f\xbf", "\ud7ff"),
        (b"\xed", "\ufffd"),
        (b"\xedz", "\ufffdz"),
        (b"\xe0\x80\x80", "\ufffd\ufffd\ufffd"),
        (b"\xe2\x82", "\ufffd"),
        (b"\xf0\x9f\x92z", "\ufffdz"),
        (b"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"),
    ],
)
def test_what_is_not_utf8_is_replaced_as_java_does(data: bytes, wanted: str) -> None:
    for name in ("string", "nullable_string"):
        assert read(name, struct.pack(">h", len(data)) + data) == wanted
    for name in ("compact_string", "compact_nullable_string"):
        assert read(name, plain_uvarint(len(data) + 1) + data) == wanted


@given(st.binary(max_size=300))
def test_byte_strings_have_four_forms(value: bytes) -> None:
    assert (
        written("bytes", value) == written("nullable_bytes", bytearray(value)) == struct.pack(">i", len(value)) + value
    )
    assert written("compact_bytes", memoryview(value)) == plain_uvarint(len(value) + 1) + value
    for name in ("bytes", "nullable_bytes", "compact_bytes", "compact_nullable_bytes"):
        assert read(name, written(name, value)) == value


def test_null_is_minus_one_or_zero() -> None:
    assert written("nullable_string", None) == b"\xff\xff"
    assert written("compact_nullable_string", None) == b"\0"
    assert written("nullable_bytes", None) == b"\xff\xff\xff\xff"
    assert written("compact_nullable_bytes", None) == b"\0"
    for name in ("nullable_string", "compact_nullable_string", "nullable_bytes", "compact_nullable_bytes"):
        assert read(name, written(name, None)) is None


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("string", b"\xff\xff"),
        ("compact_string", b"\0"),
        ("bytes", b"\xff\xff\xff\xff"),
        ("compact_bytes", b"\0"),
        ("string", b"\0\2a"),
        ("compact_string", b"\3a"),
        ("compact_string", b"\x81\x80\x02" + b"a" * 32768),
        ("bytes", b"\x7f\xff\xff\xffabc"),
        ("compact_bytes", b"\xff\xff\xff\xff\x07abc"),
        ("array_length", b"\0\0\0\2a"),
        ("compact_array_length", b"\3a"),
        ("tags", b"\1\0\2a"),
        ("tags", b"\xff\xff\xff\xff\x0f\0\0"),
        ("uuid", bytes(15)),
        ("float64", bytes(7)),
    ],
)
def test_lengths_that_lie_are_refused(name: str, data: bytes) -> None:
    with pytest.raises(WireError):
        read(name, data)


@pytest.mark.parametrize("name", [*INTEGERS, *VARINTS, "float64", "boolean", "uuid", "string", "bytes", "array_length"])
def test_reading_nothing_is_refused(name: str) -> None:
    with pytest.raises(WireError):
        read(name, b"")


def test_counts_of_arrays() -> None:
    assert written("array_length", -1) == b"\xff" * 4
    assert written("compact_array_length", -1) == b"\0"
    assert read("array_length", b"\xff\xff\xff\xf0") == -1
    assert read("compact_array_length", b"\0") == -1
    assert Reader(b"\0\0\0\2ab").array_length() == 2
    assert Reader(b"\3ab").compact_array_length() == 2


def test_tags_are_written_in_order_and_read_in_any() -> None:
    assert written("tags", {7: b"x", 2: b""}) == b"\2\2\0\7\1x"
    assert read("tags", b"\2\7\1x\2\0") == {7: b"x", 2: b""}


def test_a_reader_stays_inside_its_part_of_the_buffer() -> None:
    reader = Reader(b"abcdef", 2, 4)
    assert (reader.position, reader.remaining) == (2, 2)
    with pytest.raises(WireError):
        reader.raw(3)
    assert reader.raw(2) == b"cd"
    with pytest.raises(WireError):
        reader.int8()
    with pytest.raises(ValueError, match="negative"):
        reader.raw(-1)
    for start, end in ((-1, 2), (3, 2), (0, 7), (7, None)):
        with pytest.raises(ValueError, match="not inside"):
            Reader(b"abcdef", start, end)


def test_a_reader_holds_its_buffer() -> None:
    data = bytearray(b"\1\2")
    reader = Reader(data)
    with pytest.raises(BufferError):
        data.extend(b"more")
    assert reader.uint8() == 1
    del reader
    data.extend(b"more")


def test_a_writer_grows() -> None:
    writer = Writer()
    for number in range(10_000):
        writer.int32(number)
    writer.raw(b"x" * 100_000)
    assert len(writer) == 140_000
    assert writer.finish()[:40_000] == struct.pack(">10000i", *range(10_000))


@pytest.mark.parametrize(
    ("name", "value"), [("string", "x" * 32768), ("string", "\ud800"), ("uuid", b"short"), ("compact_string", "\udfff")]
)
def test_values_that_the_protocol_cannot_carry_are_refused(name: str, value: object) -> None:
    with pytest.raises(EncodeError):
        written(name, value)
