"""The buffers into which requests are received (Kafka: MemoryPool)."""

from __future__ import annotations

import contextlib
import mmap

from kafka_shim.cext.frame_base import PROBE_BYTES, WIDE_PROBE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Waiting(Protocol):
        """A connection whose next frame waits for memory."""

        def proceed(self) -> None: ...


# The buffer size for frames with one 1 MB batch, the default of most producers. These buffers are kept for reuse.
LARGE_BYTES = 1048576 + PROBE_BYTES
LARGE_KEPT = 8


def _mapped(size_bytes: int) -> mmap.mmap:
    """Returns memory of this process alone. The kernel makes large pages of it where it can: a frame of 10 MB would
    fault 6,000 times, most of what its request costs."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return mmap.mmap(-1, size_bytes)
    memory = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size_bytes > LARGE_BYTES:
        with contextlib.suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def uncounted(size_bytes: int) -> memoryview:
    """Returns a buffer for a client that has not authenticated: such clients have a limit of their own
    (`registry.LOGIN_LIMIT_BYTES`) and may not spend the memory of the others."""
    return memoryview(mmap.mmap(-1, size_bytes) if size_bytes > PROBE_BYTES else bytearray(size_bytes))


class ReceiveMemory:
    """The receive buffers of one server's connections, counted against `queued.max.request.bytes`. Event-loop thread
    only.

    The probe buffer is filled and emptied within one turn of the loop (`get_buffer`, the read, `buffer_updated`), so
    all connections can share it.
    """

    __slots__ = ("_free", "limit_bytes", "probe", "used_bytes", "waiting", "wide_probe")

    def __init__(self, limit_bytes: int = -1) -> None:
        self.wide_probe = memoryview(mmap.mmap(-1, WIDE_PROBE_BYTES))
        self.probe = self.wide_probe[:PROBE_BYTES]
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        # Connections whose next frame waits for memory, in order. A dict keeps the order and allows fast removal.
        self.waiting: dict[Waiting, None] = {}
        self._free: list[memoryview] = []

    def take(self, size_bytes: int) -> memoryview:
        """Returns a buffer of at least `size_bytes`. Large new buffers are memory-mapped, so untouched pages cost
        nothing."""
        if size_bytes <= PROBE_BYTES:
            buffer = memoryview(bytearray(size_bytes))
        elif size_bytes > LARGE_BYTES:
            buffer = memoryview(_mapped(size_bytes))
        elif self._free:
            buffer = self._free.pop()
        else:
            buffer = memoryview(mmap.mmap(-1, LARGE_BYTES))
        self.used_bytes += len(buffer)
        return buffer

    def give_back(self, buffer: memoryview) -> None:
        """Release a buffer. Waiting connections continue while there is memory."""
        try:
            if len(buffer) == LARGE_BYTES and len(self._free) < LARGE_KEPT:
                self._free.append(buffer)
        finally:
            self.drop(buffer)

    def drop(self, buffer: memoryview) -> None:
        """As `give_back`, of a buffer that a thread may still read: it is not used again."""
        self.used_bytes -= len(buffer)
        while self.waiting and not self.is_full:
            connection = next(iter(self.waiting))
            del self.waiting[connection]
            connection.proceed()

    @property
    def is_full(self) -> bool:
        """Whether a new frame must wait. One frame may always exceed the limit; otherwise a large frame could never be
        read."""
        return 0 < self.limit_bytes <= self.used_bytes
