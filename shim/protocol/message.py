"""The base of every message class, and the words that the generated modules share.

A message class holds the fields of all versions of one Kafka message. ``FIELDS`` is its table, one row a field:

``(name, type, versions, default, nullable_versions, ignorable, tag, tagged_versions)``

cut at the right where the rest is ``"", False, -1, ""``. Types are Kafka's words (``int32``, ``string``, ``[]string``,
the name of a struct of the same module, ``[]Struct``) and ``string16``, a string whose length stays two bytes in
flexible versions too. Versions are ``"3+"``, ``"0-2"``, ``"5"`` or ``""`` for none. A default of ``()`` is a new empty
list or a new struct of defaults. ``kafka_shim.cext.messages`` turns the table into a plan for each version on first
use.

On encode, a field that the version does not have is dropped when it is ignorable or has its default, else the encoder
raises ``kafka_shim.cext.messages.UnsupportedVersionError``; on decode it gets its default. Kafka's
generated classes do the same.
"""

from __future__ import annotations

from kafka_shim.cext.plans import give_constructor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, ClassVar

    from typing_extensions import Buffer, dataclass_transform

    # What may be given as the records of a response: one buffer, or several that follow each other.
    Records = Buffer | Sequence[Buffer]
else:
    Buffer = Records = object

    def dataclass_transform(**_):
        return lambda cls: cls


__all__ = ["EMPTY", "NEVER", "ZERO_UUID", "Buffer", "Message", "Records"]

ZERO_UUID = bytes(16)
# Stands for "a new empty list, or a new struct" as the default of a field.
EMPTY: Any = ()
# A FLEXIBLE_FROM that no version reaches.
NEVER = 0x7FFF


@dataclass_transform(kw_only_default=True)
class Message:
    """One message or nested struct: compared and printed by its fields, encoded and decoded by
    ``kafka_shim.cext.messages``.

    ``Class(field=value, ...)`` takes every field as a keyword; the annotations in a class are for readers and type
    checkers alone, the defaults come from ``FIELDS``.
    """

    __slots__ = ("unknown_tags",)

    if TYPE_CHECKING:
        # Tagged fields that the table does not know, by tag; None when there are none.
        unknown_tags: dict[int, bytes] | None = None

    FIELDS: ClassVar[tuple[tuple[Any, ...], ...]] = ()
    # Of the message itself; nested structs follow the message that holds them.
    API_KEY: ClassVar[int] = -1
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = -1
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    def __init_subclass__(cls) -> None:
        give_constructor(cls)

    def __eq__(self, other: object) -> bool:
        if self.__class__ is not other.__class__:
            return NotImplemented
        if any(getattr(self, row[0]) != getattr(other, row[0]) for row in self.FIELDS):
            return False
        return bool((self.unknown_tags or None) == (other.unknown_tags or None))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{row[0]}={getattr(self, row[0])!r}" for row in self.FIELDS)
        return f"{self.__class__.__name__}({fields})"
