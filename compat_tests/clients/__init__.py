"""Real clients behind one small interface, so that a test matrix can write with one client and read with another."""

from __future__ import annotations

from importlib import import_module

from kafka_shim.compat.clients.base import Client, Message

__all__ = ["CLIENTS", "Client", "Message", "make"]

CLIENTS = {
    "kafka-python": ("kafka_python", "KafkaPython"),
    "confluent-kafka": ("confluent", "Confluent"),
    "aiokafka": ("aiokafka_client", "Aiokafka"),
    "kcat": ("kcat", "Kcat"),
    "java": ("java_client", "JavaClient"),
    "java-console": ("java_console", "JavaConsole"),
}


def make(name: str) -> Client:
    """The client of one of CLIENTS; its library is imported here."""
    module, class_name = CLIENTS[name]
    made: Client = getattr(import_module(f"kafka_shim.compat.clients.{module}"), class_name)()
    return made
