"""ShareGroupHeartbeat (key 76), version 1.

The only request of a share group's membership (KIP-932). Epoch 0 joins, a positive epoch is a heartbeat, -1 leaves. The
client generates its member id. The response carries the assignment if it changed. Partitions that the group reads for
the first time get a state in the share coordinator after the response, and are assigned once they have it.
UNSUPPORTED_VERSION if share.version is 0.
"""

from __future__ import annotations

from kafka_shim.authorization import authorized, require
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.client import Client
from kafka_shim.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafka_shim.protocol.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.broker import Broker
    from kafka_shim.context import Context
    from kafka_shim.outcome import Outcome

KEY, MIN, MAX = 76, 1, 1
REQUEST, RESPONSE = ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

# Kafka: ShareSession and Uuid; a longer member id is no Uuid's text.
MOST_MEMBER_ID_LENGTH = 36


def handle(context: Context, request: ShareGroupHeartbeatRequest) -> Outcome[ShareGroupHeartbeatResponse]:
    context.note_member(request.group_id, request.member_id)
    check_protocol(context.broker)
    require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    if not is_member_id_valid(request.member_id):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.subscribed_topic_names:
        names = set(request.subscribed_topic_names)
        if len(authorized(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)) < len(names):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    client = Client(context.client_id or "", f"/{context.peer_host}")
    return context.broker.groups.share.heartbeat(request, client)


def check_protocol(broker: Broker) -> None:
    """Raises UNSUPPORTED_VERSION, with no text as in Kafka, if share groups are not enabled here."""
    if broker.metadata.feature("share.version") < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def is_member_id_valid(member_id: str | None) -> bool:
    """Returns whether Kafka takes this member id for one of a share consumer."""
    return member_id is not None and 0 < len(member_id) <= MOST_MEMBER_ID_LENGTH
