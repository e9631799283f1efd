"""Tuning of the C library's allocator for memory that the data path allocates and frees for every response."""

def keep(size_bytes: int) -> bool:
    """Let the process keep up to `size_bytes` of freed memory at its heap's top, and take smaller blocks from there.

    By default glibc returns a large block to the system at once, so that the next response of a megabyte pays for new
    zeroed pages, which is most of the CPU time of a Fetch. The setting affects the whole process, so it is only for a
    process of our own. Returns False if the C library has no such setting.
    """
