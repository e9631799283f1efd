"""Reads what a Java class file refers to, for the scan of test jars. Source: JVM Specification, chapter 4."""

from __future__ import annotations

import struct
from dataclasses import dataclass

# Tag of a constant -> the bytes after the tag. 1 (Utf8) has a length of its own.
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
_UTF8, _CLASS = 1, 7
_WIDE = (5, 6)
_ABSTRACT = 0x0400 | 0x0200


@dataclass(frozen=True)
class ClassFile:
    name: str
    parent: str
    is_abstract: bool
    texts: frozenset[str]
    """Every Utf8 constant: among them the descriptors of annotations."""
    classes: frozenset[str]
    """The classes that the code names."""


def parse(content: bytes) -> ClassFile:
    """Raises ValueError if `content` is not a class file."""
    if content[:4] != b"\xca\xfe\xba\xbe":
        raise ValueError("not a class file")
    (count,) = struct.unpack_from(">H", content, 8)
    texts: dict[int, str] = {}
    named: dict[int, int] = {}
    at, index = 10, 1
    while index < count:
        tag = content[at]
        if tag == _UTF8:
            (size,) = struct.unpack_from(">H", content, at + 1)
            texts[index] = content[at + 3 : at + 3 + size].decode(errors="replace")
            at += 3 + size
        elif tag in _SIZES:
            if tag == _CLASS:
                (named[index],) = struct.unpack_from(">H", content, at + 1)
            at += 1 + _SIZES[tag]
        else:
            raise ValueError(f"constant with the unknown tag {tag}")
        index += 2 if tag in _WIDE else 1
    access, own, parent = struct.unpack_from(">HHH", content, at)

    def class_name(number: int) -> str:
        return texts[named[number]].replace("/", ".") if number else ""

    return ClassFile(
        class_name(own),
        class_name(parent),
        bool(access & _ABSTRACT),
        frozenset(texts.values()),
        frozenset(class_name(number) for number in named),
    )
