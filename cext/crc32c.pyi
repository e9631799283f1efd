from typing_extensions import Buffer

IMPLEMENTATIONS: tuple[str, ...]
"""What this CPU can run, fastest first; the first is the one in use. "table" is always the last."""

def crc32c(data: Buffer, value: int = 0) -> int:
    """Return the CRC-32C (Castagnoli, RFC 3720 B.4) of `data`, continued from `value`, the CRC of the preceding
    bytes."""

def crc32c_with(name: str, data: Buffer, value: int = 0) -> int:
    """Compute the CRC with a named implementation. Raises ValueError if this CPU lacks it. For tests and benchmarks."""
