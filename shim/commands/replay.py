"""`kafka-shim replay`. It is implemented in record.py, with which it shares code."""

from kafka_shim.commands.record import replay as group

__all__ = ["group"]
