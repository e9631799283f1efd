"""What a client is told when the share coordinator refuses (Kafka: SharePartition.fetchPersisterError)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError

# Errors of the share coordinator that pass by themselves.
RETRIABLE = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
# The error code for the client, by that of the share coordinator.
_CLIENT_ERRORS = {
    **dict.fromkeys(RETRIABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


class NotAppliedError(KafkaError):
    """Memory ended: a record may be in the log, and is not in memory, or in part."""


def client_error(error: KafkaError, request: str) -> KafkaError:
    """Returns the error for the client, for that of a "write" or "read" of the state."""
    if isinstance(error, NotAppliedError):  # what a share partition has in memory may be older than what is stored
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message)
    # The beginning is that of Kafka's PersisterStateManager.
    text = f"Error in {request} state RPC. {error.message}"
    return KafkaError(_CLIENT_ERRORS.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR), text)
