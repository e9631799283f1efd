"""Regular expressions of clients: RE2 syntax, matched against whole names, in bounded memory and time.

RE2 takes time linear in its program and the name, so a program's size bounds what one match can cost. Parentheses do
not capture: to say what each matched, RE2 would leave its automaton for something hundreds of times slower.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# As long as a string of a record can be.
MAX_BYTES = 32_767
# For the program and the automaton of one expression: about 40,000 instructions, enough for a thousand names.
MAX_MEMORY_BYTES = 1 << 20


class Pattern:
    """A compiled expression. `size` is the number of its instructions; a match costs at most that times the length of
    the name, a few ns each."""

    __slots__ = ("fullmatch", "size")

    def __init__(self, fullmatch: Callable[[str], object], size: int) -> None:
        self.fullmatch = fullmatch
        self.size = size


def compile_pattern(text: str, name: str) -> Pattern:
    """Raises INVALID_REGULAR_EXPRESSION, also for an expression that is too large; `name` is what messages call it."""
    import re2  # type: ignore[import-untyped]

    reason = f"it is longer than {MAX_BYTES} bytes"
    # No more letters than bytes: what is far too long is not encoded.
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
    raise KafkaError(
        ErrorCode.INVALID_REGULAR_EXPRESSION, f"{name} `{text[:1000]}` is not a valid regular expression: {reason}."
    )
