"""Changes of the metadata by one request with very many entries: decided and encoded in turns, committed in one piece.

Kafka's controller decides a request in one event. Here others may change the metadata between two turns; what was
decided before is then decided again.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.replay_topics import ReplayError
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from kafka_shim.metadata.prepared_changes import PreparedChange
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.turns import Steps

    Response = TypeVar("Response")

# QuorumController.MAX_RECORDS_PER_USER_OP
MAX_RECORDS = 10_000
TOO_MANY = "Unable to perform excessively large batch operation."
# How often a decision is made in turns. Where others change the metadata all the time, the next is made in one.
TRIES = 3
RECORDS_PER_STEP = 64


def check_count(records: int, reason: str = TOO_MANY) -> None:
    """Raises KafkaError POLICY_VIOLATION if there are more records than one request may store, as in Kafka."""
    if records > MAX_RECORDS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, reason)


async def flushed(metadata: MetadataStore, response: Response) -> Response:
    """Returns the response once everything committed is on the disk."""
    await metadata.flushed()
    return response


def decide(metadata: MetadataStore, decided: Callable[[], Steps[list[Any]]]) -> Steps[tuple[list[Any], PreparedChange]]:
    """Returns the records of `decided`, and what `MetadataStore.commit` needs of them. Both hold until the next turn:
    who calls commits them at once. `decided` is called again after a change of the metadata by others, and must change
    nothing itself."""
    for _ in range(TRIES):
        offset = metadata.image.last_offset
        records = yield from decided()
        try:
            prepared = yield from metadata.prepare(records)
        except ReplayError:
            if metadata.image.last_offset == offset:
                raise
            continue  # the metadata refuses what was decided before others changed it: a name that is taken now
        if metadata.image.last_offset == offset:
            return records, prepared
    records = at_once(decided())
    return records, at_once(metadata.prepare(records))


def let_go(records: list[Any]) -> Steps[None]:
    """Empty a list of committed records: to free thousands of them takes its time, too."""
    while records:
        del records[-RECORDS_PER_STEP:]
        yield
