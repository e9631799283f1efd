"""DescribeUserScramCredentials (key 50), version 0, of the controller.

Kafka's controller advertises it and has no handler for it: UNKNOWN_SERVER_ERROR. A broker's listener serves it.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from kafka_shim.protocol.messages.describe_user_scram_credentials_response import DescribeUserScramCredentialsResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 50, 0, 0
REQUEST, RESPONSE = DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse


def handle(context: Context, request: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
