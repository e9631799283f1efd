"""Both images: real clients at the published ports, who runs inside, stops, kills and what is left after them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from kafka_shim.compat.clients import Message
from kafka_shim.compat.clients import make as make_client
from kafka_shim.compat.tests.containers.conftest import started
from kafka_shim.targets import TargetError, images
from kafka_shim.targets.base import answers, free_ports
from kafka_shim.targets.container import ContainerTarget
from kafka_shim.targets.waiting import last_answer

# The first test builds the images.
pytestmark = pytest.mark.timeout(900)

COMPOSE = Path(__file__).resolve().parents[3] / "docker" / "compose.yaml"


def new_topic(bootstrap: str, partitions: int = 1) -> str:
    name = f"topic-{os.urandom(4).hex()}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(30)
    return name


def write(bootstrap: str, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def read(bootstrap: str, topic: str, count: int, isolation_level: str = "read_committed") -> list[bytes]:
    """The first `count` values that a new group gets; fewer when a minute does not bring them."""
    options = {"bootstrap.servers": bootstrap, "group.id": f"g-{os.urandom(4).hex()}", "auto.offset.reset": "earliest"}
    consumer = Consumer({**options, "isolation.level": isolation_level})
    found: list[bytes] = []
    try:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 60
        while len(found) < count and time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                found.append(bytes(message.value() or b""))
    finally:
        consumer.close()
    return found


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    return last_answer(condition, bool, seconds)


def inside(target: ContainerTarget, *command: str) -> str:
    """The output of a command run in the container."""
    status, output = target.wrapped.exec_run(list(command))
    assert status == 0, output
    return bytes(output).decode()


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka", "aiokafka"])
def test_a_client_writes_and_reads_at_the_published_port(broker: ContainerTarget, client: str) -> None:
    topic = new_topic(broker.bootstrap)
    sent = [Message(b"value %d" % number, key=b"key", timestamp_ms=1_700_000_000_000) for number in range(20)]
    stock = make_client(client)
    try:
        stock.write(broker.bootstrap, topic, sent, acks="all", codec="gzip")
        got = stock.read(broker.bootstrap, topic, 1, len(sent))
    finally:
        stock.close()
    assert [message.brief() for message in got] == [message.brief() for message in sent]


def test_transactions_commit_and_abort(broker: ContainerTarget) -> None:
    topic = new_topic(broker.bootstrap)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"tx-{os.urandom(4).hex()}"})
    producer.init_transactions(60)
    for value, end in (("kept", producer.commit_transaction), ("dropped", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(30)
        end(30)
    write(broker.bootstrap, topic, "after")
    assert read(broker.bootstrap, topic, 2) == [b"kept", b"after"]
    assert read(broker.bootstrap, topic, 3, "read_uncommitted") == [b"kept", b"dropped", b"after"]


def test_options_come_from_the_environment(broker: ContainerTarget) -> None:
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    found = admin.describe_configs([resource])[resource].result(30)
    assert found["num.partitions"].value == "3"
    assert found["offsets.topic.replication.factor"].value == "1"


def test_nobody_is_root_inside(broker: ContainerTarget) -> None:
    """As the host sees it: Docker now and then loses the output of a command that ends at once."""
    broker.wrapped.exec_run(["sleep", "60"], detach=True)
    users: dict[str, str] = {}
    while "sleep" not in users:
        users = {name: user for user, _, name in broker.wrapped.top(ps_args="-eo uid,pid,comm")["Processes"]}
    assert set(users.values()) == {"1000"}


def test_the_port_is_published_on_the_loopback_alone(broker: ContainerTarget) -> None:
    ports = broker.wrapped.attrs["NetworkSettings"]["Ports"]
    assert ports["9092/tcp"] == [{"HostIp": "127.0.0.1", "HostPort": str(broker.port)}]


def test_records_outlive_a_stop_and_a_kill(broker: ContainerTarget) -> None:
    topic = new_topic(broker.bootstrap)
    write(broker.bootstrap, topic, "one", "two")
    broker.stop()
    assert broker.wrapped.status == "exited"
    assert not answers(broker.host, broker.port)
    broker.start()
    write(broker.bootstrap, topic, "three")
    broker.restart(kill=True)
    assert read(broker.bootstrap, topic, 3) == [b"one", b"two", b"three"]
    write(broker.bootstrap, topic, "four")
    assert read(broker.bootstrap, topic, 4)[-1] == b"four"


def test_the_shim_gets_healthy(shim: ContainerTarget) -> None:
    assert within(60, lambda: shim.wrapped.attrs["State"]["Health"]["Status"] == "healthy")
    assert "ready PLAINTEXT://0.0.0.0:9092 node=1" in shim.log()


def test_the_shim_stops_cleanly_and_at_once(shim: ContainerTarget) -> None:
    write(shim.bootstrap, new_topic(shim.bootstrap), "one")
    shim.stop_timeout_s = 60  # then Docker kills it, and the exit status says so
    shim.stop()
    state = shim.wrapped.attrs["State"]
    assert (state["ExitCode"], state["OOMKilled"]) == (0, False)
    shim.start()


def test_what_does_not_await_signals_stops_at_once_too(containers: None) -> None:
    """The first process of a container is not ended by a signal that it has no handler for: commands, and a broker that
    was about to start, were killed after Docker's ten seconds."""
    line = ["docker", "run", "--detach", images.shim_image(), "zookeeper-server-start", "/dev/null"]
    name = subprocess.run(line, capture_output=True, text=True, check=True, timeout=60).stdout.strip()

    def output(*words: str) -> str:
        return subprocess.run(["docker", *words, name], capture_output=True, text=True, check=True).stdout

    try:
        assert within(30, lambda: "no ZooKeeper is needed" in output("logs"))
        output("stop", "--time", "60")
        assert output("inspect", "--format", "{{.State.ExitCode}}").strip() == "143"
    finally:
        output("rm", "--force")


