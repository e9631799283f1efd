"""Values for messages, made from their field tables."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from kafka_shim import protocol
from kafka_shim.protocol.message import Message

LIMITS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
}
STRINGS = ("", "a", "topic-1", "\u00e9\u6f22\U0001f600", '\0\t\n"\\', "x" * 127, "y" * 128, "z" * 300)
BYTES = (b"", b"\0", bytes(range(256)), b"\xff" * 127, b"\x80" * 16384)


def in_range(versions: str, version: int) -> bool:
    """Whether ``"3+"``, ``"0-2"``, ``"5"`` or ``""`` holds the version."""
    if not versions:
        return False
    low, _, high = versions.replace("+", "-32767").partition("-")
    return int(low) <= version <= int(high or low)


def struct_class(owner: type[Message], kind: str) -> type[Message] | None:
    """The struct that a field of this type holds, or None."""
    found = getattr(sys.modules[owner.__module__], kind.removeprefix("[]"), None)
    return found if isinstance(found, type) and issubclass(found, Message) else None


def message_classes() -> list[type[Message]]:
    """Every message and record of the tables, by module name."""
    found = []
    for folder in ("messages", "records"):
        for path in sorted((Path(protocol.__file__).parent / folder).glob("[a-z]*.py")):
            module = import_module(f"kafka_shim.protocol.{folder}.{path.stem}")
            classes = [value for value in vars(module).values() if isinstance(value, type)]
            found += [cls for cls in classes if issubclass(cls, Message) and cls.MAX_VERSION >= 0]
    return found


CLASSES = message_classes()


def versions(cls: type[Message]) -> range:
    return range(cls.MIN_VERSION, cls.MAX_VERSION + 1)


class Choice:
    """Makes the value of a scalar, says how many elements an array has, and whether a nullable field is null."""

    def scalar(self, kind: str) -> Any:
        raise NotImplementedError

    def count(self) -> int:
        raise NotImplementedError

    def is_null(self) -> bool:
        return False


class Highest(Choice):
    """The highest of everything, two elements an array."""

    def scalar(self, kind: str) -> Any:
        if kind in LIMITS:
            return LIMITS[kind][1]
        fixed = {"bool": True, "float64": 1.5e300, "uuid": b"\xff" * 16, "bytes": BYTES[2], "records": BYTES[4]}
        return fixed.get(kind, STRINGS[7])

    def count(self) -> int:
        return 2


class Lowest(Choice):
    """The lowest of everything, empty arrays and strings."""

    def scalar(self, kind: str) -> Any:
        if kind in LIMITS:
            return LIMITS[kind][0]
        return {"bool": False, "float64": -1.5e-300, "uuid": bytes(16), "bytes": b"", "records": b""}.get(kind, "")

    def count(self) -> int:
        return 0


class Nulls(Highest):
    """Null wherever null may be, one element an array."""

    def count(self) -> int:
        return 1

    def is_null(self) -> bool:
        return True


class Seeded(Choice):
    """Random within the limits, weighted to the edges."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def scalar(self, kind: str) -> Any:
        pick = self._random
        if kind in LIMITS:
            low, high = LIMITS[kind]
            return pick.choice((low, high, 0, 1, max(low, -1), pick.randint(low, high)))
        if kind == "bool":
            return pick.random() < 0.5
        if kind == "float64":
            return pick.choice((0.5, -1e10, 3.25))
        if kind == "uuid":
            return pick.choice((bytes(16), pick.randbytes(16)))
        return pick.choice(BYTES if kind in {"bytes", "records"} else STRINGS)

    def count(self) -> int:
        return self._random.choice((0, 1, 1, 2, 3))

    def is_null(self) -> bool:
        return self._random.random() < 0.3


def make(cls: type[Message], version: int, choice: Choice) -> Any:
    """A message whose fields of this version are chosen, the others left at their defaults."""
    values = {}
    for row in cls.FIELDS:
        if in_range(row[2], version):
            nullable = len(row) > 4 and in_range(row[4], version)
            values[row[0]] = None if nullable and choice.is_null() else _value(cls, row[1], version, choice)
    return cls(**values)


def _value(cls: type[Message], kind: str, version: int, choice: Choice) -> Any:
    if kind.startswith("[]"):
        return [_value(cls, kind[2:], version, choice) for _ in range(choice.count())]
    struct = struct_class(cls, kind)
    return make(struct, version, choice) if struct else choice.scalar("string" if kind == "string16" else kind)


def systematic(cls: type[Message], version: int, seeds: int) -> Iterator[Any]:
    """Defaults, extremes, nulls, and a few seeded ones."""
    yield cls()
    for choice in (Highest(), Lowest(), Nulls()):
        yield make(cls, version, choice)
    for seed in range(seeds):
        yield make(cls, version, Seeded(seed))


class Drawn(Choice):
    """What hypothesis draws, so that it can shrink it."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw

    def scalar(self, kind: str) -> Any:
        if kind in LIMITS:
            return self._draw(st.integers(*LIMITS[kind]))
        strategies = {
            "bool": st.booleans(),
            "float64": st.floats(allow_nan=False, allow_infinity=False),
            "uuid": st.binary(min_size=16, max_size=16),
            "bytes": st.binary(max_size=200),
            "records": st.binary(max_size=200),
        }
        return self._draw(strategies.get(kind, st.text(st.characters(exclude_categories=["Cs"]), max_size=100)))

    def count(self) -> int:
        return int(self._draw(st.integers(0, 3)))

    def is_null(self) -> bool:
        return bool(self._draw(st.booleans()))


@st.composite
def messages(draw: Any) -> tuple[Any, int]:
    """(message, version) of any class."""
    cls = draw(st.sampled_from(CLASSES))
    version = draw(st.integers(cls.MIN_VERSION, cls.MAX_VERSION))
    return make(cls, version, Drawn(draw)), version


def structs_of(message: Message, version: int) -> Iterator[Message]:
    """The message and every struct in it that the version has."""
    yield message
    for row in message.FIELDS:
        value = getattr(message, row[0])
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, Message) and in_range(row[2], version):
                yield from structs_of(item, version)
