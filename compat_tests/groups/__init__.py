"""Kafka's own assignors, and what else the tests of groups share."""