def test_a_script_that_starts_the_broker_hears_of_a_stop_by_sigterm(containers: None) -> None:
    """As with Kafka's image: such scripts hand on SIGTERM, and are ended by SIGINT without a clean stop."""
    script = '/etc/kafka/docker/run & broker=$!; trap "kill $broker" TERM; wait; wait $broker'
    line = ["docker", "run", "--detach", images.shim_image(), "sh", "-c", script]
    name = subprocess.run(line, capture_output=True, text=True, check=True, timeout=60).stdout.strip()

    def log() -> str:
        words = ["docker", "logs", name]
        return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout

    try:
        assert within(60, lambda: "Kafka Server started" in log())
        subprocess.run(["docker", "stop", "--time", "60", name], capture_output=True, check=True)
        assert "all logs are closed" in log().splitlines()[-1]
    finally:
        subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=True)


def test_the_check_of_health_fails_where_nobody_answers(shim: ContainerTarget) -> None:
    program = "/opt/kafka-shim/bin/python", "/opt/kafka-shim/health.py"
    assert shim.wrapped.exec_run(list(program))[0] == 0
    elsewhere = {"KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9"}
    assert shim.wrapped.exec_run(list(program), environment=elsewhere)[0] == 1


@pytest.mark.parametrize(
    ("check", "down"),
    [
        (["nc", "-z", "localhost", "9092"], ["nc", "-vz", "-w", "5", "localhost", "9"]),
        (
            ["/opt/kafka/bin/kafka-cluster.sh", "cluster-id", "--bootstrap-server", "localhost:9092"],
            ["/opt/kafka/bin/kafka-cluster.sh", "cluster-id", "--bootstrap-server", "localhost:9"],
        ),
    ],
)
def test_checks_of_health_that_are_usual_for_kafkas_image_work(
    shim: ContainerTarget, check: list[str], down: list[str]
) -> None:
    assert shim.wrapped.exec_run(check)[0] == 0
    assert shim.wrapped.exec_run(down)[0] == 1


def test_the_image_of_the_shim_has_no_compiler_and_its_other_commands(shim: ContainerTarget) -> None:
    assert shim.wrapped.exec_run(["sh", "-c", "command -v gcc"])[0] != 0
    topic = new_topic(shim.bootstrap)
    assert topic in inside(shim, "kafka-shim", "topics", "list").split()


