"""The codecs of record batches, with a limit on what comes out.

Codec numbers are Kafka's: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd. The libraries are imported at first use.
"""

from typing_extensions import Buffer

NONE: int
GZIP: int
SNAPPY: int
LZ4: int
ZSTD: int
NAMES: tuple[str, ...]
"""By codec number, as in Kafka's option `compression.type`."""

DEFAULT_LIMIT_BYTES: int
"""What one batch of a client may decompress to when the caller does not say (128 MiB)."""
STORED_LIMIT_BYTES: int
"""The same for a batch that a broker has accepted: it must stay readable, so only the format bounds it."""

class DecompressError(Exception):
    """The data is not what its codec says."""

class LimitExceeded(DecompressError):
    """The data decompresses to more than the limit."""

def compress(codec: int, data: Buffer, level: int | None = None) -> Buffer:
    """What Kafka's own producer would send: gzip, snappy in xerial's framing of 32 KB blocks, an lz4 frame of
    independent 64 KB blocks, zstd.

    `level` as in `compression.gzip.level` (-1, 1 to 9), `compression.lz4.level` (1 to 17, 9 is the fast mode) and
    `compression.zstd.level` (-131072 to 22); None is Kafka's default. ValueError for an unknown codec.
    """

def decompress(codec: int, data: Buffer, limit_bytes: int = ...) -> Buffer:
    """All of the data, at most `limit_bytes`, as a new bytes-like object (`data` itself for codec 0).

    Memory stays near `limit_bytes` whatever the data claims. Reads what clients send: gzip with several members, snappy
    raw and in xerial's framing, lz4 frames of independent blocks, zstd frames with and without content size.
    DecompressError or LimitExceeded otherwise.
    """
