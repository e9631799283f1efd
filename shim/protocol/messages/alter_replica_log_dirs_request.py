"""AlterReplicaLogDirsRequest, versions 1-2. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class AlterReplicaLogDirTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    def __init__(self, *, name: str = "", partitions: list[int] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class AlterReplicaLogDir(Message):
    __slots__ = ("path", "topics")
    FIELDS = (
        ("path", "string", "0+", ""),
        ("topics", "[]AlterReplicaLogDirTopic", "0+", ()),
    )

    def __init__(self, *, path: str = "", topics: list[AlterReplicaLogDirTopic] = EMPTY) -> None:
        self.path = path
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None


class AlterReplicaLogDirsRequest(Message):
    __slots__ = ("dirs",)
    API_KEY = 34
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (("dirs", "[]AlterReplicaLogDir", "0+", ()),)

    def __init__(self, *, dirs: list[AlterReplicaLogDir] = EMPTY) -> None:
        self.dirs = [] if dirs is EMPTY else dirs
        self.unknown_tags = None
