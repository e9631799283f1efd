"""Converts frames to typed messages and back."""

from __future__ import annotations

from typing import Any, NamedTuple

from kafka_shim.cext.messages import decode_prefix, encode
from kafka_shim.cext.wire import WireError, Writer
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.protocol.headers import (
    parse_request_header,
    parse_response_header,
    request_class,
    request_header_version,
    response_class,
    response_header_version,
)
from kafka_shim.protocol.message import Message

PRODUCE, API_VERSIONS = 0, 18


class Request(NamedTuple):
    """A parsed request. `message` is None if the body could not be parsed; the frame can still be forwarded."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    message: Any

    @property
    def name(self) -> str:
        row = API_KEYS.get(self.api_key)
        return f"{row[0] if row else f'api {self.api_key}'} v{self.version}"

    @property
    def is_answered(self) -> bool:
        """Whether the broker sends a response. Only a Produce request with acks=0 has none."""
        return not (self.api_key == PRODUCE and self.message is not None and self.message.acks == 0)


def parse_request(frame: bytes) -> Request:
    """Parses a request frame without its length prefix. Raises WireError if the header cannot be parsed."""
    api_key, version, correlation_id, client_id, start = parse_request_header(frame)
    try:
        message, _ = decode_prefix(request_class(api_key), version, frame, start)
    except (WireError, KeyError, ValueError):
        message = None
    return Request(api_key, version, correlation_id, client_id, message)


def parse_response(request: Request, frame: bytes) -> Any:
    """Parses the response to `request`. Returns None if it cannot be parsed."""
    version = request.version
    try:
        _, start = parse_response_header(request.api_key, version, frame)
        try:
            return decode_prefix(response_class(request.api_key), version, frame, start)[0]
        except (WireError, ValueError):
            if request.api_key != API_VERSIONS:
                raise
            # A broker that does not support the requested ApiVersions version responds with version 0 (KIP-511).
            return decode_prefix(response_class(request.api_key), 0, frame, start)[0]
    except (WireError, KeyError, ValueError):
        return None


def build_request(request: Request) -> bytes:
    """Returns the frame of a request, for requests whose message was changed. The frame has no length prefix."""
    header = Writer()
    header.int16(request.api_key)
    header.int16(request.version)
    header.int32(request.correlation_id)
    header.nullable_string(request.client_id)
    if request_header_version(request.api_key, request.version) == 2:
        header.uvarint(0)
    return bytes(header.finish() + encode(request.message, request.version))


def build_response(request: Request, message: Message) -> bytes:
    """Returns the frame of a response to `request`, without a length prefix."""
    tags = b"\0" if response_header_version(request.api_key, request.version) == 1 else b""
    return request.correlation_id.to_bytes(4, "big", signed=True) + tags + encode(message, request.version)


def error_codes(value: Any) -> list[str]:
    """Returns the names of all non-zero error codes in a message, in order."""
    found: list[str] = []
    if isinstance(value, Message):
        for row in value.FIELDS:
            inner = getattr(value, row[0])
            if "error_code" in row[0] and isinstance(inner, int):
                if inner:
                    found.append(ErrorCode(inner).name)
            elif isinstance(inner, Message | list):
                found += error_codes(inner)
    elif isinstance(value, list):
        for each in value:
            found += error_codes(each)
    return found
