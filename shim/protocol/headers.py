"""Request and response headers (KIP-511, KIP-482).

A request header is version 2, with tagged fields, from the request's first flexible version on, and version 1 before.
Its client id keeps a two-byte length in both. A response header is version 1 from the same version on, and version 0
before. ApiVersions responses always have header version 0.
"""

from __future__ import annotations

from importlib import import_module

from kafka_shim.cext.headers import RequestHeaderParser
from kafka_shim.cext.messages import encode, encode_response_frame
from kafka_shim.cext.wire import Reader, Writer
from kafka_shim.protocol.api_keys import API_KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.protocol.message import Message

API_VERSIONS = 18
FLEXIBLE_FROM = {key: row[3] for key, row in API_KEYS.items()}

# (buffer, start=0, end=None) -> (api key, api version, correlation id, client id, position of the body). Raises
# kafka_shim.cext.wire.WireError for a truncated header and for an unknown api key.
parse_request_header = RequestHeaderParser(FLEXIBLE_FROM).parse

__all__ = [
    "FLEXIBLE_FROM",
    "encode_request_frame",
    "encode_response_frame",
    "parse_request_header",
    "parse_response_header",
    "request_class",
    "request_header_version",
    "response_class",
    "response_header_version",
]


def request_class(api_key: int) -> type[Message]:
    """Returns the class of a request; imports its module on first use. Raises KeyError for an unknown key."""
    name, stem = API_KEYS[api_key][0], API_KEYS[api_key][6]
    found: type[Message] = getattr(import_module(f"kafka_shim.protocol.messages.{stem}_request"), f"{name}Request")
    return found


def response_class(api_key: int) -> type[Message]:
    """Returns the class of a response; imports its module on first use. Raises KeyError for an unknown key."""
    name, stem = API_KEYS[api_key][0], API_KEYS[api_key][6]
    found: type[Message] = getattr(import_module(f"kafka_shim.protocol.messages.{stem}_response"), f"{name}Response")
    return found


def request_header_version(api_key: int, api_version: int) -> int:
    """Returns the request header version, 1 or 2. Raises KeyError for an unknown key."""
    return 2 if api_version >= FLEXIBLE_FROM[api_key] else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """Returns the response header version, 0 or 1. Raises KeyError for an unknown key."""
    return 1 if api_version >= FLEXIBLE_FROM[api_key] and api_key != API_VERSIONS else 0


def parse_response_header(
    api_key: int, api_version: int, buffer: bytes | bytearray | memoryview, start: int = 0
) -> tuple[int, int]:
    """Parses a response header as a client does. Returns (correlation id, position of the body)."""
    reader = Reader(buffer, start)
    correlation_id = reader.int32()
    if response_header_version(api_key, api_version) == 1:
        reader.tags()
    return correlation_id, reader.position


def encode_request_frame(message: Message, version: int, correlation_id: int, client_id: str | None = "") -> bytes:
    """Returns a complete request as a client sends it: four-byte length, header, body."""
    header = Writer()
    header.int16(message.API_KEY)
    header.int16(version)
    header.int32(correlation_id)
    header.nullable_string(client_id)
    if request_header_version(message.API_KEY, version) == 2:
        header.uvarint(0)
    frame = header.finish() + encode(message, version)
    return len(frame).to_bytes(4, "big") + frame
