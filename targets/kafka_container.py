"""Apache Kafka in a container: the official image, or an equal one from the same jars if it cannot be pulled.

``KAFKA_SHIM_KAFKA_IMAGE`` names another.
"""

from __future__ import annotations

from kafka_shim.targets.class_archive import SHORT_LIVED
from kafka_shim.targets.container import BROKER_PORT, ContainerTarget
from kafka_shim.targets.images import kafka_image
from kafka_shim.targets.kafka_native import CLUSTER_ID

# Kafka sends requests to its own transaction coordinator at its advertised address. The published port is not reachable
# from inside the container, so the broker has a separate listener for them.
INSIDE_PORT, CONTROLLER_PORT = 29092, 29093


class KafkaContainer(ContainerTarget):
    kind = "kafka-container"

    jvm_options: tuple[str, ...] = SHORT_LIVED

    def image(self) -> str:
        return kafka_image()

    def options(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"{self.settings.get('node.id', '1')}@localhost:{CONTROLLER_PORT}",
            "listeners": f"PLAINTEXT://0.0.0.0:{BROKER_PORT},INSIDE://localhost:{INSIDE_PORT},"
            f"CONTROLLER://localhost:{CONTROLLER_PORT}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap},INSIDE://localhost:{INSIDE_PORT}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": "/var/lib/kafka/data",
            # A killed broker can register again only after its old session has expired, which is 9 s by default: with
            # less, one that stands still on a busy machine is taken for gone.
            "broker.heartbeat.interval.ms": "1000",
            **self.settings,
        }

    def environment(self) -> dict[str, str]:
        heap = [option for option in self.jvm_options if option.startswith(("-Xmx", "-Xms"))]
        others = [option for option in self.jvm_options if option not in heap]
        variables = {"CLUSTER_ID": CLUSTER_ID, "KAFKA_HEAP_OPTS": " ".join(heap)}
        if others:
            variables["KAFKA_JVM_PERFORMANCE_OPTS"] = " ".join(others)
        return {**super().environment(), **variables}
