"""The text format of Prometheus: values, and the labels of a series.

Names and labels of the broker's own need no check; values of labels are escaped. The text is that of the library's
`generate_latest`, byte by byte (a test compares).
"""

from __future__ import annotations

from prometheus_client.utils import floatToGoString

# Up to here the library writes a number as Python does, in digits.
MOST_PLAIN = 1_000_000


def number(value: float) -> str:
    """Returns the text of a value."""
    if type(value) is int and -MOST_PLAIN < value < MOST_PLAIN:
        return f"{value}.0"
    return floatToGoString(value)  # type: ignore[no-untyped-call, no-any-return]


def labels_of(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    """Returns `{NAME="VALUE",...}`. The names are in the order of the alphabet."""
    return f"{{{inner_labels(names, values)}}}"


def inner_labels(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    """Returns `NAME="VALUE",...`."""
    return ",".join([f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)])


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return value
