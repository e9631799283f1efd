"""A host that nobody has."""

from __future__ import annotations

# Longer than any name may be: the C library refuses it and asks no name server, whose answer may take a minute.
UNKNOWN_HOST = ".".join(["x" * 60] * 5)
