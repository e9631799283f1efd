"""The fast path of OffsetCommit: offsets of partitions that exist, by a client or a member that may commit them. No
authorizer.

`shim/tests/group/test_plain_commit_frames.py` compares answers, states and files with those of the handler.
"""

from collections.abc import Callable
from typing import Any

from kafka_shim.cext.plain_api import PlainAppend

class Commit:
    """The fields of an OffsetCommit that say whose it is, for the rules."""

    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None

class OffsetsApi(PlainAppend):
    """Of requests that store offsets of a group."""

class PlainCommit(OffsetsApi):
    """`segment` is the module whose `append` writes batches (`cext.segment`; a test may put another in its place). At
    most MOST_OFFSETS of a request.

    `prepare(broker, partition of __consumer_offsets, Commit, version)` returns the groups of the partition, its log,
    the timers to move after the append, and the most bytes of metadata; or None if the handler must decide, and has
    done nothing.
    `fail(broker, groups, log, base offset, error)` takes over the error of an append at this offset, or, without one,
    of what follows an append. It returns the error of the request, which is what has happened already: the handler
    only answers with it."""

    def __init__(
        self,
        segment: Any,
        cached_batches: int,
        prepare: Callable[[Any, int, Commit, int], tuple[Any, Any, Any, int] | None],
        fail: Callable[[Any, Any, Any, int | None, Exception], Exception],
    ) -> None: ...

MOST_OFFSETS: int
