from __future__ import annotations

import pytest

from kafka_shim.cext.messages import WireError, decode, encode
from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.protocol.headers import (
    FLEXIBLE_FROM,
    encode_request_frame,
    encode_response_frame,
    parse_request_header,
    parse_response_header,
    request_class,
    request_header_version,
    response_class,
    response_header_version,
)
from kafka_shim.protocol.message import NEVER
from kafka_shim.protocol.messages.request_header import RequestHeader
from kafka_shim.protocol.messages.response_header import ResponseHeader


@pytest.mark.parametrize("key", API_KEYS)
def test_the_headers_of_every_request_and_response(key: int) -> None:
    request, response = request_class(key), response_class(key)
    assert request.API_KEY == response.API_KEY == key
    assert API_KEYS[key][1:4] == (request.MIN_VERSION, request.MAX_VERSION, request.FLEXIBLE_FROM)
    for version in range(request.MIN_VERSION, request.MAX_VERSION + 1):
        frame = encode_request_frame(request(), version, 77, "me")
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        *header, body = parse_request_header(frame, 4)
        assert header == [key, version, 77, "me"]
        assert decode(request, version, frame, body) == request()
        table = decode(RequestHeader, request_header_version(key, version), frame, 4, body)
        assert (table.request_api_key, table.correlation_id, table.client_id) == (key, 77, "me")

        answer = b"".join(encode_response_frame(78, response(), version))
        assert int.from_bytes(answer[:4], "big") == len(answer) - 4
        correlation_id, body = parse_response_header(key, version, answer, 4)
        assert correlation_id == 78
        header_version = response_header_version(key, version)
        assert decode(ResponseHeader, header_version, answer, 4, body) == ResponseHeader(correlation_id=78)
        assert answer[body:] == encode(response(), version)


def test_api_versions_is_answered_in_the_first_header_whatever_its_version() -> None:
    assert {response_header_version(18, version) for version in range(5)} == {0}
    assert request_header_version(18, 3) == 2


def test_a_version_from_the_future_has_the_header_of_the_last() -> None:
    """A client may ask for ApiVersions in a version this broker has not seen; its header must still be read."""
    frame = b"\x00\x12\x00\x63\x00\x00\x00\x07\x00\x02me\x00rest"
    assert parse_request_header(frame) == (18, 99, 7, "me", 13)


def test_a_null_client_id_is_an_empty_one() -> None:
    assert parse_request_header(b"\x00\x12\x00\x00\x00\x00\x00\x07\xff\xff") == (18, 0, 7, "", 10)


def test_tags_of_a_header_are_skipped() -> None:
    frame = b"\x00\x12\x00\x03\x00\x00\x00\x07\xff\xff\x02\x00\x03abc\x05\x00body"
    assert parse_request_header(frame) == (18, 3, 7, "", 18)


@pytest.mark.parametrize("key", [-1, 4, 200, 255, 256, 32767])
def test_an_unknown_api_key_is_refused(key: int) -> None:
    with pytest.raises(WireError, match="api key"):
        parse_request_header((key & 0xFFFF).to_bytes(2, "big") + bytes(20))


def test_a_header_that_is_cut_short_is_refused() -> None:
    frame = b"\x00\x12\x00\x03\x00\x00\x00\x07\x00\x02me\x01\x05\x02ab"
    assert parse_request_header(frame)[4] == len(frame)
    for end in range(len(frame)):
        with pytest.raises(WireError):
            parse_request_header(frame, 0, end)


def test_flexible_versions_are_known_for_every_key() -> None:
    assert set(FLEXIBLE_FROM) == set(API_KEYS)
    assert FLEXIBLE_FROM[17] == NEVER
    assert FLEXIBLE_FROM[0] == 9
