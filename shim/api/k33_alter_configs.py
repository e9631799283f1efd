"""AlterConfigs (key 33), versions 0-2: the old form, which replaces all options of a resource.

Options that are not named return to their defaults. Supports topics, brokers, groups and client metrics, but not
loggers. Each resource succeeds or fails by itself; all that succeed are one batch of the metadata log, of 10,000
records at most: POLICY_VIOLATION. v2 is flexible. `alter.config.policy.class.name` may forbid it: POLICY_VIOLATION.
"""

from __future__ import annotations

from kafka_shim.api.config_alterations import alter
from kafka_shim.metadata.configs import check_keys, decide_replacement
from kafka_shim.protocol.messages.alter_configs_request import AlterConfigsRequest, AlterConfigsResource
from kafka_shim.protocol.messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 33, 0, 2
REQUEST, RESPONSE = AlterConfigsRequest, AlterConfigsResponse


async def handle(context: Context, request: AlterConfigsRequest) -> AlterConfigsResponse:
    # In a task: where a change closes the connection that asks for it, the answer comes first.
    return await context.broker.turns.run(_alter(context, request), context.throttle)


def _alter(
    context: Context, request: AlterConfigsRequest
) -> Steps[AlterConfigsResponse | Coroutine[Any, Any, AlterConfigsResponse]]:
    def check(resource: AlterConfigsResource) -> None:
        check_keys([(one.name, one.value, False) for one in resource.configs])

    def replace(resource: AlterConfigsResource) -> list[Any]:
        options = [(one.name, one.value) for one in resource.configs]
        kind, name = resource.resource_type, resource.resource_name
        return decide_replacement(
            context.broker.metadata, kind, name, options, is_controller=context.listener.is_controller
        )

    return alter(context, request, AlterConfigsResponse(), AlterConfigsResourceResponse, check, replace)
