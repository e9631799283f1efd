"""The fast path of the SyncGroup of a member that gives out no assignments: it waits for the leader's, or has its own
at once. No authorizer, and no virtual clock, whose members are noted.

`shim/tests/group/test_plain_waits.py` compares the answers with those of the handler.
"""

from collections.abc import Callable
from typing import Any

from kafka_shim.cext.plain_api import PlainMember
from kafka_shim.cext.request_end import DelayedEnd

class PlainSync(PlainMember):
    """`delayed(failure)` makes a response that waits. The groups are `broker.groups.classic`, a
    `ClassicRequestsEnd`."""

    def __init__(
        self, delayed: Callable[[Callable[[Any], Any]], DelayedEnd], failure: Callable[[Any], Any]
    ) -> None: ...
