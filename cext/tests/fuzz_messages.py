"""Mutated messages against every decoder: ``python -m kafka_shim.cext.tests.fuzz_messages --seconds 60 --seed 1``.

A decoder must answer with a message or WireError, quickly and in bounded memory, and what it accepted must encode
to bytes that come back the same. Inputs lie in buffers of their exact size, so that AddressSanitizer sees one byte too
many.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

from kafka_shim.cext.messages import WireError, decode_prefix, encode
from kafka_shim.protocol.headers import parse_request_header, request_class
from kafka_shim.protocol.message import Message
from kafka_shim.protocol.record_frames import (
    GROUP,
    SHARE,
    TRANSACTION,
    UnknownRecordError,
    decode_control,
    decode_metadata,
)
from kafka_shim.tests.protocol.values import CLASSES, Nulls, Seeded, make, structs_of, versions

CORPUS = Path(__file__).resolve().parent / "corpus" / "messages.txt"
EDGES = (b"\0", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\x7f\xff", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff")
VARINTS = (b"\x80\x80\x80\x80\x08", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff", b"\x80\x80\x80\x80\x00")
MAX_SECONDS = 5.0
MAX_GROWTH_KIB = 600 * 1024


def exact(data: bytes) -> memoryview:
    """A buffer with nothing behind its last byte; bytes objects have a zero there."""
    return memoryview(array("B", data))


def mutate(data: bytes, pick: random.Random) -> bytes:
    """One to four small changes."""
    out = bytearray(data)
    for _ in range(pick.choice((1, 1, 1, 2, 4))):
        at = pick.randrange(len(out) + 1)
        size = pick.choice((1, 1, 2, 4, 8, 40))
        kind = pick.randrange(6)
        if kind == 0:
            out[at : at + 1] = bytes([pick.randrange(256)])
        elif kind == 1:
            edge = pick.choice(EDGES)
            out[at : at + len(edge)] = edge
        elif kind == 2:
            out[at:at] = pick.choice(VARINTS)
        elif kind == 3:
            del out[at : at + size]
        elif kind == 4:
            out[at:at] = out[max(at - size, 0) : at]
        else:
            del out[at:]
    return bytes(out)


def check_message(cls: type[Message], version: int, data: bytes) -> bool:
    """Whether the decoder took it. Fails for anything but a message that encodes, or WireError."""
    try:
        message, position = decode_prefix(cls, version, exact(data))
    except WireError:
        return False
    assert 0 <= position <= len(data)
    again = encode(message, version)
    assert encode(decode_prefix(cls, version, exact(again))[0], version) == again
    return True


def check_request(data: bytes) -> bool:
    """A request's frame as dispatch meets it: header, then the body in the version that the header names."""
    buffer = exact(data)
    try:
        api_key, version, _, _, body = parse_request_header(buffer)
    except WireError:
        return False
    cls = request_class(api_key)
    return cls.MIN_VERSION <= version <= cls.MAX_VERSION and check_message(cls, version, data[body:])


def check_frames(data: bytes) -> bool:
    """The frames of internal records: any of them may meet any bytes on a damaged disk."""
    taken = False
    readers: tuple[Callable[[memoryview], object], ...] = (
        decode_metadata,
        GROUP.decode_key,
        TRANSACTION.decode_key,
        SHARE.decode_key,
        lambda value: GROUP.decode_value(value[0] % 24, value) if len(value) else None,
        lambda value: TRANSACTION.decode_value(0, value),
        lambda value: decode_control(value[:4], value[4:]),
    )
    for reader in readers:
        try:
            reader(exact(data))
            taken = True
        except (WireError, UnknownRecordError):
            continue
    return taken


def seeds(cls: type[Message], version: int, pick: random.Random) -> bytes:
    message = make(cls, version, pick.choice((Nulls(), Seeded(pick.randrange(2**30)))))
    if version >= cls.FLEXIBLE_FROM:
        for struct in structs_of(message, version):
            if pick.random() < 0.2:
                struct.unknown_tags = {pick.randrange(100, 2**32): b"x" * pick.randrange(4)}
    return encode(message, version)


def corpus() -> Iterator[tuple[str, int, bytes, bool]]:
    """(message name, version, bytes, whether it is read) of inputs that are worth a run each time."""
    for line in CORPUS.read_text().splitlines():
        if line and not line.startswith("#"):
            name, version, data, verdict, _ = line.split(maxsplit=4)
            yield name, int(version), bytes.fromhex(data.strip(".")), {"read": True, "refused": False}[verdict]


def fuzz(seed: int, seconds: float) -> tuple[int, int]:
    """(inputs, inputs that were messages). The same seed gives the same inputs in the same order."""
    pick = random.Random(seed)
    pairs = [(cls, version) for cls in CLASSES for version in versions(cls)]
    pick.shuffle(pairs)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    end = time.monotonic() + seconds
    tried = taken = 0
    while time.monotonic() < end:
        for cls, version in pairs:
            good = seeds(cls, version, pick)
            for _ in range(8):
                data = mutate(good, pick)
                began = time.monotonic()
                taken += check_message(cls, version, data)
                if cls.API_KEY >= 0 and cls.__name__.endswith("Request"):
                    header = cls.API_KEY.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\1\0\2me"
                    tags = b"\0" if version >= cls.FLEXIBLE_FROM else b""
                    taken += check_request(mutate(header + tags + good, pick))
                taken += check_frames(data)
                assert time.monotonic() - began < MAX_SECONDS, (cls.__name__, version, data.hex())
                tried += 1
            if time.monotonic() >= end:
                break
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    assert grown_kib < MAX_GROWTH_KIB, f"memory grew by {grown_kib} KiB"
    return tried, taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    tried, taken = fuzz(arguments.seed, arguments.seconds)
    print(f"{tried} inputs, {taken} of their readings were messages; seed {arguments.seed}")


if __name__ == "__main__":
    main()
