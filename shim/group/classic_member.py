"""Members of groups of the classic protocol (`cext.classic_members`), and what they say of themselves."""

from __future__ import annotations

from kafka_shim.cext.classic_members import ClassicMember, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_shim.protocol.messages.join_group_request import JoinGroupRequestProtocol

__all__ = ["ClassicMember", "Protocols", "protocols_of", "size_of"]

# (name, metadata) in the member's order of preference.
Protocols = list[tuple[str, bytes]]


def protocols_of(requested: Iterable[JoinGroupRequestProtocol]) -> Protocols:
    """Returns the protocols of a JoinGroup request, copied out of its buffer."""
    return [(protocol.name, bytes(protocol.metadata)) for protocol in requested]
