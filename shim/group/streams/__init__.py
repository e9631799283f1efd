"""Groups of the streams protocol (KIP-1071), as in Apache Kafka 4.3.1."""
