"""ZkMigrationStateRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class ZkMigrationStateRecord(Message):
    __slots__ = ("zk_migration_state",)
    API_KEY = 21
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("zk_migration_state", "int8", "0+", 0),)

    if TYPE_CHECKING:
        zk_migration_state: int = 0
