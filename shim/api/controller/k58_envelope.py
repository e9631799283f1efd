"""Envelope (key 58), version 0, of the controller: a broker forwards a client's request with the client's name
(KIP-590).

The request inside is served as if the client had sent it from its own address, and its response, with its header, is
the `response_data`. Only what Kafka's brokers forward may be inside: INVALID_REQUEST. A principal that cannot be read
is PRINCIPAL_DESERIALIZATION_FAILURE, a request that cannot be read UNSUPPORTED_VERSION.
"""

from __future__ import annotations

import ipaddress
from types import GeneratorType

from kafka_shim.api.failures import failure
from kafka_shim.authorization import require_on_cluster
from kafka_shim.cext.headers import RequestHeaderParser
from kafka_shim.cext.messages import decode, encode_response_frame
from kafka_shim.context import Context
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.java_address import java_address
from kafka_shim.outcome import Outcome, run_follow_up, wait_for
from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.protocol.messages.envelope_request import EnvelopeRequest
from kafka_shim.protocol.messages.envelope_response import EnvelopeResponse
from kafka_shim.protocol.records.default_principal_data import DefaultPrincipalData
from kafka_shim.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.api import Api

KEY, MIN, MAX = 58, 0, 0
REQUEST, RESPONSE = EnvelopeRequest, EnvelopeResponse

# ApiKeys.forwardable
FORWARDABLE = frozenset({19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 67, 80, 81})

_parse_header = RequestHeaderParser({key: row[3] for key, row in API_KEYS.items()}).parse


async def handle(context: Context, request: EnvelopeRequest) -> EnvelopeResponse:
    from kafka_shim.api.controller import CONTROLLER_TABLE

    session = _session(context, request)
    frame = bytes(request.request_data)
    try:
        key, version, correlation_id, client_id, at = _parse_header(memoryview(frame))
    except ValueError as error:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Failed to parse request header from envelope") from error
    api = CONTROLLER_TABLE.get(key)
    if api is None or key not in FORWARDABLE:
        name = API_KEYS[key][0]
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"API {name} is not enabled or is not eligible for forwarding")
    if not api.is_loaded:
        api.load()
    if not api.first <= version <= api.last:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{api.name} version {version} is not served")
    try:
        inner = decode(api.request, version, frame, at)
    except ValueError as error:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Failed to parse forwarded request") from error
    forwarded = Context(context.broker, session, key, version, correlation_id, client_id, context.received_ms)
    response = await _serve(forwarded, api, inner)
    parts = encode_response_frame(correlation_id, response, version)
    return EnvelopeResponse(response_data=b"".join(bytes(part) for part in parts)[4:])


def _session(context: Context, request: EnvelopeRequest) -> Session:
    """Returns a session in the client's name, at the client's address."""
    data = bytes(request.request_principal or b"")
    try:
        principal = decode(DefaultPrincipalData, int.from_bytes(data[:2]), data, 2)
    except ValueError as error:
        raise KafkaError(
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, "Failed to deserialize client principal from envelope"
        ) from error
    try:
        address = ipaddress.ip_address(bytes(request.client_host_address))
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Failed to parse client address from envelope") from error
    own = context.session
    client = java_address(str(getattr(address, "ipv4_mapped", None) or address))
    session = Session(own.listener, (client, 0), (own.local_host, own.local_port))
    session.principal = f"{principal.type}:{principal.name}"
    return session


async def _serve(context: Context, api: Api, request: Any) -> Any:
    try:
        if api.cluster_operations:
            require_on_cluster(context, *api.cluster_operations)
        response = api.handle(context, request)
        if type(response) is GeneratorType:
            response = context.broker.turns.finish(response, None)
        while not isinstance(response, (api.response, Outcome)):
            response = await response
        if isinstance(response, Outcome):
            run_follow_up(response.follow_up, context.broker.metrics)  # before others are served during the wait
            await wait_for(response.flushes)
            response = response.response
    except KafkaError as error:
        return failure(api, context.api_version, request, error.code, error.message)
    return response
