"""The fast path of OffsetCommit: all partitions exist, the client or member may commit, no authorizer.

`shim/tests/group/test_plain_commit_frames.py` compares answers, states and files with those of the handler.
"""

from collections.abc import Callable
from typing import Any

from kafka_shim.cext.plain_api import PlainAppend

class Commit:
    """The fields of an OffsetCommit that identify the group and the member, for the rules."""

    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None

class OffsetsApi(PlainAppend):
    """The base for requests that store offsets of a group."""

class PlainCommit(OffsetsApi):
    """Serves requests of at most MOST_OFFSETS offsets.

    - `segment`: the module whose `append` writes batches (`cext.segment`; a test may pass another).
    - `prepare(broker, partition of __consumer_offsets, Commit, version)`: returns (the groups of the partition, its
      log, the timers to move after the append, `offset.metadata.max.bytes`). None means that the handler has to decide;
      nothing was changed.
    - `fail(broker, groups, log, base offset, error)`: handles an error of the append at this offset; the offset is None
      if the append succeeded and the error came after it. Returns the exception that is the error of the request.

    `serve` returns this exception as what was changed: the handler only answers with it."""

    def __init__(
        self,
        segment: Any,
        cached_batches: int,
        prepare: Callable[[Any, int, Commit, int], tuple[Any, Any, Any, int] | None],
        fail: Callable[[Any, Any, Any, int | None, Exception], Exception],
    ) -> None: ...

MOST_OFFSETS: int
