"""`auto.offset.reset`: where a consumer begins that has no offset (Kafka: AutoOffsetResetStrategy)."""

from __future__ import annotations

import time
from dataclasses import dataclass

from kafka_shim.client.reading import EARLIEST, LATEST, list_offsets
from kafka_shim.config import ConfigError
from kafka_shim.durations import by_duration_ms
from kafka_shim.wire_client import WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_shim.client.cluster import Cluster, TopicPartition


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    """`name` is earliest, latest, none, or by_duration: then from `ago_ms` before now on."""

    name: str
    ago_ms: int = 0

    @classmethod
    def of(cls, text: str) -> ResetPolicy:
        """Raises ConfigError."""
        if text in ("earliest", "latest", "none"):
            return cls(text)
        try:
            return cls("by_duration", by_duration_ms(text))
        except ValueError:
            raise ConfigError(
                f"Invalid value {text} for configuration auto.offset.reset: Invalid value `{text}` for configuration "
                "auto.offset.reset. The value must be either 'earliest', 'latest', 'none' or of the format "
                "'by_duration:<PnDTnHnMn.nS.>'."
            ) from None

    def offsets(self, cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where to begin with each. Raises WireClientError for `none`."""
        wanted = list(partitions)
        if not wanted:
            return {}
        if self.name == "none":
            named = ", ".join(f"{topic}-{number}" for topic, number in wanted)
            raise WireClientError(f"Undefined offset with no reset policy for partitions: [{named}]")
        if self.name != "by_duration":
            return list_offsets(cluster, dict.fromkeys(wanted, EARLIEST if self.name == "earliest" else LATEST))
        since_ms = max(0, time.time_ns() // 1_000_000 - self.ago_ms)
        found = list_offsets(cluster, dict.fromkeys(wanted, since_ms))
        after = [each for each, offset in found.items() if offset < 0]
        return found | (list_offsets(cluster, dict.fromkeys(after, LATEST)) if after else {})
