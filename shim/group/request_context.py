"""What the rules of one request of a member read besides its group (Kafka: AuthorizableRequestContext), and the
decision that they add to."""

from __future__ import annotations

from kafka_shim.group.classic_member import protocols_of
from kafka_shim.group.decision import Decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.group.client import Client
    from kafka_shim.group.decision import Token
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.protocol.messages.join_group_request import JoinGroupRequest


class RequestContext:
    """Who sends the request, the metadata that the coordinator sees, and the time."""

    __slots__ = ("client", "decision", "image", "now_ms")

    def __init__(self, client: Client, image: CoordinatorMetadataImage, now_ms: int) -> None:
        self.client = client
        self.image = image
        self.now_ms = now_ms
        self.decision = Decision()


class JoinContext(RequestContext):
    """A JoinGroup, and the response that waits for the end of the join phase."""

    __slots__ = ("protocols", "request", "token", "version")

    def __init__(
        self,
        request: JoinGroupRequest,
        version: int,
        token: Token,
        client: Client,
        image: CoordinatorMetadataImage,
        now_ms: int,
    ) -> None:
        self.client = client
        self.image = image
        self.now_ms = now_ms
        self.decision = Decision()
        self.request = request
        self.protocols = protocols_of(request.protocols)
        self.version = version
        self.token = token
