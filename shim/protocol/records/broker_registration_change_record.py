"""BrokerRegistrationChangeRecord, versions 0-3. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class BrokerRegistrationChangeRecord(Message):
    __slots__ = ("broker_id", "broker_epoch", "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")
    API_KEY = 17
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("broker_id", "int32", "0+", 0),
        ("broker_epoch", "int64", "0+", 0),
        ("fenced", "int8", "0+", 0, "", False, 0, "0+"),
        ("in_controlled_shutdown", "int8", "1+", 0, "", False, 1, "1+"),
        ("log_dirs", "[]uuid", "2+", (), "", False, 2, "2+"),
        ("cordoned_log_dirs", "[]uuid", "3+", None, "3+", False, 3, "3+"),
    )

    if TYPE_CHECKING:
        broker_id: int = 0
        broker_epoch: int = 0
        fenced: int = 0
        in_controlled_shutdown: int = 0
        log_dirs: list[bytes] = EMPTY
        cordoned_log_dirs: list[bytes] | None = None
