"""The fast path of OffsetFetch: offsets of classic groups, of consumer groups for a member in its epoch or for nobody
in particular, and of groups that are not there, at most MOST_OFFSETS in all. The groups of their partitions of
`__consumer_offsets` are loaded, nothing is left of deleted topics, and where the client requires stable offsets no
transaction has pending ones for the group. What is refused is the handler's.

`shim/tests/group/test_plain_offset_fetch.py` compares the answers with those of the handler.
"""

from typing import Any

from kafka_shim.cext.plain_api import PlainLookup

class PlainOffsetFetch(PlainLookup):
    """`dead` is the state of a classic group that has no offsets to return, `consumer_group` the class of the groups
    whose members are checked."""

    def __init__(self, dead: object, consumer_group: type[Any]) -> None: ...

MOST_OFFSETS: int
