"""The short way of OffsetFetch: offsets of classic groups, and of groups that are not there, at most MOST_OFFSETS in
all. The groups of their partitions of `__consumer_offsets` are loaded, nothing is left of deleted topics, and where the
client requires stable offsets no transaction has pending ones for the group. What is refused, and groups whose members
are checked, are the handler's.

`shim/tests/group/test_plain_offset_fetch.py` compares the answers with those of the handler.
"""

from kafka_shim.cext.plain_api import PlainLookup

class PlainOffsetFetch(PlainLookup):
    """`dead` is the state of a group that has no offsets to return."""

    def __init__(self, dead: object) -> None: ...

MOST_OFFSETS: int
