"""Checks histories of client operations against Kafka's guarantees. This package imports nothing of the broker."""
