"""ListTransactionsResponse, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class TransactionState(Message):
    __slots__ = ("transactional_id", "producer_id", "transaction_state")
    FIELDS = (
        ("transactional_id", "string", "0+", ""),
        ("producer_id", "int64", "0+", 0),
        ("transaction_state", "string", "0+", ""),
    )

    if TYPE_CHECKING:
        transactional_id: str = ""
        producer_id: int = 0
        transaction_state: str = ""


class ListTransactionsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "unknown_state_filters", "transaction_states")
    API_KEY = 66
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("unknown_state_filters", "[]string", "0+", ()),
        ("transaction_states", "[]TransactionState", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        unknown_state_filters: list[str] = EMPTY
        transaction_states: list[TransactionState] = EMPTY
