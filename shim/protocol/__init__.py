"""Kafka's messages: field tables, typed classes, headers and record frames. Bytes are made and read by ``cext.messages``."""
