"""What Kafka's clients say of error codes to which the broker adds no message (Kafka: Errors)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode
from kafka_shim.wire_client import RequestError

# Java's exception, and its message.
TEXTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
        "UnknownTopicOrPartitionException",
        "This server does not host this topic-partition.",
    ),
    ErrorCode.TOPIC_ALREADY_EXISTS: ("TopicExistsException", "Topic with this name already exists."),
    ErrorCode.GROUP_ID_NOT_FOUND: ("GroupIdNotFoundException", "The group id does not exist."),
    ErrorCode.NON_EMPTY_GROUP: ("GroupNotEmptyException", "The group is not empty."),
    ErrorCode.INVALID_GROUP_ID: ("InvalidGroupIdException", "The group id is invalid."),
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        "GroupSubscribedToTopicException",
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it.",
    ),
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: ("TopicAuthorizationException", "Topic authorization failed."),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: ("GroupAuthorizationException", "Group authorization failed."),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ("ClusterAuthorizationException", "Cluster authorization failed."),
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: (
        "TransactionalIdNotFoundException",
        "The transactionalId could not be found",
    ),
    ErrorCode.SECURITY_DISABLED: ("SecurityDisabledException", "Security features are disabled."),
    ErrorCode.UNKNOWN_MEMBER_ID: ("UnknownMemberIdException", "The coordinator is not aware of this member."),
    ErrorCode.INVALID_TOPIC_EXCEPTION: (
        "InvalidTopicException",
        "The request attempted to perform an operation on an invalid topic.",
    ),
    ErrorCode.OFFSET_OUT_OF_RANGE: (
        "OffsetOutOfRangeException",
        "The requested offset is not within the range of offsets maintained by the server.",
    ),
    ErrorCode.POLICY_VIOLATION: (
        "PolicyViolationException",
        "Request parameters do not satisfy the configured policy.",
    ),
    ErrorCode.KAFKA_STORAGE_ERROR: (
        "KafkaStorageException",
        "Disk error when trying to access log file on the disk.",
    ),
}


def message_of(error: BaseException) -> str:
    """The message that Kafka's exception for `error` has."""
    if not isinstance(error, RequestError):
        return str(error)
    return error.reason or TEXTS.get(error.code, ("", error.code.name))[1]


def exception_of(error: BaseException) -> str:
    """`error` as Java prints the exception: its class and message."""
    if not isinstance(error, RequestError):
        return str(error)
    return f"{class_of(error.code)}: {message_of(error)}"


def class_of(code: int) -> str:
    """The name of Java's exception for an error code."""
    name = TEXTS.get(ErrorCode(code), ("ApiException", ""))[0]
    return f"org.apache.kafka.common.errors.{name}"
