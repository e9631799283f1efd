"""Clients in Go, JavaScript and Rust, by an application of ours with each. Two of JavaScript bring librdkafka, the
others implement the protocol themselves.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import MappingProxyType

from kafka_shim.compat.ecosystem.base import Lab, Part, run_program
from kafka_shim.compat.ecosystem.packages import CACHE, HERE, key
from kafka_shim.compat.upstream.base import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class BuiltClient(Part):
    """A program that a toolchain makes in a folder of its own, once for each content."""

    source: str
    place: str
    """Of the program in that folder."""
    runner: Sequence[str] = ()
    """What runs the program, if it does not run itself."""
    steps: Sequence[Sequence[str]] = ()
    """Commands in that folder; the first word of each must be installed."""
    environment: Mapping[str, str] = MappingProxyType({})
    """Of the commands."""

    def manifest(self) -> tuple[str, str]:
        """Name and text of the file that names the packages."""
        raise NotImplementedError

    @property
    def _folder(self) -> Path:
        return CACHE / f"{self.name}-{key(self.manifest(), (HERE / self.source).read_bytes())}"

    def prepare(self) -> None:
        folder = self._folder
        for command in [*self.steps, *([self.runner] if self.runner else [])]:
            if shutil.which(command[0]) is None:
                raise Unavailable(f"no {command[0]}")
        if folder.is_dir():
            return
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="build-", dir=CACHE) as scratch:
            made = Path(scratch) / "made"
            made.mkdir()
            name, text = self.manifest()
            (made / name).write_text(text)
            program = made / (self.place if self.runner else self.source_name)
            program.parent.mkdir(exist_ok=True)
            shutil.copy(HERE / self.source, program)
            for step in self.steps:
                done = subprocess.run(
                    step, cwd=made, env={**os.environ, **self.environment}, capture_output=True, text=True, check=False
                )
                if done.returncode:
                    raise Unavailable(f"{' '.join(step)} failed: {done.stderr.strip()[-500:]}")
            made.rename(folder)

    source_name = ""
    """Of the source in that folder, where it is not the program."""

    def run(self, lab: Lab) -> list[str]:
        line = [*self.runner, str(self._folder / self.place), lab.bootstrap]
        return run_program(line, lab.scratch / f"{self.name}.log")


class Sarama(BuiltClient):
    name = "sarama"
    title = "sarama (Go)"
    what = "idempotent and transactional producers, a consumer group, an admin"
    version = "1.61.1"
    source, source_name, place = "go/SaramaClient.go", "main.go", "client"
    steps = (("go", "mod", "tidy"), ("go", "build", "-o", "client", "."))

    def manifest(self) -> tuple[str, str]:
        return "go.mod", f"module client\n\ngo 1.24\n\nrequire github.com/IBM/sarama v{self.version}\n"


class NodeClient(BuiltClient):
    """A package of npm."""

    package: str
    place = "client.mjs"
    runner = ("node",)
    steps: tuple[tuple[str, ...], ...] = (("npm", "install", "--silent", "--no-audit", "--no-fund"),)

    def manifest(self) -> tuple[str, str]:
        return "package.json", f'{{"private": true, "dependencies": {{"{self.package}": "{self.version}"}}}}\n'


class KafkaJs(NodeClient):
    name = "kafkajs"
    title = "kafkajs (Node)"
    what = "idempotent and transactional producers, offsets in a transaction, a group of two members, an admin"
    version = "2.2.4"
    source = "node/kafkajs_client.mjs"
    package = "kafkajs"


class BoundToLibrdkafka(NodeClient):
    """A client that npm compiles with its own copy of librdkafka, against this machine's OpenSSL and zlib."""

    # With several jobs node-gyp's make does not wait for librdkafka's configure, and Confluent's package would fetch
    # libraries to link with by other ways than npm's.
    environment = MappingProxyType({"JOBS": "1", "CKJS_LINKING": "dynamic"})
    steps = (("npm", "install", "--no-audit", "--no-fund"),)


class ConfluentJavaScript(BoundToLibrdkafka):
    name = "confluent-javascript"
    title = "confluent-kafka-javascript (Node)"
    what = "a group of the new protocol copies a topic in transactions with its offsets and fails on the way, an admin"
    version = "1.10.1"
    source = "node/confluent_client.mjs"
    package = "@confluentinc/kafka-javascript"


class NodeRdKafka(BoundToLibrdkafka):
    name = "node-rdkafka"
    title = "node-rdkafka (Node)"
    what = "a consumer copies a topic in transactions with its offsets, some of which are aborted, an admin"
    version = "3.6.1"
    source = "node/rdkafka_client.mjs"
    package = "node-rdkafka"


class RsKafka(BuiltClient):
    name = "rskafka"
    title = "rskafka (Rust)"
    what = "topics, all compressions, records without values, deleted records"
    version = "0.6.0"
    source, source_name, place = "rust/rskafka_client.rs", "src/main.rs", "target/debug/client"
    steps = (("cargo", "build", "--quiet"),)

    def manifest(self) -> tuple[str, str]:
        kinds = ", ".join(f'"compression-{name}"' for name in ("gzip", "lz4", "snappy", "zstd"))
        return "Cargo.toml", (
            '[package]\nname = "client"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n'
            f'rskafka = {{ version = "={self.version}", features = [{kinds}] }}\n'
            'tokio = { version = "1", features = ["macros", "rt-multi-thread"] }\n'
        )


PARTS: dict[str, Part] = {
    part.name: part for part in (Sarama(), KafkaJs(), ConfluentJavaScript(), NodeRdKafka(), RsKafka())
}
