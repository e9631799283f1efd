"""Apache Kafka in a container, through testcontainers. ``KAFKA_SHIM_KAFKA_IMAGE`` names another image than the official
one; ``docker/reference-kafka/`` builds an equal image where no image registry can be reached."""

from __future__ import annotations

import os
import time
from typing import Any, Self

from compat_tests.targets.base import Power, Target, TargetError, answers, free_ports

IMAGE = "apache/kafka:4.3.1"


class KafkaContainer(Target):
    kind = "kafka-container"
    powers = Power.WIRE | Power.PROXY | Power.SETTINGS | Power.KILL

    container: Any = None

    def environment(self, port: int) -> dict[str, str]:
        options = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": "1@localhost:29093",
            "listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://localhost:29093",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            **self.settings,
        }
        # Kafka's image reads options from variables: a dot is an underscore.
        return {"KAFKA_" + name.upper().replace(".", "_"): value for name, value in options.items()}

    def start(self) -> Self:
        if self.container is not None:
            self.container.get_wrapped_container().start()
            self._wait()
            return self
        # The reaper is an image of its own, which only a registry has; `close` removes the container.
        os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
        from testcontainers.core.container import DockerContainer

        port = free_ports(1)[0]
        self.bootstrap = f"127.0.0.1:{port}"
        container = DockerContainer(os.environ.get("KAFKA_SHIM_KAFKA_IMAGE", IMAGE))
        container.ports[9092] = ("127.0.0.1", port)
        for name, value in self.environment(port).items():
            container = container.with_env(name, value)
        self.container = container
        container.start()
        self._wait()
        return self

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while not answers(self.host, self.port):
            wrapped = self.container.get_wrapped_container()
            wrapped.reload()
            if wrapped.status == "exited" or time.monotonic() > deadline:
                raise TargetError(f"the container did not answer:\n{self.log()[-3000:]}")
            time.sleep(0.1)

    def log(self) -> str:
        if self.container is None:
            return ""
        output, errors = self.container.get_logs()
        return output.decode(errors="replace") + errors.decode(errors="replace")

    def stop(self) -> None:
        if self.container is not None:
            self.container.get_wrapped_container().stop(timeout=30)

    def kill(self) -> None:
        self.container.get_wrapped_container().kill()

    def close(self) -> None:
        if self.container is not None:
            self.container.stop(force=True)
            self.container = None
