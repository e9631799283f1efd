"""The fast path of Fetch: a consumer, without a session or in one that it continues, whose answer is there.

At most MOST_PARTITIONS are named and as many have news, all of loaded partitions, and each reader is in the last
segment of its log. What is read is copied, at most `copy_bytes` in all. A request that would wait, whose session has
another reader than before, or of which a partition has an error, a diverging epoch or an aborted transaction is the
handler's.
`shim/tests/api/test_plain_fetch.py` compares answers, sessions and metrics with those of the handler.
"""

from kafka_shim.cext.plain_api import PlainApi

class PlainFetch(PlainApi):
    def __init__(self, copy_bytes: int) -> None: ...

MOST_PARTITIONS: int
