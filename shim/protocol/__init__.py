"""Kafka's messages: field tables, typed classes, headers, record frames; ``cext.messages`` makes the bytes."""
