"""The suites: which test classes of which jar. Every class that ends in a harness belongs to one of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from kafka_shim.compat.upstream.apache_kafka.scan import Scan, scan
from kafka_shim.targets.kafka_jars import (
    KAFKA_VERSION,
    STREAMS_TEST_ARTIFACTS,
    TEST_ARTIFACTS,
    streams_test_libs,
    test_libs,
)

LISTS = Path(__file__).resolve().parent / "lists"
SAMPLE = LISTS / "sample.txt"
_CONSUMER = "org.apache.kafka.clients.consumer."


@dataclass(frozen=True)
class Suite:
    name: str
    jar: str
    """Artifact of the test jar."""
    within: str = ""
    """Start of the class names; empty: all that no other suite of the jar takes."""

    def classes(self) -> list[str]:
        """Return the names of its test classes."""
        counted = scans()[self.jar].counted
        if self.within:
            return [name for name in counted if name.startswith(self.within)]
        others = tuple(other.within for other in SUITES if other.jar == self.jar and other.within)
        return [name for name in counted if not name.startswith(others)] if others else counted

    @property
    def list_path(self) -> Path:
        return LISTS / f"{self.name}.list"


SUITES = (
    Suite("consumer", "kafka-clients-integration-tests", _CONSUMER),
    Suite("clients", "kafka-clients-integration-tests"),
    Suite("tools", "kafka-tools"),
    Suite("core", "kafka_2.13"),
    Suite("server", "kafka-server"),
    Suite("storage", "kafka-storage"),
    Suite("harness", "kafka-test-common-runtime"),
    Suite("streams", "kafka-streams-integration-tests"),
)


@functools.cache
def scans() -> dict[str, Scan]:
    """Return the scan of each test jar, by artifact."""
    folders = ((test_libs(), TEST_ARTIFACTS), (streams_test_libs(), STREAMS_TEST_ARTIFACTS))
    return scan({row[1]: libs / f"{row[1]}-{KAFKA_VERSION}-test.jar" for libs, rows in folders for row in rows})


def sample() -> list[str]:
    """Return the tests that `make test` runs."""
    return [line for line in SAMPLE.read_text().splitlines() if line and not line.startswith("#")]
