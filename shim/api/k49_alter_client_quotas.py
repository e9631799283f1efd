"""AlterClientQuotas (key 49), versions 0-1.

Sets and removes quotas of users, client ids, both, their defaults, and addresses (KIP-546, KIP-599, KIP-612). Each
entity succeeds or fails by itself; all that succeed are one batch of the metadata log, which is fsynced before the
response. They hold from the next request or connection on. `validate_only` changes nothing.
"""

from __future__ import annotations

import asyncio

from kafka_shim.metadata.client_quotas import IP, decide_alterations
from kafka_shim.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest
from kafka_shim.protocol.messages.alter_client_quotas_response import (
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
)
from kafka_shim.quota.quotas import quotas_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.errors import ErrorCode

KEY, MIN, MAX = 49, 0, 1
REQUEST, RESPONSE = AlterClientQuotasRequest, AlterClientQuotasResponse


async def handle(context: Context, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    broker = context.broker
    image = broker.metadata.image
    alterations = [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            [(operation.key, None if operation.remove else operation.value) for operation in entry.ops],
        )
        for entry in request.entries
    ]
    named = {names[IP] for names, _ in alterations if names.get(IP)}
    resolvable = [name for name in named if name is not None and await _is_resolvable(name)]
    records, results = decide_alterations(image, alterations, resolvable)
    if records and not request.validate_only:
        broker.metadata.commit(records)
        broker.quotas = quotas_of(broker.quotas, broker.config, broker.clock, image.quotas)
        await broker.metadata.flushed()
    entries = [
        EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()],
            error_code=0 if error is None else error.code,
            error_message=None if error is None else error.message,
        )
        for names, error in results
    ]
    return AlterClientQuotasResponse(entries=entries)


async def _is_resolvable(name: str) -> bool:
    """Returns whether this is an address or the name of a host. A thread asks the resolver, which may take seconds."""
    try:
        await asyncio.get_running_loop().getaddrinfo(name, None)
    except (OSError, UnicodeError):
        return False
    return True


def failed(
    request: AlterClientQuotasRequest, version: int, code: ErrorCode, message: str | None
) -> AlterClientQuotasResponse:
    """Returns the error for each entity."""
    entries = [
        EntryData(
            entity=[EntityData(entity_type=part.entity_type, entity_name=part.entity_name) for part in entry.entity],
            error_code=code,
            error_message=message,
        )
        for entry in request.entries
    ]
    return AlterClientQuotasResponse(entries=entries)
