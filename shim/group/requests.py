"""Checks of requests that need no group, and error responses."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.join_group_response import JoinGroupResponse
from kafka_shim.protocol.messages.sync_group_response import SyncGroupResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.config import BrokerConfig
    from kafka_shim.protocol.messages.join_group_request import JoinGroupRequest
    from kafka_shim.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
    from kafka_shim.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse


def check_join(request: JoinGroupRequest, config: BrokerConfig) -> JoinGroupResponse | None:
    """Returns the error response to a JoinGroup that no group could accept, or None."""
    timeout_ms = request.session_timeout_ms
    has_timeout = config.group_min_session_timeout_ms <= timeout_ms <= config.group_max_session_timeout_ms
    if request.group_id and has_timeout:
        return None
    code = ErrorCode.INVALID_SESSION_TIMEOUT if request.group_id else ErrorCode.INVALID_GROUP_ID
    return JoinGroupResponse(error_code=code, member_id=request.member_id, protocol_name=None)


def join_failure(code: ErrorCode) -> JoinGroupResponse:
    """Returns the error response of JoinGroup."""
    return JoinGroupResponse(error_code=code, protocol_name=None)


def sync_failure(code: ErrorCode) -> SyncGroupResponse:
    """Returns the error response of SyncGroup."""
    return SyncGroupResponse(error_code=code)


def txn_commit_failure(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """Returns the error response of TxnOffsetCommit, with the error in each partition."""
    from kafka_shim.protocol.messages.txn_offset_commit_response import (
        TxnOffsetCommitResponse,
        TxnOffsetCommitResponsePartition,
        TxnOffsetCommitResponseTopic,
    )

    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
