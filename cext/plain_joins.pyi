"""The short way of the JoinGroup by which a new dynamic member gets its id with MEMBER_ID_REQUIRED (KIP-394), from
version 4 on. No authorizer, and no virtual clock, whose members are noted.

`shim/tests/group/test_plain_joins.py` compares the answers with those of the handler.
"""

from collections.abc import Callable
from typing import Any

from kafka_shim.cext.plain_api import PlainApi

class NewMember:
    """The fields of a JoinGroup without a member id that rules read."""

    group_id: str
    session_timeout_ms: int
    protocol_type: str
    protocol_names: list[str]
    metadata_bytes: int
    # Set by `new_id`, for `expect`.
    group: Any

class PlainFirstJoin(PlainApi):
    """`new_id(broker, client id, NewMember)` returns the id of the member, and changes nothing; or None if the handler
    must decide. `expect(broker, NewMember, id)` has the group expect it; if it raises, nothing has changed."""

    def __init__(
        self,
        new_id: Callable[[Any, str | None, NewMember], str | None],
        expect: Callable[[Any, NewMember, str], None],
    ) -> None: ...
