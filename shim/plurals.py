"""Numbers of things in words, for the log and the command line."""

from __future__ import annotations


def counted(number: int, what: str, several: str = "") -> str:
    """Returns `1 broker`, `2 brokers`; `several` is the plural where it is no `s` more."""
    return f"{number} {what if number == 1 else several or f'{what}s'}"
