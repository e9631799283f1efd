"""NoOpRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message


class NoOpRecord(Message):
    __slots__ = ()
    API_KEY = 20
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
