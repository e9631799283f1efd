"""What must be stored before eligible leader replicas are enabled (Kafka: ConfigurationControlManager, KIP-966)."""

from __future__ import annotations

from kafka_shim.metadata.dynamic_config import MIN_ISR
from kafka_shim.metadata.image import RESOURCE_BROKER
from kafka_shim.protocol.records.config_record import ConfigRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.metadata.image import Image


def elr_safety_records(image: Image, min_insync_replicas: int) -> list[ConfigRecord]:
    """Return the records after which `min.insync.replicas` is set for the cluster, to the value of the configuration
    file where nothing is stored, and for no single broker. None, if that is so already."""
    records = []
    if MIN_ISR not in image.config_of(RESOURCE_BROKER, ""):
        records.append(
            ConfigRecord(resource_type=RESOURCE_BROKER, resource_name="", name=MIN_ISR, value=str(min_insync_replicas))
        )
    records += [
        ConfigRecord(resource_type=RESOURCE_BROKER, resource_name=name, name=MIN_ISR, value=None)
        for (kind, name), options in image.configs.items()
        if kind == RESOURCE_BROKER and name and MIN_ISR in options
    ]
    return records
