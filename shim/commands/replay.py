"""`kafka-shim replay`; it stands in record.py, beside what it shares."""

from kafka_shim.commands.record import replay as group

__all__ = ["group"]
