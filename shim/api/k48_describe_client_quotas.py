"""DescribeClientQuotas (key 48), versions 0-1.

Returns the quotas of the entities that a filter matches (KIP-546). They are in the order of Kafka's maps. A failure has
null entries.
"""

from __future__ import annotations

from kafka_shim.api.quota_order import entity_hash, order_described, order_values
from kafka_shim.metadata import client_quotas
from kafka_shim.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from kafka_shim.protocol.messages.describe_client_quotas_response import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.errors import ErrorCode
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 48, 0, 1
REQUEST, RESPONSE = DescribeClientQuotasRequest, DescribeClientQuotasResponse
ABANDONABLE = True


def handle(context: Context, request: DescribeClientQuotasRequest) -> Steps[DescribeClientQuotasResponse]:
    components = [(one.entity_type, one.match_type, one.match) for one in request.components]
    image = context.broker.metadata.image
    found = []
    for entity, values in (yield from client_quotas.find(image, components, strict=request.strict)):
        entry = EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            values=[ValueData(key=key, value=values[key]) for key in order_values(list(values))],
        )
        found.append((entity_hash(entity), entry))
        yield
    return DescribeClientQuotasResponse(entries=order_described(found, len(image.quotas)))


def failed(
    request: DescribeClientQuotasRequest, version: int, code: ErrorCode, message: str | None
) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
