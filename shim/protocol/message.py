"""The base class of all messages, and the names that the generated modules share.

A message class holds the fields of all versions of one Kafka message. ``FIELDS`` is its table, with one row per field:

``(name, type, versions, default, nullable_versions, ignorable, tag, tagged_versions)``

Trailing columns are omitted if the rest is ``"", False, -1, ""``. Types are those of Kafka's message definitions
(``int32``, ``string``, ``[]string``, the name of a struct of the same module, ``[]Struct``) and ``string16``, a string
whose length has two bytes in flexible versions too. Versions are ``"3+"``, ``"0-2"``, ``"5"``, or ``""`` for none. The
default ``()`` means a new empty list or a new struct with default values. ``kafka_shim.cext.messages`` compiles the
table into a plan for each version on first use.

On encode, a field that the version does not have is dropped if it is ignorable or has its default value; otherwise the
encoder raises ``kafka_shim.cext.messages.UnsupportedVersionError``. On decode, such a field gets its default value.
Kafka's generated classes do the same.
"""

from __future__ import annotations

from kafka_shim.cext.plans import give_constructor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, ClassVar

    from typing_extensions import Buffer, dataclass_transform

    # The records of a response: one buffer, or several consecutive buffers.
    Records = Buffer | Sequence[Buffer]
else:
    Buffer = Records = object

    def dataclass_transform(**_):
        return lambda cls: cls


__all__ = ["EMPTY", "NEVER", "ZERO_UUID", "Buffer", "Message", "Records", "has_version"]

ZERO_UUID = bytes(16)
# A field's default that means "a new empty list, or a new struct".
EMPTY: Any = ()
# The value of FLEXIBLE_FROM if no version is flexible.
NEVER = 0x7FFF


@dataclass_transform(kw_only_default=True)
class Message:
    """A message or nested struct. Compared and printed by its fields; encoded and decoded by
    ``kafka_shim.cext.messages``.

    ``Class(field=value, ...)`` accepts every field as a keyword. The annotations in a class are only for readers and
    type checkers; the defaults come from ``FIELDS``.
    """

    __slots__ = ("unknown_tags",)

    if TYPE_CHECKING:
        # Tagged fields that are not in the table, by tag; None if there are none.
        unknown_tags: dict[int, bytes] | None = None

    FIELDS: ClassVar[tuple[tuple[Any, ...], ...]] = ()
    # Set on the message itself; nested structs follow their message.
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


def has_version(versions: str, version: int) -> bool:
    """Returns whether `version` is in a range of the field tables: "3+", "0-2", "5", or "" for none."""
    if versions.endswith("+"):
        return version >= int(versions[:-1])
    first, dash, last = versions.partition("-")
    return bool(first) and int(first) <= version <= int(last if dash else first)
