"""Every message at every version, through our codec alone."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings

from kafka_shim.cext.messages import WireError, decode, decode_prefix, encode, encode_parts
from kafka_shim.protocol.message import Message
from kafka_shim.tests.protocol.values import CLASSES, Highest, Nulls, make, messages, structs_of, systematic, versions


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_values_come_back_as_they_were(cls: type[Message]) -> None:
    for version in versions(cls):
        for message in systematic(cls, version, seeds=2):
            data = encode(message, version)
            assert decode(cls, version, data) == message
            assert b"".join(encode_parts(message, version, b"head")) == b"head" + data


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(messages())
def test_drawn_values_come_back_as_they_were(drawn: tuple[Message, int]) -> None:
    message, version = drawn
    data = encode(message, version)
    assert decode(type(message), version, data) == message


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_message_that_is_cut_short_is_refused(cls: type[Message]) -> None:
    pick = random.Random(1)
    for version in versions(cls):
        data = encode(make(cls, version, Nulls()), version)
        # Every end of a small message, and some of a large one.
        ends = range(len(data)) if len(data) < 200 else sorted(pick.sample(range(len(data)), 100))
        for end in ends:
            with pytest.raises(WireError):
                decode(cls, version, data, 0, end)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_bytes_behind_a_message_are_refused_or_left_alone(cls: type[Message]) -> None:
    version = cls.MAX_VERSION
    message = make(cls, version, Highest())
    data = encode(message, version)
    with pytest.raises(WireError, match="after the end"):
        decode(cls, version, data + b"\0")
    assert decode_prefix(cls, version, b"abc" + data + b"\0", 3) == (message, 3 + len(data))


def test_unknown_tags_are_kept_in_every_struct_of_flexible_versions() -> None:
    seen = 0
    for cls in CLASSES:
        for version in range(max(cls.FLEXIBLE_FROM, cls.MIN_VERSION), cls.MAX_VERSION + 1):
            message = make(cls, version, Highest())
            for struct in structs_of(message, version):
                struct.unknown_tags = {10_001: b"", 10_000: b"x" * 200}
                seen += 1
            data = encode(message, version)
            assert decode(cls, version, data) == message
    assert seen > 1000
