"""The fast path of ApiVersions, the first request of every connection. Its answer is the same for all clients until the
metadata change. Listeners with SASL are left to the handler, because the request is part of the exchange.

`shim/tests/api/test_plain_versions.py` compares the answers with those of the handler.
"""

from collections.abc import Callable
from typing import Any

from kafka_shim.cext.plain_api import PlainApi

class PlainVersions(PlainApi):
    """`frame_of(broker, listener, version)` returns the whole frame of the answer. Its correlation id is replaced."""

    def __init__(self, frame_of: Callable[[Any, Any, int], bytes]) -> None: ...
