"""Record batches in slow, plain Python: what the tests compare `cext` with. Never used at run time.

It is written from the format alone, byte by byte, and shares no code with `cext`. It does not decompress.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = 61
INT64 = 1 << 64

RecordTuple = tuple[int, int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]


class Bad(Exception):
    """`verdict` is the name of the verdict that `cext` should give; `index` the record, -1 for the batch."""

    def __init__(self, verdict: str, index: int = -1) -> None:
        super().__init__(verdict, index)
        self.verdict = verdict
        self.index = index


class Header(NamedTuple):
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


CRC_TABLE = _crc_table()


def crc32c(data: bytes, value: int = 0) -> int:
    crc = value ^ 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def to_signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def varint(value: int) -> bytes:
    """Zigzag; serves 32 and 64 bits alike."""
    value = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, at: int, end: int, bits: int = 32) -> tuple[int, int]:
    """(value, position after it)."""
    raw = 0
    for place in range((bits + 6) // 7):
        if at >= end:
            raise Bad("BAD_VARINT")
        byte = data[at]
        at += 1
        raw |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            raw &= (1 << bits) - 1
            return raw >> 1 ^ -(raw & 1), at
    raise Bad("BAD_VARINT")


def scan(data: bytes, check_crc: bool = True) -> Header:
    """The first batch in `data`."""
    if len(data) < 17:
        raise Bad("SHORT")
    length = struct.unpack_from(">i", data, 8)[0]
    magic = data[16]
    if length < 14:
        raise Bad("BAD_LENGTH")
    if magic != 2:
        raise Bad("BAD_MAGIC" if magic in (0, 1) else "UNKNOWN_MAGIC")
    if length < HEADER_SIZE - 12:
        raise Bad("BAD_LENGTH")
    if 12 + length > len(data):
        raise Bad("TRUNCATED")
    header = Header._make(HEADER.unpack_from(data))
    if check_crc and crc32c(data[21 : 12 + length]) != header.crc:
        raise Bad("BAD_CRC")
    if header.last_offset_delta < 0:
        raise Bad("BAD_OFFSET_RANGE")
    if not 0 <= header.record_count <= header.last_offset_delta + 1:
        raise Bad("BAD_COUNT")
    if header.attributes & 7 > 4:
        raise Bad("BAD_CODEC")
    return header


def _field(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at, end)
    if size < 0:
        return None, at
    if size > end - at:
        raise Bad("BAD_FIELD_LENGTH")
    return data[at : at + size], at + size


def _headers(data: bytes, at: int, end: int) -> tuple[tuple[tuple[bytes, bytes | None], ...], int]:
    count, at = read_varint(data, at, end)
    if not 0 <= count <= (end - at) // 2:
        raise Bad("BAD_HEADERS")
    pairs: list[tuple[Any, bytes | None]] = []
    try:
        for _ in range(count):
            key, at = _field(data, at, end)
            value, at = _field(data, at, end)
            pairs.append((key, value))
    except Bad:
        raise Bad("BAD_HEADERS") from None
    if any(key is None for key, _ in pairs):
        raise Bad("BAD_HEADERS")
    return tuple(pairs), at


def read_record(data: bytes, at: int, header: Header) -> tuple[RecordTuple, int, int]:
    """((offset, timestamp, key, value, headers), offset delta, position after it)."""
    length, at = read_varint(data, at, len(data))
    if length < 1 or length > len(data) - at:
        raise Bad("BAD_RECORD_LENGTH")
    end = at + length
    timestamp_delta, at = read_varint(data, at + 1, end, 64)
    offset_delta, at = read_varint(data, at, end)
    key, at = _field(data, at, end)
    value, at = _field(data, at, end)
    headers, at = _headers(data, at, end)
    if at != end:
        raise Bad("BAD_RECORD_LENGTH")
    timestamp = to_signed(header.base_timestamp + timestamp_delta, 64)
    if header.attributes & 8:
        timestamp = header.max_timestamp
    offset = to_signed(header.base_offset + offset_delta, 64)
    return (offset, timestamp, key, value, headers), offset_delta, at


def read_records(payload: bytes, header: Header, consecutive: bool = False) -> list[RecordTuple]:
    """All records of the decompressed `payload` of a batch; `consecutive` also asks for deltas 0, 1, 2, ..."""
    records = []
    at = 0
    for index in range(header.record_count):
        if at == len(payload):
            raise Bad("BAD_COUNT", index)
        try:
            record, offset_delta, at = read_record(payload, at, header)
        except Bad as bad:
            raise Bad(bad.verdict, index) from None
        if consecutive and offset_delta != index:
            raise Bad("BAD_OFFSET_DELTA", index)
        records.append(record)
    if at != len(payload):
        raise Bad("TRAILING_BYTES")
    return records


def write_record(
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: tuple[tuple[bytes, bytes | None], ...] = (),
) -> bytes:
    body = bytearray(b"\0")
    body += varint(timestamp_delta) + varint(offset_delta)
    for field in (key, value):
        body += varint(-1) if field is None else varint(len(field)) + field
    body += varint(len(headers))
    for header in headers:
        for field in header:
            body += varint(-1) if field is None else varint(len(field)) + field
    return varint(len(body)) + bytes(body)


def write_batch(
    payload: bytes,
    record_count: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = 0,
    magic: int = 2,
    attributes: int = 0,
    last_offset_delta: int | None = None,
    base_timestamp: int = 0,
    max_timestamp: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """A batch with a right length and CRC around whatever the caller says."""
    delta = record_count - 1 if last_offset_delta is None else last_offset_delta
    covered = struct.pack(
        ">hiqqqhii",
        attributes,
        delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    covered += payload
    head = struct.pack(">qiibI", base_offset, len(covered) + 9, leader_epoch, magic, crc32c(covered))
    return head + covered


def seal(batch: bytearray) -> bytearray:
    """Give changed bytes a right length and CRC again."""
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return batch
