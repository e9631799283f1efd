"""Against ``kio``, an independent codec: what it reads of our bytes, it writes again as the same bytes."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import pytest

from kafka_shim.cext.messages import encode
from kafka_shim.protocol.message import Message
from kafka_shim.protocol.transcribe import snake
from kafka_shim.tests.protocol.values import CLASSES, LIMITS, Seeded, make, versions

pytestmark = pytest.mark.slow


class Modest(Seeded):
    """Kio makes enumerations and durations of some integers, so they stay small here."""

    def scalar(self, kind: str) -> Any:
        if kind in LIMITS:
            return self._random.choice((0, 1, 2, 3, 5, 40))
        return self._random.randbytes(16) if kind == "uuid" else super().scalar(kind)


def kio_class(cls: type[Message], version: int) -> Any:
    """Kio's class of the same message and version, or None."""
    name = cls.__name__
    places = [(snake(name), "data"), (snake(name), "header")]
    suffix = name[-8:] if name.endswith("Response") else name[-7:]
    places.append((snake(name.removesuffix(suffix)), suffix.lower()))
    for folder, module in places:
        try:
            found = getattr(import_module(f"kio.schema.{folder}.v{version}.{module}"), name, None)
        except ModuleNotFoundError:
            continue
        if found is not None:
            return found
    return None


def test_every_message_that_kio_knows(capsys: pytest.CaptureFixture[str]) -> None:
    # Kio has wheels for some Pythons only; this test runs on one that has them.
    from kio.serial import entity_reader, entity_writer

    known = 0
    for cls in CLASSES:
        for version in versions(cls):
            theirs = kio_class(cls, version)
            if theirs is None:
                continue
            known += 1
            read, write = entity_reader(theirs), entity_writer(theirs)
            for seed in range(3):
                data = encode(make(cls, version, Modest(seed)), version)
                entity, size_bytes = read(data, 0)
                again = io.BytesIO()
                write(again, entity)
                assert size_bytes == len(data), (cls.__name__, version)
                assert again.getvalue() == data, (cls.__name__, version)
    with capsys.disabled():
        print(f"\n{known} versions of messages: kio reads and writes the same bytes")
    assert known > 600
