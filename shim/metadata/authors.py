"""Who made a change, as the lines of the log say it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Author(Protocol):
        """Who made a change: the session of a client."""

        principal: str
        peer_host: str


# A client may give a name of 32 KB.
MAX_SHOWN = 200


def said_of(author: Author) -> str:
    """Returns the end of a line about a change that somebody made."""
    return f" (by {cut(author.principal)} at {author.peer_host})"


def cut(name: str) -> str:
    return name if len(name) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}..."
