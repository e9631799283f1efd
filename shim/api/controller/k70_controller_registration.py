"""ControllerRegistration (key 70), version 0, of the controller.

Records the endpoints and features of a controller (KIP-919). Below metadata.version 15: UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.features import CONTROLLER_REGISTRATION, METADATA_VERSION
from kafka_shim.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from kafka_shim.protocol.messages.controller_registration_response import ControllerRegistrationResponse
from kafka_shim.protocol.records.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 70, 0, 0
REQUEST, RESPONSE = ControllerRegistrationRequest, ControllerRegistrationResponse


async def handle(context: Context, request: ControllerRegistrationRequest) -> ControllerRegistrationResponse:
    metadata = context.broker.metadata
    if metadata.image.features.get(METADATA_VERSION, 0) < CONTROLLER_REGISTRATION:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    if request.controller_id != context.node_id:
        raise KafkaError(
            ErrorCode.INVALID_REGISTRATION,
            f"controller {request.controller_id} cannot join: node {context.node_id} is the only controller here",
        )
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            ControllerEndpoint(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
            for one in request.listeners
        ],
        features=[
            ControllerFeature(
                name=one.name,
                min_supported_version=one.min_supported_version,
                max_supported_version=one.max_supported_version,
            )
            for one in request.features
        ],
    )
    metadata.commit([record])
    await metadata.flushed()
    return ControllerRegistrationResponse()
