"""`TopicConfig`: one topic's options in force."""

from __future__ import annotations

from kafka_shim.config.defaults import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from kafka_shim.config.defaults import BrokerDefaults


class TopicConfig:
    """One topic's options in force: its overrides, else the broker's options. Immutable; a change creates a new
    object."""

    __slots__ = (
        "cleanup_policy",
        "compact",
        "compression_gzip_level",
        "compression_lz4_level",
        "compression_type",
        "compression_zstd_level",
        "delete",
        "delete_retention_ms",
        "file_delete_delay_ms",
        "flush_messages",
        "flush_ms",
        "index_interval_bytes",
        "max_compaction_lag_ms",
        "max_message_bytes",
        "message_timestamp_after_max_ms",
        "message_timestamp_before_max_ms",
        "message_timestamp_type",
        "min_cleanable_dirty_ratio",
        "min_compaction_lag_ms",
        "overrides",
        "retention_bytes",
        "retention_ms",
        "segment_bytes",
        "segment_index_bytes",
        "segment_jitter_ms",
        "segment_ms",
    )

    def __init__(self, broker: BrokerDefaults, overrides: Mapping[str, str] | None = None) -> None:
        """`overrides` are the topic's options as the metadata log stores them (text by Kafka's name). Raises
        ConfigError for a value that cannot be parsed."""
        self.cleanup_policy: tuple[str, ...] = broker.log_cleanup_policy
        self.compression_type: str = broker.compression_type
        self.compression_gzip_level: int = broker.compression_gzip_level
        self.compression_lz4_level: int = broker.compression_lz4_level
        self.compression_zstd_level: int = broker.compression_zstd_level
        self.delete_retention_ms: int = broker.log_cleaner_delete_retention_ms
        self.file_delete_delay_ms: int = broker.log_segment_delete_delay_ms
        self.flush_messages: int = broker.log_flush_interval_messages
        self.flush_ms: int = broker.log_flush_interval_ms
        self.index_interval_bytes: int = broker.log_index_interval_bytes
        self.max_compaction_lag_ms: int = broker.log_cleaner_max_compaction_lag_ms
        self.max_message_bytes: int = broker.message_max_bytes
        self.message_timestamp_after_max_ms: int = broker.log_message_timestamp_after_max_ms
        self.message_timestamp_before_max_ms: int = broker.log_message_timestamp_before_max_ms
        self.message_timestamp_type: str = broker.log_message_timestamp_type
        self.min_cleanable_dirty_ratio: float = broker.log_cleaner_min_cleanable_ratio
        self.min_compaction_lag_ms: int = broker.log_cleaner_min_compaction_lag_ms
        self.retention_bytes: int = broker.log_retention_bytes
        self.retention_ms: int = broker.log_retention_ms
        self.segment_bytes: int = broker.log_segment_bytes
        self.segment_index_bytes: int = broker.log_index_size_max_bytes
        self.segment_jitter_ms: int = broker.log_roll_jitter_ms
        self.segment_ms: int = broker.log_roll_ms
        self.overrides: Mapping[str, str] = overrides or {}
        for name, text in self.overrides.items():
            self._set(name, text)
        self.compact = "compact" in self.cleanup_policy
        self.delete = "delete" in self.cleanup_policy

    def _set(self, name: str, text: str) -> None:
        # Kafka's own tests create small segments with this internal option, because segment.bytes is at least 1 MiB.
        attribute = "segment_bytes" if name == "internal.segment.bytes" else name.replace(".", "_")
        current = getattr(self, attribute, None)
        try:
            if isinstance(current, bool):
                value: Any = _boolean(text)
            elif isinstance(current, int):
                value = int(text)
            elif isinstance(current, float):
                from kafka_shim.config.doubles import parse_double

                value = parse_double(text)
            elif isinstance(current, tuple):
                value = tuple(part.strip() for part in text.split(",") if part.strip())
            elif isinstance(current, str):
                value = text.strip()  # the text is stored as it was given (ConfigDef.parseType)
            else:
                return  # a Kafka option without effect here: only kept in `overrides` and shown
        except ValueError as error:
            raise ConfigError(f"Invalid value {text} for configuration {name}") from error
        setattr(self, attribute, value)


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError(text)
    return word == "true"
