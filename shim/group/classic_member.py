"""One member of a group of the classic protocol."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_shim.group.client import Client
    from kafka_shim.group.decision import Token
    from kafka_shim.protocol.messages.join_group_request import JoinGroupRequestProtocol

# (name, metadata) in the member's order of preference.
Protocols = list[tuple[str, bytes]]


class ClassicMember:
    """One member. `awaiting_join` and `awaiting_sync` are its delayed requests. Only its group changes `protocols` and
    `awaiting_join`, because the group counts them."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client: Client,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        # Constant.
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client.client_id
        self.client_host = client.host
        # Set by the last join.
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        # The assignment in the current generation.
        self.assignment = assignment
        self.awaiting_join: Token | None = None
        self.awaiting_sync: Token | None = None
        # Until its first join completes, a member is removed when its (long) timer ends, although it waits
        # (KAFKA-7610).
        self.is_new = False

    def metadata(self, protocol: str | None) -> bytes:
        """Returns the member's metadata for this protocol, or empty bytes if the member does not support it."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        return b""

    @property
    def is_waiting(self) -> bool:
        """Whether a request of the member is delayed, which counts as a heartbeat."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)


def size_of(protocols: Iterable[tuple[str, bytes]]) -> int:
    """Returns the size of the metadata in bytes."""
    size_bytes = 0
    for _, metadata in protocols:
        size_bytes += len(metadata)
    return size_bytes


def protocols_of(requested: Iterable[JoinGroupRequestProtocol]) -> Protocols:
    """Returns the protocols of a JoinGroup request, copied out of its buffer."""
    return [(protocol.name, bytes(protocol.metadata)) for protocol in requested]
