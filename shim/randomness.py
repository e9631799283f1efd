"""The only source of randomness: ids, names that must not collide, keys of hashes. Accessed through the broker's
clock.
"""

from __future__ import annotations

import os

from kafka_shim.cext.uuids import java_uuid_text, version_4
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random


class Randomness:
    """Random bytes from the operating system, or, with a seed, the same bytes in each run."""

    __slots__ = ("_generator", "seed")

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed
        self._generator: Random | None = None
        if seed is not None:
            from random import Random  # imported late: it costs five milliseconds of start-up

            self._generator = Random(seed)

    @classmethod
    def seeded(cls, seed: int | None = None) -> Randomness:
        """One that can be repeated: `seed` tells how when none was given."""
        return cls(int.from_bytes(os.urandom(4)) if seed is None else seed)

    def bytes_of(self, size: int) -> bytes:
        return os.urandom(size) if self._generator is None else self._generator.randbytes(size)

    def integer(self, low: int, high: int) -> int:
        """Returns an integer from `low` to `high`, both included."""
        return low + int.from_bytes(self.bytes_of(16)) % (high - low + 1)

    def uuid(self) -> bytes:
        """Returns a version 4 uuid that does not begin with a dash in base64, which command lines would take for an
        option (Kafka: Uuid.randomUuid)."""
        while True:
            raw = version_4(self.bytes_of(16))
            if raw[0] >> 2 != 62:
                return raw

    def uuid_text(self) -> str:
        """Returns `uuid` as Kafka prints it."""
        return uuid_text(self.uuid())

    def java_uuid_text(self) -> str:
        """Returns a version 4 uuid as `java.util.UUID` prints it: the suffix of a classic member id."""
        return java_uuid_text(version_4(self.bytes_of(16)))
