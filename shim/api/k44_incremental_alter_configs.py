"""IncrementalAlterConfigs (key 44), versions 0-1.

Sets, deletes, appends to and subtracts from options of topics, brokers, groups and client metrics, and sets levels of
the broker's loggers. Each resource succeeds or fails by itself, as a whole. A duplicate resource is INVALID_REQUEST. A
change is in force when the response is sent. v1 is flexible. `alter.config.policy.class.name` may forbid it:
POLICY_VIOLATION.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from kafka_shim.api.broker_loggers import alter
from kafka_shim.api.partitions import require_alter_configs
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.configs import decide_incremental
from kafka_shim.metadata.image import RESOURCE_BROKER_LOGGER
from kafka_shim.protocol.messages.incremental_alter_configs_request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_shim.protocol.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.context import Context

KEY, MIN, MAX = 44, 0, 1
REQUEST, RESPONSE = IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

# Of which none is changed: what is decided must be written before the options change again.
RESOURCES_PER_TURN = 128


async def handle(context: Context, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    response = IncrementalAlterConfigsResponse()
    times = Counter((one.resource_type, one.resource_name) for one in request.resources)
    records: list[Any] = []
    for number, resource in enumerate(request.resources, 1):
        if not number % RESOURCES_PER_TURN and not records:
            await asyncio.sleep(0)  # nothing is decided yet
        answer = AlterConfigsResourceResponse(
            error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        response.responses.append(answer)
        if times[(resource.resource_type, resource.resource_name)] > 1:
            answer.error_code = ErrorCode.INVALID_REQUEST
            answer.error_message = "Each resource must appear at most once."
            continue
        try:
            require_alter_configs(context, resource.resource_type, resource.resource_name)
            records += _decide(context, resource, request.validate_only)
        except KafkaError as err:
            answer.error_code = err.code
            answer.error_message = err.message
    if records and not request.validate_only:
        context.broker.metadata.alter_configs(records)
        await context.broker.metadata.flushed()
    return response


def _decide(context: Context, resource: AlterConfigsResource, validate_only: bool) -> list[Any]:
    changes = [(one.name, one.config_operation, one.value) for one in resource.configs]
    if resource.resource_type == RESOURCE_BROKER_LOGGER:
        alter(context.node_id, resource.resource_name, changes, validate_only=validate_only)
        return []
    return decide_incremental(
        context.broker.metadata,
        resource.resource_type,
        resource.resource_name,
        changes,
        is_controller=context.listener.is_controller,
    )
