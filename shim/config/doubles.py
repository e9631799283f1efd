"""Options of the type DOUBLE, read and written as Java does."""

from __future__ import annotations

import math
import re

BLANKS = "".join(map(chr, range(0x21)))  # what String.trim takes off
# Possessive: of digits that end wrongly none is read twice.
_DECIMAL = re.compile(r"([+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)[fFdD]?")
_HEXADECIMAL = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]++(?:\.[0-9a-fA-F]*+)?|\.[0-9a-fA-F]++)[pP][+-]?[0-9]++)[fFdD]?")
_SPECIAL = re.compile(r"[+-]?(?:NaN|Infinity)")


def parse_double(text: str) -> float:
    """Return the number as Java's Double.parseDouble reads it. Raises ValueError."""
    text = text.strip(BLANKS)
    if found := _DECIMAL.fullmatch(text):
        return float(found[1])
    if found := _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(found[1])
        except OverflowError:
            return -math.inf if text[0] == "-" else math.inf
    if _SPECIAL.fullmatch(text):
        return float(text)
    raise ValueError(text)


def double_text(value: float) -> str:
    """Format a number as Java's Double.toString does since Java 19: 0.5, 1.0E-5, 1.7976931348623157E308, Infinity."""
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    mantissa, _, exponent = repr(abs(float(value))).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # Where the point is, counted from before the first digit that is not 0.
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
