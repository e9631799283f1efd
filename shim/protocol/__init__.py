"""Kafka's messages: field tables, typed classes, headers, record frames.

``kafka_shim.cext.messages`` makes the bytes.
"""
