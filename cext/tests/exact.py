"""Buffers of exactly their size, straight from the C allocator.

A bytes object has a byte more than it shows, and CPython's allocator puts it among others, so AddressSanitizer does not
see a read past its end. It does see one past these.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

_libc = ctypes.CDLL(None)
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = (ctypes.c_size_t,)
_libc.free.argtypes = (ctypes.c_void_p,)
_view = ctypes.pythonapi.PyMemoryView_FromMemory
_view.restype = ctypes.py_object
_view.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
_WRITABLE = 0x200


@contextmanager
def exact(data: bytes | bytearray) -> Iterator[memoryview]:
    """A writable copy of `data`; freed at the end of the block, when nothing may hold it any more."""
    address = _libc.malloc(len(data))
    ctypes.memmove(address, bytes(data), len(data))
    view = _view(address, len(data), _WRITABLE)
    try:
        yield view
    finally:
        view.release()
        _libc.free(address)
