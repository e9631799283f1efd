"""Committed offsets and their records in `__consumer_offsets`, of which a commit writes one a partition.

All other records of the topic are written by the generated classes; a test compares these with those.
"""

from collections.abc import Sequence
from typing import Any

class Committed:
    """One committed offset; only `record_offset`, the offset of its record in the log, may be set later. `expire_ms` is
    -1 if `offsets.retention.minutes` applies. `topic_id` (16 bytes) is zero if the commit did not contain it."""

    record_offset: int

    def __init__(
        self,
        offset: int,
        leader_epoch: int,
        metadata: str,
        commit_ms: int,
        expire_ms: int = -1,
        topic_id: bytes = ...,
        record_offset: int = -1,
    ) -> None: ...
    @property
    def offset(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def metadata(self) -> str: ...
    @property
    def commit_ms(self) -> int: ...
    @property
    def expire_ms(self) -> int: ...
    @property
    def topic_id(self) -> bytes: ...

def encode_offset_key(group_id: str, topic: str, partition: int) -> bytes:
    """Returns the key of one partition's offset. Raises EncodeError for a name that no record can hold: names may be
    longer in requests than in records."""

def encode_offset(committed: Committed) -> bytes:
    """Returns the value of an offset record: version 4, or version 1 with an explicit retention time (OffsetCommit
    v2-4). Raises EncodeError for metadata that no record can hold."""

def encode_offsets(
    group_id: str, changes: Sequence[tuple[str, int, Committed | None]], now_ms: int
) -> list[tuple[bytes, bytes | None, int, tuple[()]]]:
    """Returns the entries for `cext.records.build` of a group's (topic, partition, offset or None for its tombstone).
    Raises EncodeError as the other two."""

class PlainCommits:
    """The fast path of an OffsetCommit in which there is nothing to refuse, over the classes of its messages: a topic
    and a partition of the request, a topic and a partition of the response. The rules have the slow path."""

    def __init__(
        self, topic_class: type[Any], partition_class: type[Any], answer_class: type[Any], row_class: type[Any]
    ) -> None: ...
    def are_known(self, topics: list[Any], known: dict[Any, Any], by_id: bool) -> bool:
        """Returns whether there are topics, and each names partitions, all of which exist. `known` are topics by name,
        or by id. Sets the name and the id of those that were seen to exist."""

    def take(
        self, topics: list[Any], metadata_limit: int, now_ms: int, expire_ms: int, most: int
    ) -> tuple[list[Any], list[Any]] | None:
        """Returns the offsets as (topic, partition, `Committed`), and those of an answer without an error; None if
        there are more than `most`, or if metadata may be longer than the limit."""

def put_offsets(stored: dict[str, dict[int, Committed]], changes: list[Any], base_offset: int) -> None:
    """Store a group's offsets, whose records follow each other in the log from `base_offset` on."""

def fetched(
    by_topic: dict[str, dict[int, Committed]],
    wanted: Sequence[tuple[str, bytes, Sequence[int]]],
    topic_class: type[Any],
    row_class: type[Any],
) -> list[Any]:
    """Returns the topics of an OffsetFetch of (topic, topic id, partitions), and in them the rows. Those without an
    offset have -1, and so have those with an offset of another topic than the id, if neither is zero."""
