"""The fast path of ListOffsets: a consumer, or who watches its lag, asks for the ends or the starts of partitions that
are loaded. A request that looks for a time, names a topic or a partition twice, or has an error anywhere is the
handler's.

`shim/tests/api/test_plain_list_offsets.py` compares the answers with those of the handler.
"""

from kafka_shim.cext.plain_api import PlainLookup

class PlainListOffsets(PlainLookup):
    pass
