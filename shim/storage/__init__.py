"""Partition logs in Apache Kafka's file formats. Entry points: `logs.Logs` and `log.PartitionLog`."""
