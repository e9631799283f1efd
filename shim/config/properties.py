"""Java properties files, as java.util.Properties reads them."""

from __future__ import annotations

import re
from pathlib import Path

from kafka_shim.config.defaults import ConfigError

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_DIGITS = re.compile(r"[0-9A-Fa-f]{4}")


def read_properties(path: str) -> dict[str, str]:
    """Read a Java properties file; values end before the blanks at the end of their line. Raises ConfigError for a file
    that cannot be read, or is none."""
    try:
        content = Path(path).read_bytes()
    except OSError as err:
        raise ConfigError(f"cannot read {path}: {err.strerror}") from None
    if b"\0" in content:
        raise ConfigError(f"cannot read {path}: it is not a text in UTF-8 (it has a byte 0)")
    try:
        return {key: value.rstrip() for key, value in parse_properties(decode_properties(content)).items()}
    except ValueError as err:
        raise ConfigError(f"cannot read {path}: {err}") from None


def decode_properties(content: bytes) -> str:
    """Returns the text of a properties file: UTF-8, with or without a byte order mark, and ISO 8859-1 if it is not
    UTF-8. java.util.Properties takes every file as ISO 8859-1; for UTF-8 beyond ASCII this differs."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def parse_properties(text: str) -> dict[str, str]:
    """Parse a Java properties file: comments start with `#` or `!`, the separator is `=`, `:` or a blank, and `\\` at
    the end continues a line. Raises ValueError for a `\\u` without four hexadecimal digits, as Java does."""
    found: dict[str, str] = {}
    logical = ""
    for raw in [*_LINE_END.split(text), ""]:
        line = raw.lstrip(_BLANKS)
        if not logical and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            logical += line[:-1]
            continue
        logical += line
        key, value = _split(logical)
        if key:
            found[key] = value
        logical = ""
    return found


def escaped(text: str) -> str:
    """Returns a value as it stands in a properties file, also for java.util.Properties, which reads ISO 8859-1."""
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    return "".join(
        "\\\\" if code == ord("\\") else chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes
    )


def _split(line: str) -> tuple[str, str]:
    at = 0
    while at < len(line) and line[at] not in "=:" + _BLANKS:
        at += 2 if line[at] == "\\" else 1
    key, rest = line[:at], line[at:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    try:
        return _unescape(key), _unescape(rest)
    except ValueError as err:
        raise ValueError(f"{key}: {err}") from None


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out, at = [], 0
    while at < len(text):
        letter = text[at]
        if letter == "\\" and at + 1 < len(text):
            at += 1
            letter = text[at]
            if letter == "u":
                if not (digits := _DIGITS.match(text, at + 1)):  # the text may be a password: not in the message
                    raise ValueError(
                        "no four hexadecimal digits follow a \\u: a backslash of the value is written twice"
                    )
                letter, at = chr(int(digits[0], 16)), at + 4
            else:
                letter = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(letter, letter)
        out.append(letter)
        at += 1
    # Java writes a character beyond the first 65,536 as two of these.
    return "".join(out).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
