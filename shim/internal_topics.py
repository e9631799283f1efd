"""The names of Kafka's internal topics, each in this one place (Kafka: common.internals.Topic)."""

from __future__ import annotations

GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
# What clients see as internal; the log of KRaft's metadata is no topic to them.
INTERNAL_TOPICS = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC})
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
CLUSTER_METADATA_TOPIC_ID = bytes(15) + b"\x01"  # Kafka: Uuid.METADATA_TOPIC_ID
