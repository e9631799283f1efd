"""Apache Kafka 4.3.1 from its jars on this machine's JVM: one node that is broker and controller, no container."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from kafka_shim.targets import class_archive, jvm
from kafka_shim.targets.base import Power, ProcessTarget, free_ports
from kafka_shim.targets.kafka_jars import LIBS, classpath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

CLUSTER_ID = "a2Fma2Etc2hpbS10ZXN0cw"
FORMATTED = ("meta.properties", "bootstrap.checkpoint")
# What Kafka's start scripts pass (KAFKA_HEAP_OPTS, KAFKA_JVM_PERFORMANCE_OPTS), for measurements.
AS_SHIPPED = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
# A killed broker can register again only after its old session has expired: 9 s by default. A clean stop ends the
# session by controlled shutdown. Where none waits for that, a machine that lets the JVM stand still for seconds must
# not make its controller take it for gone: topics have no leader then, and none can be created.
SHORT_SESSION = {"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "1000"}
LONG_SESSION = {**SHORT_SESSION, "broker.session.timeout.ms": "60000"}


class KafkaNative(ProcessTarget):
    kind = "kafka-native"
    powers = Power.WIRE | Power.PROXY | Power.SETTINGS | Power.KILL | Power.SEEDED | Power.CONTROLLER

    jvm_options: tuple[str, ...] = class_archive.SHORT_LIVED
    controller_port = 0
    _is_killed = False
    _was_stopped = False

    def properties(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"{self.settings.get('node.id', '1')}@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_dir),
            **({} if self.is_measured else SHORT_SESSION if self._is_killed else LONG_SESSION),
            **self.settings,
        }

    @property
    def controller(self) -> str:
        """The address of the controller's listener."""
        return f"127.0.0.1:{self.controller_port}"

    @property
    def is_measured(self) -> bool:
        return self.jvm_options == AS_SHIPPED

    def prepare_for_measuring(self) -> None:
        self.jvm_options = AS_SHIPPED

    def prepare(self) -> None:
        """Chooses the ports, writes server.properties and formats a new directory; ``start`` calls it."""
        if not self.controller_port:
            port, self.controller_port = free_ports(2)
            self.bootstrap = self.bootstrap or f"127.0.0.1:{port}"
        is_formatted = (self.data_dir / "meta.properties").exists()
        # What others left may be a killed broker's.
        self._is_killed = is_formatted and not self._was_stopped
        path = self.properties_path
        path.write_text("".join(f"{name}={value}\n" for name, value in self.properties().items()))
        if not is_formatted:
            self._format()

    def _format(self) -> None:
        """Formats the directory. The tool runs once for each node id; its result is reused for other directories
        without a JVM.
        """
        options = [row for row in sorted(self.properties().items()) if row[0].startswith(("node.id", "unstable."))]
        kept = LIBS.parent / f"formatted-{hashlib.sha256(repr(options).encode()).hexdigest()[:12]}"
        if not kept.is_dir():
            jvm.run("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self.properties_path))
            with tempfile.TemporaryDirectory(prefix="formatted-", dir=LIBS.parent) as scratch:
                for name in FORMATTED:
                    shutil.copy2(self.data_dir / name, scratch)
                with contextlib.suppress(OSError):  # another process was first
                    Path(scratch).rename(kept)
                    Path(scratch).mkdir()  # for its own end
        else:
            self.data_dir.mkdir(parents=True, exist_ok=True)
            for name in FORMATTED:
                shutil.copy2(kept / name, self.data_dir)

    @property
    def properties_path(self) -> Path:
        return self.data_dir.with_name(self.data_dir.name + ".properties")

    def start(self) -> Self:
        self.prepare()
        log4j = f"-Dlog4j2.configurationFile={jvm.log4j_configuration()}"
        archive = () if self.is_measured else class_archive.options()
        options = [*archive, *self.jvm_options, log4j, "-cp", classpath()]
        command = ["java", *options, "kafka.Kafka", str(self.properties_path)]
        self._was_stopped = False
        self._spawn(command)
        self.wait_until_it_answers()
        return self

    def stop(self) -> None:
        process = self.process
        super().stop()
        if process is not None:
            self._was_stopped = process.returncode != -signal.SIGKILL

    def close(self) -> None:
        path = self.properties_path if self._data_dir is not None else None
        super().close()
        if path is not None:
            path.unlink(missing_ok=True)


def java_version() -> str:
    """The first line of `java -version`, for reports."""
    done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[0]
