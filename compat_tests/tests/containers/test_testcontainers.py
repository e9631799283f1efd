"""The image in the Kafka modules of Testcontainers, unchanged: each starts it by a script of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from testcontainers.community.kafka import KafkaContainer

from kafka_shim.targets import images

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def image(containers: None) -> str:
    os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
    return images.shim_image()


@pytest.mark.parametrize("mode", ["with ZooKeeper", "in KRaft mode"])
def test_the_module_for_python(image: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    container = KafkaContainer(image)
    if mode == "in KRaft mode":
        # It compares the tag with versions of Confluent's image.
        monkeypatch.setattr(container, "_verify_min_kraft_version", lambda: None)
        container.with_kraft()
    with container:
        bootstrap = container.get_bootstrap_server()
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce("events", b"hello", b"key")
        assert producer.flush(30) == 0
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["events"])
        try:
            message = consumer.poll(30)
            assert message is not None
            assert (message.key(), message.value()) == (b"key", b"hello")
        finally:
            consumer.close()
        cluster = producer.list_topics().cluster_id
        if mode == "in KRaft mode":
            assert cluster == container.cluster_id


MODULES = Path(__file__).resolve().parent / "modules"
JAVA_MODULE, GO_MODULE, NODE_MODULE = "2.0.3", "v0.40.0", "10"


def run_in(folder: Path, *line: str) -> None:
    subprocess.run(line, cwd=folder, check=True, timeout=600, env={**os.environ, "GOFLAGS": "-mod=mod"})


def java(folder: Path) -> list[str]:
    (folder / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>m</groupId>'
        "<artifactId>m</artifactId><version>1</version><dependencies><dependency><groupId>org.testcontainers</groupId>"
        f"<artifactId>testcontainers-kafka</artifactId><version>{JAVA_MODULE}</version></dependency></dependencies>"
        "</project>"
    )
    run_in(folder, "mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs")
    shutil.copy(MODULES / "Modules.java", folder)
    run_in(folder, "javac", "-cp", "libs/*", "Modules.java")
    return ["java", "-cp", "libs/*:.", "Modules"]


def go(folder: Path) -> list[str]:
    need = f"require github.com/testcontainers/testcontainers-go/modules/kafka {GO_MODULE}"
    (folder / "go.mod").write_text(f"module modules\n\ngo 1.24.0\n\n{need}\n")
    shutil.copy(MODULES / "main.go", folder)
    run_in(folder, "go", "mod", "tidy")
    run_in(folder, "go", "build", "-o", "modules", ".")
    return ["./modules"]


def node(folder: Path) -> list[str]:
    (folder / "package.json").write_text("{}")
    run_in(folder, "npm", "install", "--silent", "--no-audit", "--no-fund", f"@testcontainers/kafka@{NODE_MODULE}")
    shutil.copy(MODULES / "modules.mjs", folder)
    return ["node", "modules.mjs"]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("make", "needs", "words"),
    [
        pytest.param(java, "mvn", ["apache"], id="Java, KafkaContainer"),
        pytest.param(java, "mvn", ["confluent"], id="Java, ConfluentKafkaContainer"),
        pytest.param(go, "go", [], id="Go"),
        pytest.param(node, "npm", [], id="Node"),
    ],
)
def test_the_modules_for_other_languages(image: str, tmp_path: Path, make, needs: str, words: list[str]) -> None:
    """The program of each prints where its container is, once the module has found it ready."""
    if shutil.which(needs) is None:
        pytest.skip(f"{needs} is not installed")
    line = [*make(tmp_path), *words, image]
    # Without its checks at a start, which run an image from a registry.
    environment = {**os.environ, "TESTCONTAINERS_CHECKS_DISABLE": "true"}
    with subprocess.Popen(
        line, cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        word, bootstrap, took_ms = program.stdout.readline().split()
        assert word == "ready"
        print(f"{line[0]} {words}: ready after {took_ms} ms")
        try:
            producer = Producer({"bootstrap.servers": bootstrap})
            producer.produce("events", b"hello")
            assert producer.flush(30) == 0
        finally:
            program.communicate("\n", timeout=120)
    assert program.returncode == 0
