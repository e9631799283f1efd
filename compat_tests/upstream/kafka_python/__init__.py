"""kafka-python's integration tests, from its source distribution."""

from __future__ import annotations

import os
from pathlib import Path

from kafka_shim.compat.upstream.pytest_suite import PytestSuite
from kafka_shim.targets.kafka_jars import KAFKA_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import ClassVar


class KafkaPython(PytestSuite):
    name = "kafka_python"
    title = "kafka-python, its source distribution on PyPI"
    folder = Path(__file__).resolve().parent
    package = "kafka-python"
    unpacked = ("test",)
    root = "test/integration"
    plugin = "kafka_shim.compat.upstream.kafka_python.plugin"
    # As its own server.properties has it: topics that a producer makes have several partitions, assignments name
    # broker 0, and sessions are short.
    settings: ClassVar[Mapping[str, str]] = {
        "num.partitions": "4",
        "node.id": "0",
        "group.min.session.timeout.ms": "1000",
    }

    def environment(self, bootstrap: str) -> dict[str, str]:
        # KAFKA_URI makes its broker fixture an external one; the other two are read before that is looked at.
        return {
            "KAFKA_URI": f"kafka://{bootstrap or '127.0.0.1:1'}",
            "KAFKA_VERSION": KAFKA_VERSION,
            "KAFKA_ROOT": os.fspath(self.folder),
        }


SUITE = KafkaPython()
