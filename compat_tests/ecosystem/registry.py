"""Apicurio's schema registry with a topic as its store, killed and started again; asked as Confluent's is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from kafka_shim.compat.ecosystem import plain
from kafka_shim.compat.ecosystem.base import Lab, Part, PartError, wait_for
from kafka_shim.compat.ecosystem.packages import CACHE
from kafka_shim.compat.upstream.base import Unavailable
from kafka_shim.targets.base import free_ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = "3.0.9"
JOURNAL = "kafkasql-journal"
API = "/apis/ccompat/v7"


def avro(*fields: tuple[str, Any]) -> dict[str, str]:
    record = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": name, "type": kind} for name, kind in fields],
    }
    return {"schema": json.dumps(record)}


class Server:
    """A process of the registry."""

    def __init__(self, home: Path, bootstrap: str, log: Path) -> None:
        self.port, management = free_ports(2)
        self.log = log
        environment = {
            **os.environ,
            "APICURIO_STORAGE_KIND": "kafkasql",
            "APICURIO_KAFKASQL_BOOTSTRAP_SERVERS": bootstrap,
            "QUARKUS_HTTP_HOST": "127.0.0.1",
            "QUARKUS_HTTP_PORT": str(self.port),
            "QUARKUS_MANAGEMENT_PORT": str(management),
        }
        self._file = log.open("ab")
        options = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
        jar = next(path for path in home.rglob("*runner.jar"))
        self._process = subprocess.Popen(
            ["java", *options, "-jar", str(jar)],
            cwd=home,
            env=environment,
            stdout=self._file,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_for("the registry", self._answers, log)
        except BaseException:
            self.kill()  # nobody else knows of it yet
            raise

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise PartError(f"the registry ended: {self.log.read_text(errors='replace')[-2000:]}")
        try:
            return isinstance(self.ask("/subjects"), list)
        except OSError:
            return False

    def ask(self, path: str, body: dict[str, Any] | None = None, method: str | None = None) -> Any:
        """The answer, or the number of the refusal."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{API}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as refused:
            return refused.code

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._file.close()


class Registry(Part):
    name = "registry"
    title = "Apicurio Registry on a topic"
    what = "schemas, a refused incompatible one, a deleted version; killed and started again on its topic"
    version = VERSION

    @property
    def _home(self) -> Path:
        return CACHE / f"apicurio-{VERSION}"

    def prepare(self) -> None:
        if self._home.is_dir():
            return
        if shutil.which("mvn") is None:
            raise Unavailable("no Maven")
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=CACHE) as scratch:
            artifact = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
            line = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={scratch}"]
            done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=scratch)
            if done.returncode:
                raise Unavailable(f"it cannot be fetched: {done.stdout.strip()[-500:]}")
            with tarfile.open(next(Path(scratch).glob("*.tar.gz"))) as archive:
                archive.extractall(Path(scratch) / "unpacked", filter="data")
            (Path(scratch) / "unpacked").rename(self._home)

    def run(self, lab: Lab) -> list[str]:
        log = lab.scratch / "registry.log"
        server = Server(self._home, lab.bootstrap, log)
        found = []
        try:
            subject = "/subjects/orders-value"
            first, second = avro(("id", "long")), avro(("id", "long"), ("note", ["null", "string"]))
            second = {"schema": second["schema"].replace('["null", "string"]', '["null", "string"], "default": null')}
            found.append(f"first: {server.ask(f'{subject}/versions', first)}")
            found.append(f"again: {server.ask(f'{subject}/versions', first)}")
            found.append(f"level: {server.ask('/config/orders-value', {'compatibility': 'BACKWARD'}, 'PUT')}")
            found.append(f"second: {server.ask(f'{subject}/versions', second)}")
            found.append(f"incompatible: {server.ask(f'{subject}/versions', avro(('id', 'string')))}")
            found.append(f"other: {server.ask('/subjects/other-value/versions', avro(('name', 'string')))}")
            found.append(f"deleted: {server.ask('/subjects/other-value', method='DELETE')}")
        finally:
            server.kill()
        server = Server(self._home, lab.bootstrap, log)
        try:
            found.append(f"after a kill: {server.ask('/subjects')} {server.ask(f'{subject}/versions')}")
            found.append(f"level after a kill: {server.ask('/config/orders-value')}")
            found.append(f"by id: {server.ask('/schemas/ids/1')}")
            found.append(f"third: {server.ask('/subjects/third-value/versions', avro(('more', 'int')))}")
        finally:
            server.kill()
        policy = plain.config(lab.bootstrap, JOURNAL, "cleanup.policy")
        found.append(f"journal: cleanup.policy={policy}, records: {len(plain.read(lab.bootstrap, JOURNAL)) > 0}")
        return found


PARTS: dict[str, Part] = {"registry": Registry()}
