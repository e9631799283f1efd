from __future__ import annotations

import pytest

from kafka_shim.cext.headers import RequestHeaderParser
from kafka_shim.cext.wire import WireError


def test_the_header_of_a_request_in_one_call() -> None:
    parse = RequestHeaderParser({3: 9}).parse
    assert parse(b"..\0\3\0\1\0\0\0\5\0\2ab!", 2) == (3, 1, 5, "ab", 14)
    assert parse(b"\0\3\0\x09\0\0\0\5\xff\xff\1\1\1z!") == (3, 9, 5, "", 14)
    with pytest.raises(WireError, match="api key"):
        parse(b"\0\4\0\1\0\0\0\5\0\0")
    with pytest.raises(WireError):
        parse(b"\0\3\0\x09\0\0\0\5\xff\xff\1\1\2z")
    with pytest.raises(ValueError, match="not inside"):
        parse(b"", 1)
