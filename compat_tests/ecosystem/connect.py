"""Kafka Connect, distributed, with exactly-once sources: a worker is killed while lines of a file go through a topic
into another file.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import urllib.error
import urllib.request
from collections import Counter

from kafka_shim.compat.ecosystem import packages, plain
from kafka_shim.compat.ecosystem.base import Lab, Part, PartError, wait_for
from kafka_shim.targets.base import free_ports
from kafka_shim.targets.kafka_jars import KAFKA_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

ARTIFACTS = (
    ("org.apache.kafka", "connect-runtime", KAFKA_VERSION),
    ("org.apache.kafka", "connect-file", KAFKA_VERSION),
    ("org.apache.kafka", "connect-mirror", KAFKA_VERSION),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
)
JVM = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=warn")
LINES = 4000
TOPIC = "connect-lines"
INTERNAL = ("connect-configs", "connect-offsets", "connect-status")
WORKER = {
    "group.id": "connect",
    "exactly.once.source.support": "enabled",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "offset.flush.interval.ms": "500",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "5",
    "status.storage.replication.factor": "1",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
    "rebalance.timeout.ms": "5000",
    "scheduled.rebalance.max.delay.ms": "0",
    "plugin.discovery": "service_load",
    "consumer.isolation.level": "read_committed",
}


class Worker:
    """A worker process. Its REST listener is on a port of its own."""

    def __init__(self, bootstrap: str, libs: Path, scratch: Path, **more: str) -> None:
        self.port = free_ports(1)[0]
        settings = {
            **WORKER,
            "bootstrap.servers": bootstrap,
            "listeners": f"http://127.0.0.1:{self.port}",
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        path = scratch / "worker.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self.log = scratch / "worker.log"
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        self._file = self.log.open("ab")
        self._process = subprocess.Popen(
            ["java", *JVM, "-cp", f"{libs}/*", main, str(path)], stdout=self._file, stderr=subprocess.STDOUT
        )

    def ask(self, path: str, body: dict[str, Any] | None = None, method: str | None = None) -> Any:
        """The answer of the REST interface. Raises OSError while it has none."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def states(self, connector: str) -> list[str]:
        """Of a connector and its tasks; none while the worker cannot say."""
        try:
            status = self.ask(f"/connectors/{connector}/status")
        except OSError:
            return []
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

    def wait_until_running(self, *connectors: str) -> None:
        for name in connectors:
            wait_for(f"{name} to run", lambda name=name: self.states(name) == ["RUNNING"] * 2, self.log)  # type: ignore[misc]

    def create(self, name: str, **config: str) -> None:
        """Makes a connector as soon as the worker takes it: it answers 404 before, 409 while it rebalances."""

        def accepted() -> bool:
            if self._process.poll() is not None:
                raise PartError(f"the worker ended: {self.log.read_text(errors='replace')[-2000:]}")
            given = {key.replace("_", "."): value for key, value in config.items()}
            try:
                self.ask("/connectors", {"name": name, "config": given})
            except urllib.error.HTTPError as refused:
                if refused.code in {404, 409, 503}:
                    return False
                raise PartError(f"{name} was refused: {refused.read()!r}") from None
            except OSError:
                return False
            return True

        wait_for(f"{name} to be taken", accepted, self.log)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._file.close()


class Connect(Part):
    name = "connect"
    title = "Kafka Connect"
    what = "distributed worker with exactly-once sources, file to topic to file; the worker is killed and started again"
    version = KAFKA_VERSION

    _libs: Path

    def prepare(self) -> None:
        self._libs = packages.jars("connect", ARTIFACTS)

    def run(self, lab: Lab) -> list[str]:
        source, sink = lab.scratch / "in.txt", lab.scratch / "out.txt"
        for path in (source, sink):
            path.unlink(missing_ok=True)
        lines = [f"line {number}" for number in range(LINES)]
        source.touch()
        plain.create(lab.bootstrap, TOPIC)
        worker = Worker(lab.bootstrap, self._libs, lab.scratch)
        try:
            worker.create(
                "source",
                connector_class="org.apache.kafka.connect.file.FileStreamSourceConnector",
                tasks_max="1",
                file=str(source),
                topic=TOPIC,
                # A batch that is full leaves lines in the source's buffer until the file grows.
                batch_size=str(2 * LINES),
                exactly_once_support="required",
                transaction_boundary="poll",
            )
            worker.create(
                "sink",
                connector_class="org.apache.kafka.connect.file.FileStreamSinkConnector",
                tasks_max="1",
                file=str(sink),
                topics=TOPIC,
            )
            left = iter(lines)

            def is_at_work() -> bool:
                # Some lines at a time, each time a transaction or two.
                with source.open("a") as file:
                    file.writelines(f"{line}\n" for line in itertools.islice(left, 50))
                return len(plain.read(lab.bootstrap, TOPIC)) >= 200

            wait_for("lines", is_at_work, worker.log)
            worker.kill()
            with source.open("a") as file:
                file.writelines(f"{line}\n" for line in left)
            worker = Worker(lab.bootstrap, self._libs, lab.scratch)
            worker.wait_until_running("source", "sink")
            wait_for("the last line", lambda: sink.exists() and lines[-1] in sink.read_text().splitlines(), worker.log)
            return self._findings(lab.bootstrap, worker, lines, sink)
        finally:
            worker.kill()

    @staticmethod
    def _findings(bootstrap: str, worker: Worker, lines: list[str], sink: Path) -> list[str]:
        values = [str((message.value() or b"").decode()) for message in plain.read(bootstrap, TOPIC)]
        written = Counter(sink.read_text().splitlines())
        offsets = worker.ask("/connectors/source/offsets")["offsets"]
        return [
            f"topic: {len(values)} lines, each once and in order: {values == lines}",
            f"sink: lines missing: {len(set(lines) - set(written))}, unknown: {len(set(written) - set(lines))}",
            f"states: {worker.states('source')} {worker.states('sink')}",
            f"position of the source: {[each['offset'] for each in offsets]}",
            *(f"{name}: cleanup.policy={plain.config(bootstrap, name, 'cleanup.policy')}" for name in INTERNAL),
        ]


PARTS: dict[str, Part] = {"connect": Connect()}
