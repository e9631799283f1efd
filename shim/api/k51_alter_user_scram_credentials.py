"""AlterUserScramCredentials (key 51), version 0.

Sets and deletes SCRAM credentials. The request has salted passwords; the metadata log gets the two keys made of them.
Each user succeeds or fails by itself; a user that occurs twice is DUPLICATE_RESOURCE. A change is in force when the
response is sent: for the next authentication. With `kafka.shim.disconnect.changed.users` it ends the users' sessions.
"""

from __future__ import annotations

import asyncio

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.features import METADATA_VERSION, SCRAM_RECORDS
from kafka_shim.metadata.large_changes import MAX_RECORDS, decide
from kafka_shim.metadata.prepared_changes import announced_if_memory_suffices
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from kafka_shim.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kafka_shim.security.sasl.scram import NAME_OF
from kafka_shim.security.scram_credentials import decide_alteration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

    Committed = AlterUserScramCredentialsResponse | Outcome[AlterUserScramCredentialsResponse]
    Answer = AlterUserScramCredentialsResponse | Coroutine[Any, Any, Committed]

KEY, MIN, MAX = 51, 0, 0
REQUEST, RESPONSE = AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse


def handle(context: Context, request: AlterUserScramCredentialsRequest) -> Steps[Answer]:
    metadata = context.broker.metadata
    results: list[AlterUserScramCredentialsResult] = []

    def decided() -> Steps[list[Any]]:
        is_supported = metadata.feature(METADATA_VERSION) >= SCRAM_RECORDS
        results[:], records = yield from decide_alteration(metadata.image.scram, request, is_supported=is_supported)
        if len(records) > MAX_RECORDS:
            # Kafka gives no text: its controller takes so large a batch for a bug of its own.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        return records

    records, prepared = yield from decide(metadata, decided)
    response = AlterUserScramCredentialsResponse(results=results)
    if not records:
        return response
    metadata.commit(records, prepared)
    yield from announced_if_memory_suffices(prepared, context.session)
    return _committed(context, response, records)


async def _committed(context: Context, response: AlterUserScramCredentialsResponse, records: list[Any]) -> Committed:
    await context.broker.metadata.flushed()
    disconnect = context.broker.disconnect
    if disconnect is None:
        return response
    changed = {(record.mechanism, record.name) for record in records}

    def follow_up() -> None:
        # After the response, which may be for one of these users.
        for mechanism in {code for code, _ in changed}:
            users = {name for code, name in changed if code == mechanism}
            asyncio.get_running_loop().call_soon(disconnect, NAME_OF[mechanism], users)

    return Outcome(response, follow_up=follow_up)


def failed(
    request: AlterUserScramCredentialsRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[AlterUserScramCredentialsResponse]:
    users = dict.fromkeys([one.name for one in request.deletions] + [one.name for one in request.upsertions])
    response = AlterUserScramCredentialsResponse()
    for user in users:
        response.results.append(AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message))
        yield
    return response
