"""Frameworks that an application is compiled with: Spring Kafka and Flink."""

from __future__ import annotations

from kafka_shim.compat.ecosystem import packages
from kafka_shim.compat.ecosystem.base import Lab, Part, run_program
from kafka_shim.targets.kafka_jars import KAFKA_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = (
    *("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    # Flink's serialisers look inside of classes of the JDK.
    *("--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED"),
)


class JavaProgram(Part):
    """A program of ours in ``java/``, which gets the broker's address and prints its findings."""

    def __init__(self, name: str, title: str, what: str, program: str, *artifacts: tuple[str, str, str]) -> None:
        self.name, self.title, self.what = name, title, what
        self.program = program
        self.artifacts = artifacts
        self.version = artifacts[0][2]

    _libs: Path
    _classes: Path

    def prepare(self) -> None:
        self._libs = packages.jars(self.name, self.artifacts)
        self._classes = packages.compiled(self.program, self._libs)

    def run(self, lab: Lab) -> list[str]:
        line = ["java", *OPTIONS, "-cp", f"{self._classes}:{self._libs}/*", self.program, lab.bootstrap]
        return run_program(line, lab.scratch / f"{self.name}.log")


FLINK = "2.0.1"
PARTS: dict[str, Part] = {
    "spring": JavaProgram(
        "spring",
        "Spring Kafka",
        "a listener container copies a topic in transactions of KafkaTransactionManager and fails on the way",
        "SpringApplication",
        ("org.springframework.kafka", "spring-kafka", "4.1.2"),
        ("org.apache.kafka", "kafka-clients", KAFKA_VERSION),
        ("org.slf4j", "slf4j-simple", "2.0.17"),
    ),
    "flink": JavaProgram(
        "flink",
        "Apache Flink's Kafka connector",
        "source to exactly-once sink, with a failure at work and one between the phases of a commit",
        "FlinkApplication",
        ("org.apache.flink", "flink-connector-kafka", "4.0.1-2.0"),
        ("org.apache.flink", "flink-clients", FLINK),
        ("org.apache.flink", "flink-streaming-java", FLINK),
        ("org.apache.flink", "flink-connector-base", FLINK),
        ("org.slf4j", "slf4j-simple", "1.7.36"),
    ),
}
