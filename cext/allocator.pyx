"""See allocator.pyi."""

cdef extern from *:
    """
    #if defined(__GLIBC__)
    #include <malloc.h>
    static int keep_freed_memory(int size_bytes) {
        return mallopt(M_MMAP_THRESHOLD, size_bytes) == 1 && mallopt(M_TRIM_THRESHOLD, size_bytes) == 1;
    }
    #else
    static int keep_freed_memory(int size_bytes) { (void)size_bytes; return 0; }
    #endif
    """
    int keep_freed_memory(int size_bytes) noexcept


def keep(int size_bytes):
    return bool(keep_freed_memory(size_bytes))
