"""Apache Kafka 4.3.1 from its jars on this machine's JVM: one node that is broker and controller, no container."""

from __future__ import annotations

import subprocess

from kafka_shim.targets import jvm
from kafka_shim.targets.base import Power, ProcessTarget, free_ports
from kafka_shim.targets.kafka_jars import classpath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

CLUSTER_ID = "a2Fma2Etc2hpbS10ZXN0cw"


class KafkaNative(ProcessTarget):
    kind = "kafka-native"
    powers = Power.WIRE | Power.PROXY | Power.SETTINGS | Power.KILL | Power.SEEDED

    jvm_options: tuple[str, ...] = ("-Xmx768m",)
    controller_port = 0

    def properties(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"{self.settings.get('node.id', '1')}@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_dir),
            # A killed broker registers again when its old session has ended: 9 s by default.
            "broker.session.timeout.ms": "4000",
            "broker.heartbeat.interval.ms": "1000",
            # There is no other broker to hand over to.
            "controlled.shutdown.enable": "false",
            **self.settings,
        }

    def prepare(self) -> None:
        """Chooses the ports, writes server.properties and formats a new directory; ``start`` calls it."""
        if not self.controller_port:
            port, self.controller_port = free_ports(2)
            self.bootstrap = self.bootstrap or f"127.0.0.1:{port}"
        path = self.properties_path
        path.write_text("".join(f"{name}={value}\n" for name, value in self.properties().items()))
        if not (self.data_dir / "meta.properties").exists():
            jvm.run("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(path), timeout_s=60)

    @property
    def properties_path(self) -> Path:
        return self.data_dir.with_name(self.data_dir.name + ".properties")

    def start(self) -> Self:
        self.prepare()
        log4j = f"-Dlog4j2.configurationFile={jvm.log4j_configuration()}"
        command = ["java", *self.jvm_options, log4j, "-cp", classpath(), "kafka.Kafka", str(self.properties_path)]
        self._spawn(command)
        self.wait_until_it_answers()
        return self

    def close(self) -> None:
        path = self.properties_path if self._data_dir is not None else None
        super().close()
        if path is not None:
            path.unlink(missing_ok=True)


def java_version() -> str:
    """The first line of `java -version`, for reports."""
    done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[0]
