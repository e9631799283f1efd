"""What a request asks for: its query, checked and bounded."""

from __future__ import annotations

from urllib.parse import parse_qsl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

# Longer than the longest name in Kafka, shorter than what costs anything.
LONGEST_QUERY = 16384
LONGEST_VALUE = 8192
MOST_FIELDS = 32
INT64_MAX = (1 << 63) - 1


class BadRequestError(Exception):
    """The request asks for something that cannot be; the message is for people."""


class Query:
    """The parameters of one request. Methods raise BadRequestError."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST_QUERY:
            raise BadRequestError(f"the query is longer than {LONGEST_QUERY} characters")
        try:
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
        except ValueError as error:
            raise BadRequestError("the query cannot be read") from error
        self._values = dict(pairs)
        if len(self._values) < len(pairs):
            raise BadRequestError("a parameter is given twice")

    def text(self, name: str, default: str | None = None) -> str:
        """Return a parameter, which must be given if it has no default."""
        value = self._values.get(name, default)
        if value is None or (default is None and not value):
            raise BadRequestError(f"{name} is missing")
        if len(value) > LONGEST_VALUE:
            raise BadRequestError(f"{name} is longer than {LONGEST_VALUE} characters")
        return value

    def number(self, name: str, default: int, low: int = 0, high: int = INT64_MAX) -> int:
        """Return a whole number of a range."""
        text = self._values.get(name, "")
        if not text:
            return default
        value = whole(text, name)
        if not low <= value <= high:
            raise BadRequestError(f"{name} is {low} to {high}")
        return value

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        """Return one of several words."""
        value = self._values.get(name, default)
        if value not in choices:
            raise BadRequestError(f"{name} is one of {', '.join(choices)}")
        return value


def whole(text: str, name: str) -> int:
    """Return a number that is not negative, of at most 19 digits. Raises BadRequestError."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 19):
        raise BadRequestError(f"{name} is a whole number")
    return int(text)
