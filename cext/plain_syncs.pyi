"""The fast path of a SyncGroup without assignments: the member waits for the leader's SyncGroup, or gets its assignment
at once. The handler serves it with an authorizer, and with a virtual clock, for which it notes the members.

`shim/tests/group/test_plain_waits.py` compares the answers with those of the handler.
"""

from collections.abc import Callable
from typing import Any

from kafka_shim.cext.plain_api import PlainMember
from kafka_shim.cext.replies import DelayedBase

class PlainSync(PlainMember):
    """`delayed(failure)` makes a response that waits. The groups are `broker.groups.classic`, a
    `ClassicRequestsBase`."""

    def __init__(
        self, delayed: Callable[[Callable[[Any], Any]], DelayedBase], failure: Callable[[Any], Any]
    ) -> None: ...
