"""ConsumerGroupHeartbeat (key 68), versions 0-1.

The only request of the consumer protocol's membership (KIP-848). Epoch 0 joins, a positive epoch is a heartbeat, -1
leaves, -2 leaves temporarily as a static member. The response carries the assignment if it changed. v1 regular
expressions, and member ids that the client generates (KIP-1082). UNSUPPORTED_VERSION if
`group.coordinator.rebalance.protocols` does not include the protocol, or if group.version is 0.
"""

from __future__ import annotations

from kafka_shim.authorization import authorized, require, topics_described_by
from kafka_shim.cext.plain_heartbeats import PlainConsumerHeartbeat
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.client import Client
from kafka_shim.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafka_shim.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kafka_shim.security.acl import DESCRIBE, GROUP, READ, TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.broker import Broker
    from kafka_shim.context import Context
    from kafka_shim.outcome import Outcome
    from kafka_shim.session import Session

KEY, MIN, MAX = 68, 0, 1
REQUEST, RESPONSE = ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


def handle(context: Context, request: ConsumerGroupHeartbeatRequest) -> Outcome[ConsumerGroupHeartbeatResponse]:
    context.note_member(request.group_id, request.member_id)
    check_protocol(context.broker)
    require(context, READ, GROUP, request.group_id)
    if request.subscribed_topic_names:
        names = set(request.subscribed_topic_names)
        if len(authorized(context, DESCRIBE, TOPIC, names)) < len(names):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    client = Client(context.client_id or "", f"/{context.peer_host}", topics_described_by(context))
    return context.broker.groups.consumer.heartbeat(request, context.api_version, client)


def check_protocol(broker: Broker) -> None:
    """Raises UNSUPPORTED_VERSION, with no text as in Kafka, if the consumer protocol is not enabled here."""
    if not _has_protocol(broker):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def _has_protocol(broker: Broker) -> bool:
    is_enabled = "consumer" in broker.config.group_coordinator_rebalance_protocols
    return is_enabled and broker.metadata.feature("group.version") >= 1


def _stays(broker: Broker, session: Session, client_id: str, group_id: str, member_id: str, member_epoch: int) -> int:
    if not _has_protocol(broker):
        return -1
    return broker.groups.consumer.stays(group_id, member_id, member_epoch, client_id, session.peer_host)


PLAIN = PlainConsumerHeartbeat(_stays)
