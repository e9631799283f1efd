"""The checker of histories: what clients did and saw, judged by what Kafka promises. Imports nothing of the broker."""
