"""Random uuids, and uuids as Java prints them: each against the standard library."""

from __future__ import annotations

import uuid

import pytest

from kafka_shim.cext.uuids import java_uuid_text, version_4


def test_java_writes_a_uuid_in_hexadecimal_with_dashes() -> None:
    raw = bytes(range(16))
    assert java_uuid_text(raw) == str(uuid.UUID(bytes=raw)) == "00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_random_bytes_become_a_uuid_of_version_4() -> None:
    for random in (bytes(16), b"\xff" * 16):
        made = uuid.UUID(bytes=version_4(random))
        assert (made.version, made.variant) == (4, uuid.RFC_4122)
        assert made == uuid.UUID(bytes=random, version=4)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_other_sizes_are_refused(size: int) -> None:
    for function in (version_4, java_uuid_text):
        with pytest.raises(ValueError, match=f"{size} bytes"):
            function(bytes(size))
