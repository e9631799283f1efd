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
# A snapshot of the metadata log, and the file of a partition's leader epochs.
METADATA_SNAPSHOT = ".checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"

DELETE_DIR = "-delete"
STRAY_DIR = "-stray"
FUTURE_DIR = "-future"
# The cache of tiered storage, which Kafka leaves in a data directory.
REMOTE_INDEX_CACHE = "remote-log-index-cache"

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


def is_retired(directory_name: str, suffix: str) -> bool:
    """Whether this is the directory of a partition that was deleted, set aside or moved: `topic-partition.id` and the
    suffix."""
    return directory_name.endswith(suffix) and partition_of(directory_name.rpartition(".")[0]) is not None


def is_foreign(directory_name: str) -> bool:
    """Whether Kafka would refuse to start on a data directory with a folder of this name (LocalLog:
    parseTopicPartitionName)."""
    return (
        partition_of(directory_name) is None
        and not any(is_retired(directory_name, suffix) for suffix in (DELETE_DIR, STRAY_DIR, FUTURE_DIR))
        and directory_name != REMOTE_INDEX_CACHE
    )


def retired_name(topic: str, partition: int, suffix: str, random: Randomness) -> str:
    """Return a unique directory name for a deleted or stray partition. The topic is cut to fit into a file name."""
    tail = f"-{partition}.{random.bytes_of(16).hex()}{suffix}"
    return topic[: MAX_NAME_LENGTH - len(tail)] + tail
