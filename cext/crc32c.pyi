from typing_extensions import Buffer

IMPLEMENTATIONS: tuple[str, ...]
"""What this CPU can run, fastest first; the first is the one in use. "table" is always the last."""

def crc32c(data: Buffer, value: int = 0) -> int:
    """CRC-32C (Castagnoli, RFC 3720 B.4) of `data`, going on from `value`, the CRC of what came before."""

def crc32c_with(name: str, data: Buffer, value: int = 0) -> int:
    """The same through one named implementation; ValueError when this CPU lacks it. For tests and benches."""