def test_a_wrong_value_stops_the_start_and_is_named(containers: None) -> None:
    target = started("shim-container", log_retention_ms="5m")
    try:
        with pytest.raises(TargetError, match=r"log\.retention\.ms"):
            target.start()
    finally:
        target.close()


def test_the_environment_of_other_images_starts_it_too(containers: None) -> None:
    """Unknown options are named and ignored, as Kafka does; the directory gets the cluster's id; a line says what has
    no effect."""
    target = started("shim-container", log_retention_msec="5", broker_id="7")
    # Without listeners: the advertised port, which is another one than that inside, has to do.
    target.variables = {"KAFKA_LISTENERS": "", "CLUSTER_ID": "bmV2ZXIgc2VlbiBiZWZvcg", "KAFKA_JMX_PORT": "9999"}
    with target:
        log = target.log()
        assert "log.retention.msec is not an option of Kafka" in log
        assert "KAFKA_JMX_PORT has no effect" in log
        assert f"clients are told to connect to PLAINTEXT://{target.bootstrap}" in log
        assert "Transitioning from RECOVERY to RUNNING" in log
        admin = AdminClient({"bootstrap.servers": target.bootstrap})
        described = admin.describe_cluster().result(30)
        assert described.cluster_id == "bmV2ZXIgc2VlbiBiZWZvcg"
        assert [node.id for node in described.nodes] == [7]


def test_the_image_is_small(containers: None) -> None:
    """120 MB compressed, with the fastest compression, which makes it larger than registries do."""
    command = f"docker save {images.shim_image()} | gzip -1 | wc -c"
    size = int(subprocess.run(command, shell=True, capture_output=True, check=True).stdout)
    assert size < 120_000_000


def test_the_image_says_what_it_is(containers: None) -> None:
    line = ["docker", "image", "inspect", "--format", "{{json .Config.Labels}}", images.shim_image()]
    labels = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)
    project = tomllib.loads((COMPOSE.parents[1] / "pyproject.toml").read_text())["project"]
    named = [labels.get(f"org.opencontainers.image.{name}") for name in ("title", "version", "licenses")]
    assert named == [project["name"], project["version"], project["license"]]


def test_any_user_may_run_the_image(containers: None) -> None:
    line = ["docker", "run", "--rm", "--user", "12345:0", images.shim_image(), "sh", "-c"]
    formatting = "kafka-storage format -t bmV2ZXIgc2VlbiBiZWZvcg -c /etc/kafka/kafka.properties"
    script = f"/etc/confluent/docker/configure && {formatting}"
    done = subprocess.run([*line, script], capture_output=True, text=True, check=False, timeout=60)
    assert "appears to be for a legacy cluster" in done.stderr  # no process.roles: what Kafka's tool says
    done = subprocess.run([*line[:-2], "topics", "--help"], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.startswith("Usage: kafka-shim topics")


def test_a_command_of_ones_own_finds_the_options_where_kafkas_image_has_them(containers: None) -> None:
    """Start scripts format and start by the file of Kafka's distribution, with options over it."""
    programs, file = "/opt/kafka/bin", "/opt/kafka/config/server.properties"
    script = (
        f"{programs}/kafka-storage.sh format --standalone -t bmV2ZXIgc2VlbiBiZWZvcg -c {file} && "
        f"exec {programs}/kafka-server-start.sh {file} --override log.retention.ms=5m"
    )
    line = ["docker", "run", "--rm", images.shim_image(), "sh", "-c", script]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert "Formatting dynamic metadata voter directory /var/lib/kafka/data" in done.stdout
    assert "log.retention.ms" in done.stderr.splitlines()[-1]


def test_a_volume_of_one_user_serves_another(containers: None) -> None:
    volume = f"kafka-shim-test-{os.getpid()}"
    try:
        for user in ("12345:0", "1000:0"):
            line = ["docker", "run", "--rm", "--detach", "--user", user, "-v", f"{volume}:/var/lib/kafka/data"]
            started = subprocess.run(
                [*line, images.shim_image()], capture_output=True, text=True, check=True, timeout=60
            )
            name = started.stdout.strip()
            try:
                admin = ["docker", "exec", name, "kafka-topics", "--bootstrap-server", "localhost:9092"]
                making = [*admin, "--create", "--if-not-exists", "--topic", "t"]
                assert within(
                    30, lambda words=making: subprocess.run(words, capture_output=True, check=False).returncode == 0
                )
            finally:
                subprocess.run(["docker", "stop", name], capture_output=True, check=True)
    finally:
        subprocess.run(["docker", "volume", "rm", "--force", volume], capture_output=True, check=False)


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (["--user", "12345:12345"], "be of group 0 (docker run --user UID:0)"),
        (["--read-only"], "mount a folder there (docker run --tmpfs /opt/kafka/config)"),
    ],
)
def test_a_container_that_may_not_write_its_options_says_what_to_do(
    containers: None, options: list[str], advice: str
) -> None:
    line = ["docker", "run", "--rm", *options, images.shim_image()]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("error: /opt/kafka/config/server.properties cannot be written: ")
    assert advice in done.stderr


