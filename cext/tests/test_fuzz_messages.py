"""A bounded run of the fuzz targets; the layer `asan` runs it in an AddressSanitizer build."""

from __future__ import annotations

import pytest

from kafka_shim.cext.tests.fuzz_messages import check_frames, check_message, corpus, fuzz
from kafka_shim.tests.protocol.values import CLASSES

BY_NAME = {cls.__name__: cls for cls in CLASSES}
STORED = list(corpus())


@pytest.mark.parametrize(
    ("name", "version", "data", "is_read"), STORED, ids=[f"{row[0]}-{i}" for i, row in enumerate(STORED)]
)
def test_stored_inputs_are_refused_or_read(name: str, version: int, data: bytes, is_read: bool) -> None:
    assert check_message(BY_NAME[name], version, data) is is_read
    check_frames(data)


@pytest.mark.slow
def test_mutated_messages_never_do_harm() -> None:
    tried, taken = fuzz(seed=20_260_101, seconds=20)
    assert tried > 500
    assert taken > 0
