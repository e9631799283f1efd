"""Metrics that clients push to the broker (KIP-714): who pushes what how often, and what becomes of it."""
