"""Bytes of records as people read them: JSON, text, numbers, hexadecimal digits; others by a schema."""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    # Takes the bytes; returns (kind, text), or None if they are nothing of its own. Raises ValueError if they are, but
    # cannot be read.
    Decoder = Callable[[bytes], "tuple[str, str] | None"]

# Deeper levels are not indented further: the text stays in proportion to the bytes.
DEEPEST_INDENT = 24
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def shown(data: bytes | None, most: int, decoder: Decoder | None = None) -> dict[str, Any] | None:
    """Return what to show of a key or value, at most `most` characters or bytes of it: its `kind`, `text`, `size` in
    bytes, whether it is `cut`, and `problem` if a decoder refused it. None for none (null)."""
    if data is None:
        return None
    found: dict[str, Any] = {"size": len(data)}
    if decoder is not None:
        try:
            decoded = decoder(data)
        except ValueError as error:
            found["problem"] = str(error)
        else:
            if decoded is not None:
                kind, whole = decoded
                return found | {"kind": kind, "text": whole[:most], "cut": len(whole) > most}
    part = data[:most]
    found["cut"] = len(part) < len(data)
    text = _text_of(part, found["cut"])
    if text is None:
        found["kind"], found["text"] = "hex", _spaced(part[: most // 2])
        found["cut"] = len(data) > most // 2
        if len(data) in (4, 8):
            found["number"] = str(int.from_bytes(data, signed=True))
        return found
    pretty = None if found["cut"] else pretty_json(text)
    found["kind"], found["text"] = ("text", text) if pretty is None else ("json", pretty)
    return found


def pretty_json(text: str) -> str | None:
    """Return a JSON object or array with a line for each member, or None if it is none. Numbers, texts and doubled
    names stay as they are written."""
    if text[:1] not in "{[" and text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        json.loads(text, parse_constant=_refuse, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    lines: list[str] = []
    line, depth = "", 0
    for match in _TOKENS.finditer(text):
        token = match.group()
        if token in "]}":
            depth -= 1
            if not line and lines[-1][-1:] in "[{":
                line = lines.pop() + token  # nothing is in it
                continue
            if line:
                lines.append(line)
            line = "  " * min(depth, DEEPEST_INDENT) + token
        elif token in "[{":
            lines.append((line or "  " * min(depth, DEEPEST_INDENT)) + token)
            line = ""
            depth += 1
        elif token == ",":
            lines.append(f"{line},")
            line = ""
        elif token == ":":
            line += ": "
        else:
            line = (line or "  " * min(depth, DEEPEST_INDENT)) + token
    lines.append(line)
    return "\n".join(lines)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _text_of(data: bytes, is_cut: bool) -> str | None:
    """Return the text of bytes that are one; a character that was cut in two at the end is left out."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if not (is_cut and error.start > len(data) - 4):
            return None
        text = data[: error.start].decode()
    return None if _CONTROL.search(text) else text


def _spaced(data: bytes) -> str:
    return data.hex(" ")
