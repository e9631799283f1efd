"""File and directory names inside a data directory (Kafka: LogFileUtils, UnifiedLog)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.randomness import Randomness

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
SEGMENT_SUFFIXES = (LOG, INDEX, TIME_INDEX, TXN_INDEX)

DELETE_DIR = "-delete"
STRAY_DIR = "-stray"
FUTURE_DIR = "-future"

MAX_NAME_LENGTH = 255


def file_name(offset: int, suffix: str) -> str:
    """Return the name of a segment file or producer snapshot: 20 digits of `offset` and the suffix."""
    return f"{offset:020d}{suffix}"


def offset_of(name: str) -> int:
    """Return the offset in a file name, or -1 if the name does not start with one."""
    digits = name.split(".", 1)[0]
    return int(digits) if digits.isdecimal() else -1


def partition_of(directory_name: str) -> tuple[str, int] | None:
    """Return (topic, partition) for the directory name of a live partition, or None for any other name."""
    topic, dash, partition = directory_name.rpartition("-")
    if not dash or not topic or not partition.isdecimal() or (len(partition) > 1 and partition[0] == "0"):
        return None
    return topic, int(partition)


def retired_name(topic: str, partition: int, suffix: str, random: Randomness) -> str:
    """Return a unique directory name for a deleted or stray partition. The topic is cut to fit into a file name."""
    tail = f"-{partition}.{random.bytes_of(16).hex()}{suffix}"
    return topic[: MAX_NAME_LENGTH - len(tail)] + tail
