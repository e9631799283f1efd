"""AlterClientQuotas (key 49), versions 0-1.

Sets and removes quotas of users, client ids, both, their defaults, and addresses (KIP-546, KIP-599, KIP-612). Each
entity succeeds or fails by itself; all that succeed are one batch of the metadata log, of 10,000 records at most
(POLICY_VIOLATION), which is fsynced before the response. They hold from the next request or connection on.
`validate_only` changes nothing. The entities and the parts of each are answered in the order of Kafka's maps.
"""

from __future__ import annotations

from kafka_shim.api.quota_order import entity_hash, order_altered, order_new_values, order_types
from kafka_shim.host_names import addresses_of
from kafka_shim.metadata.after_commit import Rest
from kafka_shim.metadata.client_quotas import IP, decide_in_steps
from kafka_shim.metadata.large_changes import TRIES, check_count, decide, flushed, let_go
from kafka_shim.metadata.prepared_changes import announced_if_memory_suffices
from kafka_shim.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest
from kafka_shim.protocol.messages.alter_client_quotas_response import (
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
)
from kafka_shim.quota.quotas import Quotas, bounds_in_steps
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping
    from typing import Any

    from kafka_shim.broker import Broker
    from kafka_shim.context import Context
    from kafka_shim.errors import ErrorCode, KafkaError
    from kafka_shim.metadata.client_quotas import Alteration, EntityNames
    from kafka_shim.turns import Steps

    Answer = AlterClientQuotasResponse | Coroutine[Any, Any, AlterClientQuotasResponse]

KEY, MIN, MAX = 49, 0, 1
REQUEST, RESPONSE = AlterClientQuotasRequest, AlterClientQuotasResponse


def handle(context: Context, request: AlterClientQuotasRequest) -> Steps[Answer]:
    pairs: list[tuple[int, Alteration]] = []
    named: dict[str, None] = {}
    for entry in request.entries:
        given = {part.entity_type: part.entity_name for part in entry.entity}
        names = {kind: given[kind] for kind in order_types(list(given))}
        values = yield from order_new_values(entry.ops)
        pairs.append((entity_hash(names.items()), (names, values)))
        if name := names.get(IP):
            named[name] = None
        yield
    alterations = yield from order_altered(pairs)
    if named:
        return _resolve_and_alter(context, request, alterations, named)
    return (yield from _alter(context, request, alterations, {}))


async def _resolve_and_alter(
    context: Context, request: AlterClientQuotasRequest, alterations: list[Alteration], named: Iterable[str]
) -> AlterClientQuotasResponse:
    addresses = await addresses_of(named)
    return await context.broker.turns.run(_alter(context, request, alterations, addresses), context.throttle)


def _alter(
    context: Context, request: AlterClientQuotasRequest, alterations: list[Alteration], addresses: Mapping[str, str]
) -> Steps[Answer]:
    broker = context.broker
    metadata = broker.metadata
    results: list[tuple[EntityNames, KafkaError | None]] = []

    def decided() -> Steps[list[Any]]:
        records, results[:] = yield from decide_in_steps(metadata.image, alterations, addresses)
        # Kafka's words for this API
        check_count(len(records), "Request parameters do not satisfy the configured policy.")
        return records

    records, prepared = yield from decide(metadata, decided)
    if records and not request.validate_only:
        rest = Rest(lambda: at_once(_apply(broker, addresses)))
        try:
            metadata.commit(records, prepared)
            yield from _apply(broker, addresses)
        except MemoryError:
            metadata.leave(rest)
            raise
        yield from announced_if_memory_suffices(prepared, context.session)
        yield from let_go(records)
    # Also where nothing is to change: it may be changed in memory, and not on the disk yet.
    is_any_done = not request.validate_only and any(error is None for _, error in results)
    response = AlterClientQuotasResponse()
    for names, error in results:
        response.entries.append(
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()],
                error_code=0 if error is None else error.code,
                error_message=None if error is None else error.message,
            )
        )
        yield
    yield from let_go(alterations)
    yield from let_go(results)
    return flushed(metadata, response) if is_any_done else response


def _apply(broker: Broker, addresses: Mapping[str, str]) -> Steps[None]:
    """Let the stored quotas hold. Whoever changes them meanwhile does the same with what he made of them."""
    image = broker.metadata.image
    quotas = broker.quotas
    if quotas is None:
        if not image.quotas:
            return
        broker.quotas = quotas = Quotas(broker.config, broker.clock)
    quotas.hosts.learn(addresses)
    quotas.hosts.forget_unless(lambda name: ((IP, name),) in image.quotas)
    for _ in range(TRIES):
        offset = image.last_offset
        bounds = yield from bounds_in_steps(image.quotas, quotas.hosts)
        if image.last_offset == offset:
            break
    else:
        bounds = at_once(bounds_in_steps(image.quotas, quotas.hosts))
    quotas.set_bounds(bounds)


def failed(
    request: AlterClientQuotasRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[AlterClientQuotasResponse]:
    """Returns the error for each entity."""
    response = AlterClientQuotasResponse()
    for entry in request.entries:
        answer = EntryData(error_code=code, error_message=message)
        response.entries.append(answer)
        for part in entry.entity:
            answer.entity.append(EntityData(entity_type=part.entity_type, entity_name=part.entity_name))
            yield
        yield
    return response
