from __future__ import annotations

from base64 import urlsafe_b64decode

from kafka_shim.uuids import uuid_text


def test_kafka_writes_a_uuid_in_22_characters_without_padding():
    raw = bytes(range(240, 256))
    assert uuid_text(raw) == "8PHy8_T19vf4-fr7_P3-_w"
    assert urlsafe_b64decode(uuid_text(raw) + "==") == raw
    assert uuid_text(bytes(16)) == "A" * 22
