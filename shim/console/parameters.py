"""What a request asks for: its query, checked and bounded."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

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
            raise BadRequestError(f"{name} must be from {low} to {high}")
        return value

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        """Return one of several words."""
        value = self._values.get(name, default)
        if value not in choices:
            raise BadRequestError(f"{name} must be one of {', '.join(choices)}")
        return value


class Body:
    """The fields of the JSON object of one request that changes something. Methods raise BadRequestError."""

    def __init__(self, body: bytes) -> None:
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise BadRequestError("the body is a JSON object")
        self._values: dict[str, Any] = found

    def given(self, name: str) -> Any:
        """Return a field as it is, None if it is missing."""
        return self._values.get(name)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text, which must be given if it has no default."""
        value = self._values.get(name, default)
        if not (isinstance(value, str) and (value or default is not None)):
            raise BadRequestError(f"{name} is a text that is not empty")
        return _bounded(value, name)

    def choice(self, name: str, choices: Collection[str]) -> str:
        """Return one of several words."""
        value = self._values.get(name)
        if not (isinstance(value, str) and value in choices):
            raise BadRequestError(f"{name} is one of {', '.join(choices)}")
        return value

    def number(self, name: str, low: int, high: int) -> int:
        """Return a whole number of a range."""
        value = self._values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise BadRequestError(f"{name} is a whole number, {low} to {high}")
        return value

    def optional_number(self, name: str, low: int, high: int) -> int | None:
        """Return a whole number of a range, or None if it is missing."""
        return None if self._values.get(name) is None else self.number(name, low, high)

    def texts(self, name: str) -> dict[str, str]:
        """Return an object of texts, empty if it is missing."""
        value = self._values.get(name)
        if value is None:
            return {}
        if not (isinstance(value, dict) and all(isinstance(each, str) for each in value.values())):
            raise BadRequestError(f"{name} is an object of texts")
        return {_bounded(option, name): _bounded(each, option) for option, each in value.items()}

    def names(self, name: str) -> list[str]:
        """Return a list of texts, empty if it is missing."""
        value = self._values.get(name)
        if value is None:
            return []
        if not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise BadRequestError(f"{name} is a list of texts")
        return [_bounded(each, name) for each in value]

    def confirmed(self, name: str) -> str:
        """Return a name that is given twice: in its field and in `confirm`."""
        value = self.text(name)
        if self._values.get("confirm") != value:
            raise BadRequestError(f"confirm must be the same as {name}: what is done cannot be undone")
        return value


def _bounded(value: str, name: str) -> str:
    if len(value) > LONGEST_VALUE:
        raise BadRequestError(f"{name} is longer than {LONGEST_VALUE} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRequestError(f"{name} has half a surrogate pair") from None
    return value


def whole(text: str, name: str) -> int:
    """Return a number that is not negative, of at most 19 digits. Raises BadRequestError."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 19):
        raise BadRequestError(f"{name} must be a whole number")
    return int(text)
