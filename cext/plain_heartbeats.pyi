"""The fast path of heartbeats that change nothing: Heartbeat, and a ConsumerGroupHeartbeat with only the member's
epoch. The handlers serve them with an authorizer, and with a virtual clock, for which they note the members.

`shim/tests/group/test_plain_heartbeats.py` compares the answers with those of the handlers.
"""

from collections.abc import Callable
from typing import Any

from kafka_shim.cext.plain_api import PlainMember

class Beat:
    """The fields of a Heartbeat that rules read."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None

class PlainHeartbeat(PlainMember):
    """`stays(broker, Beat)` keeps the member alive and returns whether the answer is one without an error; if not, it
    has done nothing. Members of classic groups are kept without it, by `broker.groups.classic`, a
    `ClassicRequestsBase`."""

    def __init__(self, stays: Callable[[Any, Any], bool]) -> None: ...

class PlainConsumerHeartbeat(PlainMember):
    """`stays(broker, session, client id, group id, member id, member epoch)` keeps the member alive and returns the
    interval of its heartbeats in ms; or -1 if the handler must decide, and then it has done nothing."""

    def __init__(self, stays: Callable[[Any, Any, str, str, str, int], int]) -> None: ...
