"""Micro-benchmarks of `cext`: `python -m bench.micro_cext [part of a row's name ...]`.

Every row is the best of several rounds, in microseconds of this thread's CPU (rows `gil ...`: average wall time),
with the bytes that pass in a second where that says something. The rows `gil ...` and `read and send ...` are the
measurements behind docs/adr/0004 and 0005.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

from kafka_shim.cext import compression, crc32c, records, segment
from kafka_shim.cext.batch import scan, stamp

ROUND_SECONDS = 0.05
ROUNDS = 5
KIB, MIB = 1 << 10, 1 << 20
Row = tuple[str, Callable[[], object], int]


def measure(function: Callable[[], object]) -> float:
    """Seconds of this thread's CPU of one call: the best round of some."""
    clock = time.thread_time
    calls = 1
    while (seconds := _round(function, calls, clock)) < ROUND_SECONDS:
        calls = max(calls * 2, int(calls * ROUND_SECONDS / max(seconds, 1e-6)))
    return min(seconds, *(_round(function, calls, clock) for _ in range(ROUNDS - 1))) / calls


def average(function: Callable[[], object], calls: int = 200) -> float:
    """Seconds of wall time of one call, waits included."""
    return _round(function, calls, time.perf_counter) / calls


def _round(function: Callable[[], object], calls: int, clock: Callable[[], float]) -> float:
    began = clock()
    for _ in range(calls):
        function()
    return clock() - began


def text(size_bytes: int) -> bytes:
    """JSON lines that compress about as logs do."""
    pick = random.Random(1)
    lines = []
    while size_bytes > 0:
        line = json.dumps({"id": pick.getrandbits(40), "level": pick.choice(["info", "warn"]), "took": pick.random()})
        lines.append(line.encode())
        size_bytes -= len(line)
    return b"".join(lines)[: sum(map(len, lines)) + min(size_bytes, 0)]


def batch_of(record_bytes: int, codec: int = 0, total_bytes: int = MIB) -> bytearray:
    """A batch of `total_bytes` before compression."""
    plain = text(total_bytes)
    parts = [plain[at : at + record_bytes] for at in range(0, total_bytes - 80, record_bytes)]
    return records.build(((None, part, 1_700_000_000_000, ()) for part in parts), codec=codec)


def crc_rows() -> Iterator[Row]:
    pypi: Callable[[bytes], int] | None
    try:
        from crc32c import crc32c as pypi
    except ImportError:
        pypi = None
    for size_bytes in (61, KIB, 64 * KIB, MIB):
        data = random.Random(2).randbytes(size_bytes)
        for name in crc32c.IMPLEMENTATIONS:
            yield f"crc {size_bytes} B {name}", partial(crc32c.crc32c_with, name, data), size_bytes
        if pypi is not None:
            yield f"crc {size_bytes} B pypi", partial(pypi, data), size_bytes


def batch_rows() -> Iterator[Row]:
    one = records.build([(None, bytes(100), 0, ())])
    header = scan(one)
    yield "scan of one record", lambda: scan(one), 0
    yield "validate of one record", lambda: records.validate(one, header), 0
    yield "stamp of one record", lambda: stamp(one, 0, 5, 1, -1, 0), 0
    yield "stamp of append time", lambda: stamp(one, 0, 5, 1, time.time_ns()), 0
    yield "build of one record", lambda: records.build([(None, b"x", 0, ())]), 0
    yield "build of a marker", lambda: records.build_marker(1, 2, 3, True, 4), 0
    for record_bytes in (100, KIB):
        for codec, name in enumerate(compression.NAMES):
            data = batch_of(record_bytes, codec)
            batch = scan(data)
            label = f"1 MiB of {record_bytes} B records, {name}"
            if codec == 0:
                yield f"scan {label}", partial(scan, data), len(data)
            yield f"validate {label}", partial(records.validate, data, batch), MIB
            if codec in (0, 4):
                yield f"iterate {label}", partial(_iterate, data), MIB


def _iterate(data: bytearray) -> int:
    return sum(1 for _ in records.iterate(data))


def compression_rows() -> Iterator[Row]:
    plain = text(MIB)
    for codec in range(1, 5):
        name = compression.NAMES[codec]
        packed = compression.compress(codec, plain)
        share = len(memoryview(packed)) / len(plain)
        yield f"compress {name} to {share:.0%}", partial(compression.compress, codec, plain), MIB
        yield f"decompress {name}", partial(compression.decompress, codec, packed), MIB


