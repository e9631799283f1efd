"""What people run beside a broker, each from its own packages, on the shim and on Apache Kafka.

A part is a small application of a framework (or the framework's own server) and what it found, as lines of text. The
lines must be the same on both brokers. ``python -m kafka_shim.compat.ecosystem`` runs them.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.compat.ecosystem.base import Part

# Module of each part; its PARTS are imported when it is asked for.
PARTS = {
    "connect": "connect",
    "debezium": "debezium",
    "mirror-maker": "mirror_maker",
    "spring": "java_programs",
    "flink": "java_programs",
    "sarama": "other_languages",
    "kafkajs": "other_languages",
    "confluent-javascript": "other_languages",
    "node-rdkafka": "other_languages",
    "rskafka": "other_languages",
    "registry": "registry",
}


def load(name: str) -> Part:
    """The part of that name."""
    parts: dict[str, Part] = import_module(f"kafka_shim.compat.ecosystem.{PARTS[name]}").PARTS
    return parts[name]
