"""Random requests: mostly right, and wrong in anything now and then."""

from __future__ import annotations

from random import Random
from typing import Any


class OddRequests:
    """The base of what makes frames of one API."""

    # How rarely something is wrong, unless it is said.
    PART = 0.015

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)

    def _rarely(self, wrong: Any, right: Any, part: float | None = None) -> Any:
        return wrong if self.chance.random() < (self.PART if part is None else part) else right

    def _bent(self, frame: bytes) -> bytes:
        """The same, or with a body that is too short, too long or changed."""
        how = self._rarely(self.chance.choice(["short", "long", "changed"]), "right", 0.04)
        body = bytearray(frame[4:])
        if how == "short":
            del body[self.chance.randrange(min(20, len(body) - 1), len(body)) :]
        elif how == "long":
            body += b"\1\2\3"
        elif how == "changed":
            body[self.chance.randrange(min(20, len(body) - 1), len(body))] ^= 1 << self.chance.randrange(8)
        return len(body).to_bytes(4) + bytes(body)
