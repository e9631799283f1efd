"""ApiVersions (key 18), versions 0-4.

Returns the version ranges of the list in `shim/api/__init__.py`, or `shim/api/controller/__init__.py`, and the
features: those that this broker supports, and those that the metadata log has finalised, with the log's end as their
epoch (B22, B26). The response to an unknown version has version 0, UNSUPPORTED_VERSION and the row of ApiVersions
itself, so that any client can retry with a known version (KIP-511). v1 throttle time. v3 is flexible and carries the
client's name and version; a name that is not in Kafka's format is INVALID_REQUEST. Below v4 a feature whose lowest
level is 0 is left out of the supported ones, because older clients cannot read it (KAFKA-17492).
"""

from __future__ import annotations

from functools import cache

from kafka_shim.api import APIS, TABLE, TELEMETRY
from kafka_shim.cext.messages import encode_response_frame
from kafka_shim.cext.plain_versions import PlainVersions
from kafka_shim.errors import ErrorCode
from kafka_shim.metadata.features import KRAFT_VERSION
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.protocol.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from kafka_shim.api import Api
    from kafka_shim.broker import Broker
    from kafka_shim.context import Context
    from kafka_shim.session import Listener

KEY, MIN, MAX = 18, 0, 4
REQUEST, RESPONSE = ApiVersionsRequest, ApiVersionsResponse

# The frame of the latest answer of each version, after what it was made from. Brokers of one process share it.
_kept: dict[int, tuple[tuple[Any, ...], bytes]] = {}


def _ranges(apis: Iterable[Api], *, unstable: bool) -> list[ApiVersion]:
    return [
        ApiVersion(
            api_key=api.key,
            min_version=api.advertised_min,
            max_version=api.last_unstable if unstable else api.last,
        )
        for api in apis
    ]


@cache
def _controller_ranges() -> list[ApiVersion]:
    from kafka_shim.api.controller import CONTROLLER_APIS

    return _ranges(CONTROLLER_APIS, unstable=False)


@cache
def _broker_ranges(unstable: bool, telemetry: bool) -> list[ApiVersion]:
    """`unstable`: up to the versions that Kafka 4.3.1 does not release yet. `telemetry`: with its APIs."""
    return _ranges((api for api in APIS if telemetry or api.key not in TELEMETRY), unstable=unstable)


def _ranges_of(broker: Broker, listener: Listener) -> list[ApiVersion]:
    """Telemetry is shown only if there is a receiver for what clients push."""
    if listener.is_controller:
        return _controller_ranges()
    telemetry = broker.client_metrics is not None and bool(broker.client_metrics.receivers)
    return _broker_ranges(broker.config.unstable_api_versions_enable, telemetry)


def handle(context: Context, request: ApiVersionsRequest) -> ApiVersionsResponse:
    version = context.api_version
    if version >= 3:
        name, software = request.client_software_name, request.client_software_version
        if not (is_valid_name(name) and is_valid_name(software)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.session.client_software_name = name
        context.session.client_software_version = software
    if context.session.authenticator is not None:
        context.session.authenticator.versions_answered()
    return _response(context.broker, context.listener, version)


def _response(broker: Broker, listener: Listener, version: int) -> ApiVersionsResponse:
    metadata = broker.metadata
    image = metadata.image
    finalised = dict(image.features)
    if metadata.kraft_version > 0:
        finalised[KRAFT_VERSION] = metadata.kraft_version
    return ApiVersionsResponse(
        api_keys=_ranges_of(broker, listener),
        supported_features=[
            SupportedFeatureKey(name=feature, min_version=lowest, max_version=highest)
            for feature, (lowest, highest) in metadata.supported.items()
            if lowest > 0 or version >= 4
        ],
        finalized_features_epoch=image.last_offset,
        finalized_features=[
            FinalizedFeatureKey(name=feature, max_version_level=level, min_version_level=level)
            for feature, level in finalised.items()
        ],
    )


def _frame_of(broker: Broker, listener: Listener, version: int) -> bytes:
    """Returns the frame of the answer, a new one if the one that is kept was made from anything else."""
    metadata = broker.metadata
    image = metadata.image
    ranges = _ranges_of(broker, listener)
    facts = image.last_offset, metadata.kraft_version, ranges, metadata.supported, image.features
    kept = _kept.get(version)
    if kept is None or kept[0] != facts:
        frame = b"".join(encode_response_frame(0, _response(broker, listener, version), version))
        # The image changes its features in place.
        kept = _kept[version] = (*facts[:-1], dict(image.features)), frame
    return kept[1]


PLAIN = PlainVersions(_frame_of)


def unsupported() -> ApiVersionsResponse:
    """Returns the version 0 response to an unknown version."""
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_own_row()])


def _own_row() -> ApiVersion:
    api = TABLE[KEY]
    return ApiVersion(api_key=KEY, min_version=api.advertised_min, max_version=api.last)


def is_valid_name(name: str) -> bool:
    """Returns whether the name has only letters and digits, and '-' and '.' inside (ApiVersionsRequest.isValid)."""
    inner = name.replace("-", "0").replace(".", "0")
    return name.isascii() and inner.isalnum() and name[0].isalnum() and name[-1].isalnum()
