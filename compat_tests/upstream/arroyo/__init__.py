"""The Kafka tests of arroyo (Sentry's library of stream processors on confluent-kafka), from its source distribution.

confluent-kafka's own distribution has no tests; these drive the installed confluent-kafka and its librdkafka:
rebalances while paused, committed offsets, resets, and the consumer protocol of KIP-848.
"""

from __future__ import annotations

from pathlib import Path

from kafka_shim.compat.upstream.pytest_suite import PytestSuite


class Arroyo(PytestSuite):
    name = "arroyo"
    title = "arroyo on confluent-kafka, its source distribution on PyPI"
    folder = Path(__file__).resolve().parent
    package = "sentry-arroyo"
    pinned = "2.48.0"
    unpacked = ("arroyo", "tests")
    plugin = "kafka_shim.compat.upstream.arroyo.plugin"
    files = ("tests/backends/test_kafka.py", "tests/test_kip848_e2e.py")

    def environment(self, bootstrap: str) -> dict[str, str]:
        return {"DEFAULT_BROKERS": bootstrap}


SUITE = Arroyo()
