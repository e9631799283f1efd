"""AlterConfigs (key 33), versions 0-2: the old form, which replaces all options of a resource.

Options that are not named return to their defaults. Supports topics, brokers, groups and client metrics, but not
loggers. Each resource succeeds or fails by itself; all that succeed are one batch of the metadata log, of 10,000
records at most: POLICY_VIOLATION. v2 is flexible. `alter.config.policy.class.name` may forbid it: POLICY_VIOLATION.
"""

from __future__ import annotations

from collections import Counter

from kafka_shim.api.partitions import require_alter_configs
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.configs import decide_replacement
from kafka_shim.metadata.large_changes import check_count, decide, flushed
from kafka_shim.protocol.messages.alter_configs_request import AlterConfigsRequest
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
    response = AlterConfigsResponse()
    metadata = context.broker.metadata
    is_controller = context.listener.is_controller
    times = Counter((one.resource_type, one.resource_name) for one in request.resources)
    rest = []
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        answer = AlterConfigsResourceResponse(error_message=None, resource_type=kind, resource_name=name)
        response.responses.append(answer)
        if times[(kind, name)] > 1:
            answer.error_code = ErrorCode.INVALID_REQUEST
            answer.error_message = "Each resource must appear at most once."
        else:
            try:
                require_alter_configs(context, kind, name)
            except KafkaError as err:
                answer.error_code, answer.error_message = err.code, err.message
            else:
                rest.append((resource, answer))
        yield

    def decided() -> Steps[list[Any]]:
        records: list[Any] = []
        for resource, answer in rest:
            answer.error_code, answer.error_message = ErrorCode.NONE, None
            options = [(one.name, one.value) for one in resource.configs]
            kind, name = resource.resource_type, resource.resource_name
            try:
                records += decide_replacement(metadata, kind, name, options, is_controller=is_controller)
            except KafkaError as err:
                answer.error_code, answer.error_message = err.code, err.message
            check_count(records)
            yield
        return records

    records, values = yield from decide(metadata, decided)
    if not records or request.validate_only:
        return response
    yield from metadata.alter_configs_in_steps(records, values)
    return flushed(metadata, response)
