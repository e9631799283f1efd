"""ZkMigrationStateRecord, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import Message


class ZkMigrationStateRecord(Message):
    __slots__ = ("zk_migration_state",)
    API_KEY = 21
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("zk_migration_state", "int8", "0+", 0),)

    def __init__(self, *, zk_migration_state: int = 0) -> None:
        self.zk_migration_state = zk_migration_state
        self.unknown_tags = None
