"""Mutated batches through everything that reads one: no crash, no hang, the oracle's verdict, bounded output.

Runs for KAFKA_SHIM_FUZZ_SECONDS (default 2) with seeds that go on from KAFKA_SHIM_FUZZ_SEED; a failure names its seed.
`scripts/asan.sh SECONDS` runs it under AddressSanitizer. The corpus is what real clients and Kafka wrote.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from kafka_shim.cext.batch import BatchError, scan, scan_all, stamp
from kafka_shim.cext.records import build, build_marker, find_timestamp, iterate, recompress, validate
from kafka_shim.cext.segment import Walk, find_batch
from kafka_shim.cext.tests import oracle
from kafka_shim.cext.tests.exact import exact

SECONDS = float(os.environ.get("KAFKA_SHIM_FUZZ_SECONDS", "2"))
FIRST_SEED = int(os.environ.get("KAFKA_SHIM_FUZZ_SEED", "0"))
CORPUS = Path(__file__).parent / "corpus"
LIMIT_BYTES = 1 << 20
# Where a change means most: lengths, counts, deltas, flags, and the first bytes of the records.
TELLING = [8, 9, 10, 11, 16, 22, 23, 24, 25, 26, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66]
VALUES = [0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF]


def seeds() -> list[bytes]:
    found = [bytes(batch) for path in sorted(CORPUS.glob("*.log")) for batch in split(path.read_bytes())]
    records = [(b"key", b"value" * 3, 5 - i, (("h", b"x"), ("", None))) for i in range(4)]
    found += [bytes(build(records, codec=codec, base_offset=3, producer_id=7, base_sequence=0)) for codec in range(5)]
    found += [bytes(build([(None, None, -1, ())])), bytes(build_marker(1, 2, 3, True, 4))]
    found.append(oracle.write_batch(b"", 0, last_offset_delta=5))
    return [batch for batch in found if len(batch) < 4096]


def split(data: bytes) -> list[bytes]:
    return [data[batch.position : batch.end_position] for batch in scan_all(data)]


def mutate(rng: random.Random, batch: bytes) -> bytes:
    data = bytearray(batch)
    for _ in range(rng.choice((1, 1, 2, 4))):
        kind = rng.randrange(6)
        at = rng.choice(TELLING) if rng.random() < 0.5 else rng.randrange(len(data) or 1)
        at = min(at, max(len(data) - 1, 0))
        if not data or kind == 0:
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 1:
            data[at] = rng.choice(VALUES)
        elif kind == 2:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 3:
            del data[at : at + rng.randrange(1, 9)]
        elif kind == 4:
            del data[at:]
        else:
            data[at : at + 4] = rng.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0"))
    # Most changes would stop at the length or the CRC; so most inputs get right ones again.
    if len(data) > oracle.HEADER_SIZE and rng.random() < 0.8:
        oracle.seal(data)
    return bytes(data)


def verdict_of(function, *arguments):
    """(verdict name, record index) and the result."""
    try:
        return ("OK", -1), function(*arguments)
    except BatchError as error:
        return (error.verdict.name, error.record_index), None


def expected_of(function, *arguments):
    try:
        return ("OK", -1), function(*arguments)
    except oracle.Bad as bad:
        return (bad.verdict, bad.index), None


def check(data: bytes) -> None:
    """Everything that reads a batch, over a buffer that ends where the data ends."""
    with exact(data) as buffer:
        expected, header = expected_of(oracle.scan, data)
        verdict, batch = verdict_of(scan, buffer)
        assert verdict == expected
        verdict_of(scan_all, buffer)
        verdict_of(lambda: list(iterate(buffer, limit_bytes=LIMIT_BYTES)))
        if batch is None or header is None:
            return
        check_records(data, buffer, batch, header)


def check_records(data, buffer, batch, header) -> None:
    found, summary = verdict_of(validate, buffer, batch, LIMIT_BYTES)
    if batch.compression == 0:
        payload = data[oracle.HEADER_SIZE : batch.size_bytes]
        expected, records = expected_of(oracle.read_records, payload, header, True)
        if header.record_count == 0 or header.record_count != header.last_offset_delta + 1:
            expected = ("BAD_COUNT", -1)
        assert found == expected
        read, given = verdict_of(lambda: list(iterate(buffer, 0, batch.size_bytes)))
        expected, records = expected_of(oracle.read_records, payload, header)
        if header.record_count:
            assert read == expected
            assert given is None or [(r.offset, r.timestamp, r.key, r.value) for r in given] == [r[:4] for r in records]
    if summary is not None:
        assert summary.uncompressed_bytes <= max(LIMIT_BYTES, len(data))
    verdict_of(find_timestamp, buffer, batch, batch.max_timestamp, 0, LIMIT_BYTES)
    verdict_of(recompress, buffer, batch, (batch.compression + 1) % 5, None, LIMIT_BYTES)
    stamp(buffer, 0, 5, 6, append_time_ms=7)
    assert scan(buffer).max_timestamp == 7


def check_file(data: bytes, file) -> None:
    """The same bytes as a .log file."""
    file.seek(0)
    file.truncate()
    file.write(data)
    file.flush()
    walk = Walk(file.fileno(), 0, len(data))
    batches = list(walk)
    assert walk.position == sum(batch.size_bytes for batch in batches) <= len(data)
    find_batch(file.fileno(), 0, len(data), 2**62)


@pytest.mark.parametrize("batch", seeds())
def test_the_unchanged_seeds_pass(batch):
    check(batch)
    assert oracle.scan(batch).magic == 2


def test_the_sanitizer_is_awake_where_it_should_be():
    """Under AddressSanitizer one byte too many ends the process; elsewhere nobody notices."""
    code = "from ctypes import *; c = CDLL(None); c.malloc.restype = c_void_p; string_at(c.malloc(64), 65)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    sanitized = "asan" in os.environ.get("LD_PRELOAD", "")
    assert ("heap-buffer-overflow" in ran.stderr) == (ran.returncode != 0) == sanitized


def test_mutated_batches_are_read_or_refused_within_their_bounds():
    sources = seeds()
    deadline = time.monotonic() + SECONDS
    seed = FIRST_SEED
    with tempfile.TemporaryFile() as file:
        while time.monotonic() < deadline:
            rng = random.Random(seed)
            data = mutate(rng, rng.choice(sources))
            try:
                check(data)
                if seed % 8 == 0:
                    check_file(data + rng.choice(sources), file)
            except Exception as error:
                raise AssertionError(f"seed {seed}: {data.hex()}") from error
            seed += 1
    print(f"{seed - FIRST_SEED} mutated batches, seeds {FIRST_SEED} to {seed - 1}")
    assert seed > FIRST_SEED
