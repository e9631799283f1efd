"""Regular expressions that clients send: RE2 syntax, matched against whole names, with bounded memory and time.

RE2's time is linear in the size of the program and of the name, so the program's size bounds the cost of a match.
Parentheses do not capture: with captures RE2 could not use its automaton and would be hundreds of times slower.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# The longest string that a record can hold.
MAX_BYTES = 32_767
# The memory for the program and the automaton of one expression: about 40,000 instructions, enough for a thousand
# names.
MAX_MEMORY_BYTES = 1 << 20


# The words of RE2/J, which Kafka uses, for those of RE2. It does not show the part of the expression.
_WORDS_OF_KAFKA = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid character class range": "invalid character class range",
    "invalid escape sequence": "invalid escape sequence",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "unexpected )": "regexp/syntax: internal error",
}


class Pattern:
    """A compiled expression. `size` is its number of instructions. A match costs at most `size` times the length of the
    name, at a few nanoseconds each."""

    __slots__ = ("fullmatch", "size")

    def __init__(self, fullmatch: Callable[[str], object], size: int) -> None:
        self.fullmatch = fullmatch
        self.size = size


def compile_pattern(text: str, name: str) -> Pattern:
    """Raises INVALID_REGULAR_EXPRESSION, also for an expression that is too large. `name` is what error messages call
    it."""
    import re2  # type: ignore[import-untyped]

    reason = f"it is longer than {MAX_BYTES} bytes"
    # A string has no more characters than bytes, so one that is far too long is not encoded.
    if len(text) <= MAX_BYTES and len(text.encode()) <= MAX_BYTES:
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = MAX_MEMORY_BYTES
        try:
            compiled = re2.compile(text, options)
            return Pattern(compiled.fullmatch, compiled.programsize)
        except re2.error as error:
            found = error.args[0] if error.args else ""
            reason = found.decode(errors="replace") if isinstance(found, bytes) else str(found)
            reason = _WORDS_OF_KAFKA.get(reason.partition(": ")[0], reason)
    raise KafkaError(
        ErrorCode.INVALID_REGULAR_EXPRESSION, f"{name} `{text[:1000]}` is not a valid regular expression: {reason}."
    )
