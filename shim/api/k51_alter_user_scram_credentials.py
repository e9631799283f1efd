"""AlterUserScramCredentials (key 51), version 0.

Sets and deletes SCRAM credentials. The request has salted passwords; the metadata log gets the two keys made of them.
Each user succeeds or fails by itself; a user that occurs twice is DUPLICATE_RESOURCE. A change is in force when the
response is sent: for the next authentication. With `kafka.shim.disconnect.changed.users` it ends the users' sessions.
"""

from __future__ import annotations

import asyncio

from kafka_shim.metadata.features import METADATA_VERSION, SCRAM_RECORDS
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
    from kafka_shim.context import Context
    from kafka_shim.errors import ErrorCode

KEY, MIN, MAX = 51, 0, 0
REQUEST, RESPONSE = AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse


async def handle(
    context: Context, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse | Outcome[AlterUserScramCredentialsResponse]:
    metadata = context.broker.metadata
    is_supported = metadata.feature(METADATA_VERSION) >= SCRAM_RECORDS
    results, records = decide_alteration(metadata.image.scram, request, is_supported=is_supported)
    if records:
        metadata.commit(records)
        await metadata.flushed()
    response = AlterUserScramCredentialsResponse(results=results)
    disconnect = context.broker.disconnect
    if disconnect is None or not records:
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
) -> AlterUserScramCredentialsResponse:
    users = dict.fromkeys([one.name for one in request.deletions] + [one.name for one in request.upsertions])
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message) for user in users]
    )
