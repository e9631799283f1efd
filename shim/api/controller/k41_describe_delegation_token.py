"""DescribeDelegationToken (key 41), versions 1-3, of the controller.

Kafka's controller advertises it and has no handler for it: UNKNOWN_SERVER_ERROR. A broker's listener serves it.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from kafka_shim.protocol.messages.describe_delegation_token_response import DescribeDelegationTokenResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 41, 1, 3
REQUEST, RESPONSE = DescribeDelegationTokenRequest, DescribeDelegationTokenResponse


def handle(context: Context, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
