"""What a client says, as a log may show it: on one line, and not longer than it is worth."""

from __future__ import annotations

# The most characters of a name of a user or a key, and of a reason that may contain several of them.
MAX_NAME = 64
MAX_REASON = 600


def printable(text: str, max_characters: int) -> str:
    """Returns a client's text such that it cannot begin a line of its own in the log."""
    if len(text) > max_characters:
        text = f"{text[:max_characters]}..."
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
