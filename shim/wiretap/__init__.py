"""Records, replays and compares the Kafka protocol traffic between clients and brokers. This package imports nothing of
the broker.
"""
