"""Every message at every version, against Kafka's own classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from kafka_shim.cext.messages import EncodeError, WireError, decode, decode_prefix, encode
from kafka_shim.compat.codec_driver import CodecDriver, KafkaRefusalError
from kafka_shim.protocol.message import Message
from kafka_shim.protocol.messages.fetch_request import FetchRequest
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.tests.protocol.kafka_json import from_json, to_json
from kafka_shim.tests.protocol.values import CLASSES, Nulls, Seeded, make, messages, structs_of, systematic, versions

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def driver() -> Iterator[CodecDriver]:
    with CodecDriver() as driver:
        yield driver


def without_records(message: Message, version: int) -> Message:
    """Kafka's JSON shows no records, only that there are some."""
    for struct in structs_of(message, version):
        for row in struct.FIELDS:
            if row[1] == "records" and getattr(struct, row[0]) is not None:
                setattr(struct, row[0], b"")
    return message


def assert_same_as_kafka(driver: CodecDriver, message: Any, version: int) -> None:
    cls = type(message)
    data = encode(message, version)
    from_kafka, again, json, left = driver.ask(cls.__name__, version, data, to_json(message, version))
    assert from_kafka == data
    assert again == data
    assert left == 0
    assert decode(cls, version, from_kafka) == message
    assert from_json(cls, json) == without_records(decode(cls, version, data), version)


def test_every_message_and_version_is_as_kafka_has_it(driver: CodecDriver, capsys: pytest.CaptureFixture[str]) -> None:
    values = pairs = 0
    for cls in CLASSES:
        for version in versions(cls):
            pairs += 1
            for message in systematic(cls, version, seeds=12):
                assert_same_as_kafka(driver, message, version)
                values += 1
    with capsys.disabled():
        print(f"\n{len(CLASSES)} messages, {pairs} versions, {values} values: same bytes as Apache Kafka")
    assert len(CLASSES) == 272
    assert pairs >= 700


@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=messages())
def test_drawn_values_are_as_kafka_has_them(driver: CodecDriver, drawn: tuple[Message, int]) -> None:
    assert_same_as_kafka(driver, *drawn)


def test_unknown_tags_pass_through_both(driver: CodecDriver) -> None:
    seen = 0
    for cls in CLASSES:
        for version in range(max(cls.FLEXIBLE_FROM, cls.MIN_VERSION), cls.MAX_VERSION + 1):
            message = make(cls, version, Seeded(version))
            for struct in structs_of(message, version):
                struct.unknown_tags = {20: b"", 300: b"\0\1\2"}
            data = encode(message, version)
            _, again, _, left = driver.ask(cls.__name__, version, data, None)
            assert again == data
            assert left == 0
            seen += 1
    assert seen > 300


HOSTILE = {
    # FetchRequest v12 has tag 0; tag 1 comes with v15.
    "tag of a later version": (FetchRequest, 12, encode(FetchRequest(), 12)[:-1] + b"\x01\x01\x00"),
    "tag of this version": (FetchRequest, 12, encode(FetchRequest(), 12)[:-1] + b"\x01\x00\x02\x02a"),
    "known tag whose size lies": (FetchRequest, 12, encode(FetchRequest(), 12)[:-1] + b"\x01\x00\x01\x02a"),
    "known tag twice": (FetchRequest, 12, encode(FetchRequest(), 12)[:-1] + b"\x02\x00\x02\x02a\x00\x02\x02b"),
    "known tag behind a higher one": (FetchRequest, 12, encode(FetchRequest(), 12)[:-1] + b"\x02\x09\x00\x00\x02\x02b"),
    "tags that are not there": (FetchRequest, 12, encode(FetchRequest(), 12)[:-1] + b"\x05"),
    "null where none may be": (FetchRequest, 4, encode(FetchRequest(), 4)[:-4] + b"\xff\xff\xff\xff"),
    "count that lies": (FetchRequest, 4, encode(FetchRequest(), 4)[:-4] + b"\x7f\xff\xff\xff"),
    "count below null": (MetadataRequest, 4, b"\xff\xff\xff\xf0\x01"),
    "boolean of two": (MetadataRequest, 4, b"\xff\xff\xff\xff\x02"),
    "varint of five bytes with high bits": (MetadataRequest, 9, b"\x80\x80\x80\x80\x70\x01\x01\x01\x00"),
    "varint without an end": (MetadataRequest, 9, b"\x80\x80\x80\x80\x80\x00\x01\x01\x00"),
    "name below null": (MetadataRequest, 4, b"\x00\x00\x00\x01\xff\xf0\x01"),
    "nothing": (MetadataRequest, 4, b""),
    **{
        f"text {text.hex()}": (MetadataRequest, 4, b"\0\0\0\1" + len(text).to_bytes(2, "big") + text + b"\1")
        for text in (
            b"\xff\xfe",
            b"\xed\xa0\x80z",
            b"\xed\xbf\xbf",
            b"\xed\xa0z",
            b"\xed\xa0\xc3\xa4",
            b"\xed\xa0",
            b"\xed\xa0\xed\xa0\x80",
            b"\xe0\x80\x80",
            b"\xf0\x9f\x92z",
            b"\xf0\x9fz",
            b"\xf4\x90\x80\x80",
            b"\xf8\x88\x80\x80\x80",
        )
    },
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_kafka_refuses_we_refuse_and_nothing_more(driver: CodecDriver, case: str) -> None:
    cls, version, data = HOSTILE[case]
    refused = None
    try:
        _, again, _, _ = driver.ask(cls.__name__, version, data, None)
    except KafkaRefusalError as err:
        refused = err
    if refused:
        with pytest.raises(WireError):
            decode_prefix(cls, version, data)
    else:
        assert encode(decode_prefix(cls, version, data)[0], version) == again


def test_mutated_messages_are_refused_by_both_or_by_none(driver: CodecDriver) -> None:
    agreed = 0
    for cls in CLASSES:
        version = cls.MAX_VERSION
        pick = Seeded(7)._random
        good = encode(make(cls, version, Nulls()), version)
        for _ in range(40 if good else 0):
            data = bytearray(good)
            data[pick.randrange(len(data))] = pick.choice((0, 1, 0x7F, 0x80, 0xFF, pick.randrange(256)))
            refused = None
            try:
                again = encode(decode_prefix(cls, version, bytes(data))[0], version)
            except (WireError, EncodeError) as err:
                again, refused = None, err
            try:
                theirs = driver.ask(cls.__name__, version, bytes(data), None)[1]
            except KafkaRefusalError:
                theirs = None
            assert again == theirs, (cls.__name__, data.hex(), refused)
            agreed += 1
    assert agreed > 5000
