"""ListTransactionsRequest, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ListTransactionsRequest(Message):
    __slots__ = ("state_filters", "producer_id_filters", "duration_filter", "transactional_id_pattern")
    API_KEY = 66
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("state_filters", "[]string", "0+", ()),
        ("producer_id_filters", "[]int64", "0+", ()),
        ("duration_filter", "int64", "1+", -1),
        ("transactional_id_pattern", "string", "2+", None, "2+"),
    )

    if TYPE_CHECKING:
        state_filters: list[str] = EMPTY
        producer_id_filters: list[int] = EMPTY
        duration_filter: int = -1
        transactional_id_pattern: str | None = None
