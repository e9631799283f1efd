"""A broker's share coordinator over real files, without its network, under a virtual clock."""

from __future__ import annotations

from kafka_shim.internal_topics import SHARE_GROUP_STATE_TOPIC
from kafka_shim.share.persister import ShareStatePersister
from kafka_shim.storage.log import PartitionLog
from kafka_shim.tests.node import Node as Base


class Node(Base):
    topic_name = SHARE_GROUP_STATE_TOPIC

    def start_coordinator(self) -> None:
        self.state = ShareStatePersister(
            clock=self.clock, config=self.config, logs=self.logs, metadata=self.metadata, faults=self.faults
        )
        self.state.start()

    def stop_coordinator(self) -> None:
        self.state.stop()

    def state_log(self, group_id: str, topic_id: bytes, partition: int) -> PartitionLog:
        """The log that holds this share partition's records."""
        number = self.state.coordinator.partition_for((group_id, topic_id, partition))
        return self.logs.get(SHARE_GROUP_STATE_TOPIC, number)

    def set_group_option(self, group_id: str, name: str, value: str) -> None:
        from kafka_shim.metadata.image import RESOURCE_GROUP
        from kafka_shim.protocol.records.config_record import ConfigRecord

        record = ConfigRecord(resource_type=RESOURCE_GROUP, resource_name=group_id, name=name, value=value)
        self.metadata.commit([record])