def test_a_read_only_container_with_the_folder_mounted_serves(containers: None) -> None:
    line = ["docker", "run", "--rm", "--detach", "--read-only", "--tmpfs", "/opt/kafka/config", images.shim_image()]
    name = subprocess.run(line, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    try:
        listing = ["docker", "exec", name, "kafka-topics", "--bootstrap-server", "localhost:9092", "--list"]
        assert within(30, lambda: subprocess.run(listing, capture_output=True, check=False).returncode == 0)
    finally:
        subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=True)


def test_the_tools_of_kafka_are_in_its_image(kafka: ContainerTarget) -> None:
    topic = new_topic(kafka.bootstrap)
    listed = inside(kafka, "/opt/kafka/bin/kafka-topics.sh", "--bootstrap-server", "localhost:29092", "--list")
    assert topic in listed.split()
    assert "INFO" not in listed


def test_compose_brings_up_both(containers: None, tmp_path: Path) -> None:
    command = compose_command()
    if command is None:
        pytest.skip("neither `docker compose` nor `docker-compose` is installed")
    ports = free_ports(2)
    environment = {
        **os.environ,
        "KAFKA_SHIM_IMAGE": images.shim_image(),
        "KAFKA_SHIM_KAFKA_IMAGE": images.kafka_image(),
        "KAFKA_SHIM_PORT": str(ports[0]),
        "KAFKA_PORT": str(ports[1]),
    }

    def compose(*words: str) -> Any:
        line = [*command, "-p", f"shim-{ports[0]}", "-f", str(COMPOSE), *words]
        return subprocess.run(line, env=environment, capture_output=True, text=True, check=True, timeout=300)

    with contextlib.ExitStack() as stack:
        stack.callback(compose, "down", "--volumes")
        compose("up", "-d", "--no-build")
        for port in ports:
            assert within(120, lambda at=port: answers("127.0.0.1", at)), compose("logs").stdout[-3000:]
            bootstrap = f"127.0.0.1:{port}"
            topic = new_topic(bootstrap)
            write(bootstrap, topic, "hello")
            assert read(bootstrap, topic, 1) == [b"hello"]


def test_a_compose_file_for_kafka_runs_with_the_image_swapped(containers: None) -> None:
    """Its health check and its init container are Kafka's `kafka-topics.sh`."""
    command = compose_command()
    if command is None:
        pytest.skip("neither `docker compose` nor `docker-compose` is installed")
    (port,) = free_ports(1)
    environment = {**os.environ, "KAFKA_SHIM_IMAGE": images.shim_image(), "KAFKA_SHIM_PORT": str(port)}
    line = [*command, "-p", f"shim-{port}", "-f", str(COMPOSE.with_name("compose.drop-in.yaml"))]

    def compose(*words: str) -> None:
        subprocess.run([*line, *words], env=environment, capture_output=True, text=True, check=True, timeout=300)

    with contextlib.ExitStack() as stack:
        stack.callback(compose, "down", "--volumes")
        compose("up", "-d")
        admin = AdminClient({"bootstrap.servers": f"localhost:{port}"})

        def partitions() -> int:
            topic = admin.list_topics(timeout=30).topics.get("orders")
            return 0 if topic is None else len(topic.partitions)

        assert within(120, lambda: partitions() == 3)


def compose_command() -> list[str] | None:
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0:
        return ["docker", "compose"]
    return ["docker-compose"] if shutil.which("docker-compose") else None
