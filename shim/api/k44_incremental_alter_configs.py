"""IncrementalAlterConfigs (key 44), versions 0-1.

Sets, deletes, appends to and subtracts from options of topics, brokers, groups and client metrics, and sets levels of
the broker's loggers. Each resource succeeds or fails by itself, as a whole; all that succeed are one batch of the
metadata log, of 10,000 records at most: POLICY_VIOLATION. A duplicate resource is INVALID_REQUEST. A change is in force
when the response is sent. v1 is flexible. `alter.config.policy.class.name` may forbid it: POLICY_VIOLATION.
"""

from __future__ import annotations

from collections import Counter

from kafka_shim.api.broker_loggers import alter
from kafka_shim.api.partitions import require_alter_configs
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.configs import decide_incremental
from kafka_shim.metadata.image import RESOURCE_BROKER_LOGGER
from kafka_shim.metadata.large_changes import check_count, decide, flushed
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
    response = IncrementalAlterConfigsResponse()
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
                if kind == RESOURCE_BROKER_LOGGER:
                    alter(context.node_id, name, _changes(resource), validate_only=request.validate_only)
            except KafkaError as err:
                answer.error_code, answer.error_message = err.code, err.message
            else:
                if kind != RESOURCE_BROKER_LOGGER:
                    rest.append((resource, answer))
        yield

    def decided() -> Steps[list[Any]]:
        records: list[Any] = []
        for resource, answer in rest:
            answer.error_code, answer.error_message = ErrorCode.NONE, None
            kind, name = resource.resource_type, resource.resource_name
            try:
                records += decide_incremental(metadata, kind, name, _changes(resource), is_controller=is_controller)
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


def _changes(resource: AlterConfigsResource) -> list[tuple[str, int, str | None]]:
    return [(one.name, one.config_operation, one.value) for one in resource.configs]
