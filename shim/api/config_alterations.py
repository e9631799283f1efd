"""What AlterConfigs and IncrementalAlterConfigs have in common: who may change which resource, and one commit."""

from __future__ import annotations

from collections import Counter

from kafka_shim.api.partitions import require_alter_configs
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.image import RESOURCE_BROKER_LOGGER
from kafka_shim.metadata.large_changes import check_count, decide, flushed, let_go

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeVar

    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

    Response = TypeVar("Response", bound=Any)


def alter(
    context: Context,
    request: Any,
    response: Response,
    answer_type: Callable[..., Any],
    check_keys: Callable[[Any], None],
    decide_one: Callable[[Any], list[Any]],
    set_levels: Callable[[Any], None] | None = None,
) -> Steps[Response | Coroutine[Any, Any, Response]]:
    """Serve a request of either API: fill `response` with an `answer_type` for each resource, and commit the records of
    those that succeed in one batch. `check_keys` comes before the authorization, as in Kafka's ConfigAdminManager.
    `decide_one` returns the records of a resource; `set_levels` changes a broker's loggers, of which nothing is stored.
    Each may raise a KafkaError, which is the resource's answer.

    Raises KafkaError POLICY_VIOLATION for too many records (`large_changes.check_count`).
    """
    metadata = context.broker.metadata
    times = Counter((one.resource_type, one.resource_name) for one in request.resources)
    accepted = []
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        answer = answer_type(error_message=None, resource_type=kind, resource_name=name)
        response.responses.append(answer)
        yield
        if times[(kind, name)] > 1:
            answer.error_code = ErrorCode.INVALID_REQUEST
            answer.error_message = "Each resource must appear at most once."
            continue
        try:
            check_keys(resource)
            require_alter_configs(context, kind, name)
            if kind == RESOURCE_BROKER_LOGGER and set_levels is not None:
                set_levels(resource)
            else:
                accepted.append((resource, answer))
        except KafkaError as err:
            answer.error_code, answer.error_message = err.code, err.message

    def decided() -> Steps[list[Any]]:
        records: list[Any] = []
        for resource, answer in accepted:
            answer.error_code, answer.error_message = ErrorCode.NONE, None
            try:
                records += decide_one(resource)
            except KafkaError as err:
                answer.error_code, answer.error_message = err.code, err.message
            check_count(len(records))
            yield
        return records

    records, prepared = yield from decide(metadata, decided)
    if request.validate_only or not any(answer.error_code == ErrorCode.NONE for _, answer in accepted):
        return response
    if records:
        yield from metadata.alter_configs_in_steps(records, prepared, context.session)
        yield from let_go(records)
    # Also where nothing is to change: it may be changed in memory, and not on the disk yet.
    return flushed(metadata, response)
