"""ListConfigResources (key 74), versions 0-1.

v0 lists client metrics subscriptions only; v1 the types asked for, or all: groups, client metrics, broker loggers,
brokers, topics. Groups and client metrics are those with stored options. A type that the version does not have is
UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode
from kafka_shim.metadata.image import (
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)
from kafka_shim.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from kafka_shim.protocol.messages.list_config_resources_response import ConfigResource, ListConfigResourcesResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 74, 0, 1
REQUEST, RESPONSE = ListConfigResourcesRequest, ListConfigResourcesResponse
ABANDONABLE = True

# In Kafka's order.
TYPES = (RESOURCE_GROUP, RESOURCE_CLIENT_METRICS, RESOURCE_BROKER_LOGGER, RESOURCE_BROKER, RESOURCE_TOPIC)


def handle(context: Context, request: ListConfigResourcesRequest) -> Steps[ListConfigResourcesResponse]:
    supported = TYPES if context.api_version >= 1 else (RESOURCE_CLIENT_METRICS,)
    wanted = set(request.resource_types or supported)
    response = ListConfigResourcesResponse()
    if not wanted.issubset(supported):
        response.error_code = ErrorCode.UNSUPPORTED_VERSION
        return response
    for kind in TYPES:
        for name in _names(context, kind) if kind in wanted else ():
            response.config_resources.append(ConfigResource(resource_name=name, resource_type=kind))
            yield
    return response


def _names(context: Context, kind: int) -> Iterable[str]:
    image = context.broker.metadata.image
    if kind == RESOURCE_TOPIC:
        return list(image.topics)
    if kind in (RESOURCE_BROKER, RESOURCE_BROKER_LOGGER):
        return [str(node_id) for node_id, broker in image.brokers.items() if not broker.fenced]
    return [name for stored, name in image.configs if stored == kind]
