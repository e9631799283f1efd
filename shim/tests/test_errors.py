from __future__ import annotations

import pytest

from kafka_shim.errors import ErrorCode, KafkaError


def test_codes_are_dense_from_minus_one_to_the_last_of_kafka_4_3_1():
    assert sorted(ErrorCode) == list(range(-1, 134))


def test_a_code_of_a_newer_kafka_is_named_by_its_number():
    code = ErrorCode(200)
    assert (code, code.name, int(code)) == (200, "UNKNOWN_ERROR_200", 200)
    assert code not in ErrorCode.__members__.values()
    with pytest.raises(ValueError, match="not a valid ErrorCode"):
        ErrorCode("NONE")


def test_an_error_prints_its_code_and_its_sentence():
    assert str(KafkaError(ErrorCode.INVALID_RECORD, "no key")) == "INVALID_RECORD: no key"
    assert str(KafkaError(ErrorCode.INVALID_RECORD)) == "INVALID_RECORD"
    assert KafkaError(ErrorCode.INVALID_RECORD).message is None
