"""librdkafka's share consumer with implicit acknowledgement, in its own process: implicit BOOTSTRAP GROUP TOPIC."""

from __future__ import annotations

import sys

from confluent_kafka import ShareConsumer


def main(mode: str, bootstrap: str, group: str, topic: str) -> None:
    assert mode == "implicit", mode
    consumer = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.subscribe([topic])
    while True:
        for message in consumer.poll(0.2):
            value = (message.value() or b"").decode()
            print("record", message.topic(), message.partition(), message.offset(), -1, value, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
