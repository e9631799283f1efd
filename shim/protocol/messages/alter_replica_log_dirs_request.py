"""AlterReplicaLogDirsRequest, versions 1-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class AlterReplicaLogDirTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[int] = EMPTY


class AlterReplicaLogDir(Message):
    __slots__ = ("path", "topics")
    FIELDS = (
        ("path", "string", "0+", ""),
        ("topics", "[]AlterReplicaLogDirTopic", "0+", ()),
    )

    if TYPE_CHECKING:
        path: str = ""
        topics: list[AlterReplicaLogDirTopic] = EMPTY


class AlterReplicaLogDirsRequest(Message):
    __slots__ = ("dirs",)
    API_KEY = 34
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (("dirs", "[]AlterReplicaLogDir", "0+", ()),)

    if TYPE_CHECKING:
        dirs: list[AlterReplicaLogDir] = EMPTY
