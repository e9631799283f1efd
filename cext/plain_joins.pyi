"""The fast path of two JoinGroup requests of a dynamic member, from version 4 on: the first, which is answered with an
id and MEMBER_ID_REQUIRED (KIP-394), and the second, if it only waits for other members. The handler serves them with an
authorizer, and with a virtual clock, for which it notes the members.

`shim/tests/group/test_plain_joins.py` and `test_plain_waits.py` compare the answers with those of the handler.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from kafka_shim.cext.plain_api import PlainMember
from kafka_shim.cext.replies import DelayedBase

T = TypeVar("T")

def with_protocol(outcome: T) -> T:
    """What a JoinGroup's outcome becomes for a version whose protocol may not be null: it is empty. Changes it."""

class PlainJoin(PlainMember):
    """`delayed(failure)` makes a response that waits, `edit` is what the handler does to the outcome for a version
    whose protocol may not be null. The groups are `broker.groups.classic`, a `ClassicRequestsBase`."""

    def __init__(
        self,
        delayed: Callable[[Callable[[Any], Any]], DelayedBase],
        failure: Callable[[Any], Any],
        edit: Callable[[Any], Any],
    ) -> None: ...
