"""The fast path of ListOffsets: a client asks for the earliest or latest offsets of loaded partitions. The handler
serves a request that looks up a timestamp, names a topic or a partition twice, or has an error anywhere.

`shim/tests/api/test_plain_list_offsets.py` compares the answers with those of the handler.
"""

from kafka_shim.cext.plain_api import PlainLookup

class PlainListOffsets(PlainLookup):
    pass
