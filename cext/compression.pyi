"""The compression codecs of record batches, with a limit on the decompressed size.

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
    """The data is not valid for its codec."""

class LimitExceeded(DecompressError):
    """The data decompresses to more than the limit."""

def compress(codec: int, data: Buffer, level: int | None = None) -> Buffer:
    """Compress as Kafka's producer does: gzip, snappy in xerial's framing of 32 KB blocks, an lz4 frame of independent
    64 KB blocks, zstd.

    `level` is as in `compression.gzip.level` (-1, 1 to 9), `compression.lz4.level` (1 to 17, 9 is the fast mode) and
    `compression.zstd.level` (-131072 to 22). None is Kafka's default. Raises ValueError for an unknown codec.
    """

def decompress(codec: int, data: Buffer, limit_bytes: int = ...) -> Buffer:
    """Decompress all of the data, at most `limit_bytes`, into a new bytes-like object (`data` itself for codec 0).

    Memory stays near `limit_bytes` whatever sizes the data claims. Accepts gzip with several members, snappy raw and in
    xerial's framing, lz4 frames of independent blocks, and zstd frames with and without content size. Raises
    DecompressError for invalid data and LimitExceeded above the limit.
    """

def use_system_zstd(wanted: bool) -> bool:
    """Whether the system's libzstd decompresses, where there is one; cramjam does otherwise, and whatever that library
    refuses, so that errors are the same. It does from the start. Returns whether it did before. For tests.
    """

def expected_bytes(codec: int, data: Buffer) -> int:
    """About how many bytes the data decompresses to, by what its framing says, without decompressing any.

    For snappy, lz4 and zstd it is not less than the true size. gzip has its size at the end, where it may be false:
    8 times the data is taken for the least. 0 for data whose framing is invalid.
    """
