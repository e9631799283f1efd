"""The fast path of Fetch: a consumer without a session, or one that continues its session, and that need not wait.

The request names at most MOST_PARTITIONS partitions, and at most as many have new data. All are loaded, and each fetch
offset is in the last segment of its log. The records are copied, at most `copy_bytes` in all. The handler serves a
request that has to wait, one whose session had another version, isolation level or client before, and one with an
error, a diverging epoch or an aborted transaction in any partition.
`shim/tests/api/test_plain_fetch.py` compares answers, sessions and metrics with those of the handler.
"""

from kafka_shim.cext.plain_api import PlainApi

class PlainFetch(PlainApi):
    def __init__(self, copy_bytes: int) -> None: ...

MOST_PARTITIONS: int
