"""BrokerHeartbeat (key 63), versions 0-2, of the controller.

The one broker is this node, which is not fenced as long as it answers: a wish to be fenced or to shut down that comes
from outside has no effect. Another broker, or an old epoch, is STALE_BROKER_EPOCH. v1 offline, v2 cordoned directories,
which the node itself knows better.
"""

from __future__ import annotations

from kafka_shim.api.controller.brokers import check_broker_epoch
from kafka_shim.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kafka_shim.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 63, 0, 2
REQUEST, RESPONSE = BrokerHeartbeatRequest, BrokerHeartbeatResponse


def handle(context: Context, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    check_broker_epoch(context, request.broker_id, request.broker_epoch)
    registered = context.broker.metadata.image.brokers[request.broker_id]
    return BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= registered.broker_epoch, is_fenced=registered.fenced
    )