def segment_rows(folder: str) -> Iterator[Row]:
    for record_bytes, total_bytes in ((100, 200), (KIB, MIB)):
        data = batch_of(record_bytes, 0, total_bytes)
        path = f"{folder}/{total_bytes}.log"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)

        yield f"append of {len(data)} B", partial(_append, fd, data), len(data)
    path = f"{folder}/walk.log"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    small = batch_of(100, 0, 200)
    size = len(small)
    count = scan(small).record_count
    for first in range(0, 16 * MIB // size * count, count):
        stamp(small, 0, first, 0)
        segment.append(fd, (small,))
    end = os.fstat(fd).st_size
    last = end // size * count - 1
    yield f"read of {64 * KIB} B", lambda: segment.read(fd, MIB, 64 * KIB), 64 * KIB
    yield f"read of {MIB} B", lambda: segment.read(fd, MIB, MIB), MIB
    yield "find_batch 4 KiB ahead", lambda: segment.find_batch(fd, end - 20 * size, end, last), 0
    yield "walk over 16 MiB of small batches", lambda: sum(1 for _ in segment.Walk(fd, 0, end)), end


def _append(fd: int, data: bytearray) -> None:
    segment.append(fd, (data,))
    if os.lseek(fd, 0, os.SEEK_END) > 64 * MIB:
        os.ftruncate(fd, 0)


def fetch_rows(folder: str) -> Iterator[Row]:
    """Stored bytes to a loopback connection whose other end throws them away: which way costs least."""
    path = f"{folder}/fetch.log"
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(random.Random(3).randbytes(64 * MIB))
    fd = os.open(path, os.O_RDONLY)
    listener = socket.create_server(("127.0.0.1", 0))
    sender = socket.create_connection(listener.getsockname())
    receiver, _ = listener.accept()
    threading.Thread(target=_discard, args=(receiver,), daemon=True).start()
    spots = [random.Random(4).randrange(63) * MIB for _ in range(1000)]
    whole = memoryview(mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ))

    def by_copy(size: int) -> None:
        sender.sendall(segment.read(fd, next(turn), size))

    def by_mapping(size: int, flags: int) -> None:
        with mmap.mmap(fd, size, flags, mmap.PROT_READ, offset=next(turn)) as view:
            sender.sendall(view)

    def by_lasting_mapping(size: int) -> None:
        at = next(turn)
        sender.sendall(whole[at : at + size])

    def by_sendfile(size: int) -> None:
        sent, at = 0, next(turn)
        while sent < size:
            sent += os.sendfile(sender.fileno(), fd, at + sent, size - sent)

    def endless() -> Iterator[int]:
        while True:
            yield from spots

    turn = endless()
    populate = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
    for size in (4 * KIB, 64 * KIB, 256 * KIB, MIB):
        yield f"read and send {size} B: copy", partial(by_copy, size), size
        yield f"read and send {size} B: map each", partial(by_mapping, size, populate), size
        yield f"read and send {size} B: one lasting map", partial(by_lasting_mapping, size), size
        yield f"read and send {size} B: sendfile", partial(by_sendfile, size), size


def _discard(receiver: socket.socket) -> None:
    buffer = bytearray(MIB)
    while receiver.recv_into(buffer):
        pass


def gil_rows(folder: str) -> Iterator[Row]:
    """What a call that releases the GIL takes on average: alone, and while another thread computes in Python."""
    fd = os.open(f"{folder}/gil.log", os.O_RDWR | os.O_CREAT)
    os.write(fd, bytes(4 * MIB))
    sizes = (4 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
    for size in sizes:
        yield f"gil released for a read of {size} B, alone", partial(os.pread, fd, size, 0), 0
    stop = threading.Event()
    threading.Thread(target=_compute, args=(stop,), daemon=True).start()
    for size in sizes:
        yield f"gil released for a read of {size} B, beside a busy thread", partial(os.pread, fd, size, 0), 0
    stop.set()


def _compute(stop: threading.Event) -> None:
    while not stop.is_set():
        sum(range(1000))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", help="only rows whose name contains one of these")
    parser.add_argument("--json", metavar="FILE", help="also write the rows there")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        groups = (
            crc_rows(),
            batch_rows(),
            compression_rows(),
            segment_rows(folder),
            fetch_rows(folder),
            gil_rows(folder),
        )
        print(f"{'row':60} {'us':>12} {'MB/s':>9}")
        for group in groups:
            for name, function, size_bytes in group:
                if options.part and not any(part in name for part in options.part):
                    continue
                seconds = average(function) if name.startswith("gil") else measure(function)
                rate = size_bytes / seconds / 1e6 if size_bytes else None
                print(f"{name:60} {seconds * 1e6:12.3f} {'' if rate is None else f'{rate:9.0f}'}", flush=True)
                results.append({"name": name, "microseconds": seconds * 1e6, "megabytes_per_second": rate})
    if options.json:
        with open(options.json, "w") as file:  # noqa: PTH123
            json.dump(results, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
