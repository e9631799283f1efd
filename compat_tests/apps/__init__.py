"""Applications with transactions and groups on each client library, behind one small interface (``base.App``). A
scenario runs on each of CLIENTS.
"""

from __future__ import annotations

from importlib import import_module

from kafka_shim.compat.apps.base import App, Producer, Reader, Refused

__all__ = ["CLIENTS", "App", "Producer", "Reader", "Refused", "make"]

CLIENTS = {
    "kafka-python": ("kafka_python", "KafkaPython"),
    "confluent-kafka": ("confluent", "Confluent"),
    "aiokafka": ("aiokafka_app", "Aiokafka"),
    "java": ("java", "Java"),
}


def make(name: str, bootstrap: str) -> App:
    """The application of one of CLIENTS; its library is imported here."""
    module, class_name = CLIENTS[name]
    made: App = getattr(import_module(f"kafka_shim.compat.apps.{module}"), class_name)(bootstrap)
    return made
