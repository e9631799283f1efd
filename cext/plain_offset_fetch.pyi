"""The fast path of OffsetFetch: at most MOST_OFFSETS offsets in all, of classic groups, of consumer groups (for a
member at its epoch, or without a member), and of groups that do not exist.

The groups' partitions of `__consumer_offsets` are loaded, and hold no offsets of deleted topics. If the client requires
stable offsets, no transaction has pending ones for the group. The handler serves every request that is refused.

`shim/tests/group/test_plain_offset_fetch.py` compares the answers with those of the handler.
"""

from typing import Any

from kafka_shim.cext.plain_api import PlainLookup

class PlainOffsetFetch(PlainLookup):
    """`dead` is the state of a classic group that has no offsets to return, `consumer_group` the class of the groups
    whose members are checked."""

    def __init__(self, dead: object, consumer_group: type[Any]) -> None: ...

MOST_OFFSETS: int
