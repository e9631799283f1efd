"""IncrementalAlterConfigs (key 44), versions 0-1.

Sets, deletes, appends to and subtracts from options of topics, brokers, groups and client metrics, and sets levels of
the broker's loggers. Each resource succeeds or fails by itself, as a whole; all that succeed are one batch of the
metadata log, of 10,000 records at most: POLICY_VIOLATION. A duplicate resource is INVALID_REQUEST. A change is in force
when the response is sent. v1 is flexible. `alter.config.policy.class.name` may forbid it: POLICY_VIOLATION.
"""

from __future__ import annotations

from kafka_shim.api import broker_loggers
from kafka_shim.api.config_alterations import alter
from kafka_shim.metadata.configs import DELETE, check_keys, decide_incremental
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
    from collections.abc import Coroutine
    from typing import Any

    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 44, 0, 1
REQUEST, RESPONSE = IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse


async def handle(context: Context, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    # In a task: where a change closes the connection that asks for it, the answer comes first.
    return await context.broker.turns.run(_alter(context, request), context.throttle)


def _alter(
    context: Context, request: IncrementalAlterConfigsRequest
) -> Steps[IncrementalAlterConfigsResponse | Coroutine[Any, Any, IncrementalAlterConfigsResponse]]:
    def check(resource: AlterConfigsResource) -> None:
        check_keys([(one.name, one.value, one.config_operation == DELETE) for one in resource.configs])

    def change(resource: AlterConfigsResource) -> list[Any]:
        kind, name = resource.resource_type, resource.resource_name
        return decide_incremental(
            context.broker.metadata, kind, name, _changes(resource), is_controller=context.listener.is_controller
        )

    def set_levels(resource: AlterConfigsResource) -> None:
        broker_loggers.alter(
            context.node_id, resource.resource_name, _changes(resource), validate_only=request.validate_only
        )

    response = IncrementalAlterConfigsResponse()
    return alter(context, request, response, AlterConfigsResourceResponse, check, change, set_levels)


def _changes(resource: AlterConfigsResource) -> list[tuple[str, int, str | None]]:
    return [(one.name, one.config_operation, one.value) for one in resource.configs]
