"""AlterConfigs (key 33), versions 0-2: the old form, which replaces all options of a resource.

Options that are not named return to their defaults. Supports topics, brokers, groups and client metrics, but not
loggers. Each resource succeeds or fails by itself. v2 is flexible. `alter.config.policy.class.name` may forbid it:
POLICY_VIOLATION.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from kafka_shim.api.partitions import require_alter_configs
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.configs import decide_replacement
from kafka_shim.protocol.messages.alter_configs_request import AlterConfigsRequest
from kafka_shim.protocol.messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.context import Context

KEY, MIN, MAX = 33, 0, 2
REQUEST, RESPONSE = AlterConfigsRequest, AlterConfigsResponse

# Of which none is changed: what is decided must be written before the options change again.
RESOURCES_PER_TURN = 128


async def handle(context: Context, request: AlterConfigsRequest) -> AlterConfigsResponse:
    response = AlterConfigsResponse()
    metadata = context.broker.metadata
    times = Counter((one.resource_type, one.resource_name) for one in request.resources)
    records: list[Any] = []
    for number, resource in enumerate(request.resources, 1):
        if not number % RESOURCES_PER_TURN and not records:
            await asyncio.sleep(0)  # nothing is decided yet
        kind, name = resource.resource_type, resource.resource_name
        answer = AlterConfigsResourceResponse(error_message=None, resource_type=kind, resource_name=name)
        response.responses.append(answer)
        if times[(kind, name)] > 1:
            answer.error_code = ErrorCode.INVALID_REQUEST
            answer.error_message = "Each resource must appear at most once."
            continue
        try:
            require_alter_configs(context, kind, name)
            options = [(one.name, one.value) for one in resource.configs]
            is_controller = context.listener.is_controller
            records += decide_replacement(metadata, kind, name, options, is_controller=is_controller)
        except KafkaError as err:
            answer.error_code = err.code
            answer.error_message = err.message
    if records and not request.validate_only:
        metadata.alter_configs(records)
        await metadata.flushed()
    return response
