"""Kafka's messages: field tables, typed message classes, headers and record framing.

``kafka_shim.cext.messages`` encodes and decodes the bytes.
"""
