"""Reads a topic with librdkafka up to its end, for tests, pipelines and benchmarks."""

from __future__ import annotations

import contextlib
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from confluent_kafka import Message

# Settings of every client of librdkafka here: what it logs of a broker that stops is no news.
QUIET = {"log_level": 0}
PATIENCE_S = 120


def read(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[Message]:
    """Returns all records up to the ends of the partitions as they are now, and none if the topic does not exist.
    Raises KafkaException for an error of a partition, TimeoutError if one does not come to its end."""
    consumer = Consumer(
        {
            **QUIET,
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",  # the first records may be deleted
        }
    )
    with contextlib.closing(consumer):
        waiting = set(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in waiting])
        found: list[Message] = []
        give_up_s = time.monotonic() + PATIENCE_S
        while waiting:
            if time.monotonic() > give_up_s:
                raise TimeoutError(f"partitions {sorted(waiting)} of {topic} did not end within {PATIENCE_S} s")
            for message in consumer.consume(10_000, timeout=1):
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    waiting.discard(message.partition())
                else:
                    raise KafkaException(error)
        return found
