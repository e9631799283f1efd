"""How the C library's allocator treats memory that the data path takes and gives back for every answer."""

def keep(size_bytes: int) -> bool:
    """Let the process keep up to `size_bytes` of freed memory at its heap's top, and take smaller blocks from there.

    By default glibc gives a large block back at once, so that the next answer of a megabyte pays for fresh zeroed
    pages: most of the CPU of a Fetch. For a process of our own only; it holds for all of it. False where the C library
    has no such setting.
    """
