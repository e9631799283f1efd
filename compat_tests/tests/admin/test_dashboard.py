"""Each query of the dashboard for Grafana returns data from a Prometheus that watches a broker under load, and the file
loses nothing when it is read by what Grafana publishes of its schema."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_shim.client.cluster import Cluster
from kafka_shim.client.requests import make
from kafka_shim.targets.base import free_ports
from kafka_shim.targets.shim_process import ROOT, ShimProcess
from kafka_shim.wire_client import check

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

BOARD = json.loads((ROOT / "docs" / "grafana" / "kafka-shim.json").read_text())
QUERIES = [target["expr"] for panel in BOARD["panels"] for target in panel.get("targets", ())]
TOPIC = "orders"


def test_the_file_is_of_grafanas_schema() -> None:
    """The package has a class for each part of the schema; what a class does not know is lost."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard

    read = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(BOARD)))
    lost: list[str] = []
    compare("", BOARD, read, lost)
    assert lost == []


def compare(where: str, ours: object, theirs: object, lost: list[str]) -> None:
    """Adds to `lost` where `theirs` lacks a part of `ours`."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            if key in theirs:
                compare(f"{where}.{key}", value, theirs[key], lost)
            else:
                lost.append(f"{where}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            compare(f"{where}[{number}]", one, other, lost)
    elif ours != theirs:
        lost.append(f"{where}: {ours!r} became {theirs!r}")


@pytest.fixture
def broker() -> Iterator[ShimProcess]:
    with ShimProcess({"kafka.shim.http.listener": "127.0.0.1:0"}) as target:
        yield target


@pytest.fixture
def prometheus(broker: ShimProcess, tmp_path: Path) -> Iterator[str]:
    """The address of a Prometheus that looks at the broker every second."""
    program = shutil.which("prometheus")
    if program is None:
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "prometheus"], check=True)
        program = "prometheus"
    host = broker.http_address.removeprefix("http://")
    config = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "kafka-shim", "static_configs": [{"targets": [host]}]}],
    }
    path = tmp_path / "prometheus.yml"
    path.write_text(json.dumps(config))
    (port,) = free_ports(1)
    words = [
        f"--config.file={path}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (tmp_path / "prometheus.log").open("wb") as log:
        process = subprocess.Popen([program, *words], stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def ask(address: str, query: str) -> list[object]:
    """What a query returns now; nothing while Prometheus starts."""
    query = query.replace("$instance", ".*").replace("$__rate_interval", "20s")
    try:
        with urllib.request.urlopen(f"{address}/api/v1/query?{urllib.parse.urlencode({'query': query})}") as answer:
            found: list[object] = json.load(answer)["data"]["result"]
            return found
    except urllib.error.HTTPError as error:
        if error.code == 503:
            return []
        raise AssertionError(f"{query}: {error.read().decode()}") from error
    except OSError:
        return []


def share_fetch(cluster: Cluster) -> None:
    """A member of a share group acquires what there is."""
    heartbeat = {"group_id": "shared", "member_id": "AAAAAAAAAAAAAAAAAAAAAg"}
    connection = cluster.coordinator("shared")
    joined = connection.request(make("ShareGroupHeartbeat", **heartbeat, subscribed_topic_names=[TOPIC]))
    check(joined.error_code, joined.error_message)
    (topic,) = cluster.metadata([TOPIC]).topics
    asked = make(
        "ShareFetch",
        **heartbeat,
        share_session_epoch=0,
        max_wait_ms=500,
        min_bytes=0,
        max_bytes=1 << 20,
        max_records=10,
        batch_size=10,
        topics=[{"topic_id": topic.topic_id, "partitions": [{"partition_index": 0}]}],
    )
    answer = cluster.any().request(asked)
    check(answer.error_code, answer.error_message)


def test_every_query_returns_data_under_load(broker: ShimProcess, prometheus: str) -> None:
    server = {"bootstrap.servers": broker.bootstrap}
    admin = AdminClient(server)
    admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(30)
    open_one = Producer({**server, "transactional.id": "open", "transaction.timeout.ms": 900_000})
    open_one.init_transactions(60)
    open_one.begin_transaction()
    open_one.produce(TOPIC, b"held back", partition=1)
    open_one.flush(60)
    producer = Producer(server)
    consumer = Consumer({**server, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    left, deadline = set(QUERIES), time.monotonic() + 120
    with Cluster(broker.bootstrap) as cluster:
        while left and time.monotonic() < deadline:
            producer.produce(TOPIC, b"v" * 100, partition=0)
            producer.flush(60)
            if consumer.poll(0.1) is not None:
                consumer.commit(asynchronous=True)
            if any("share" in query for query in left):
                share_fetch(cluster)
                cluster.close()
            left = {query for query in left if not ask(prometheus, query)}
    open_one.abort_transaction(60)
    consumer.close()
    assert not left, "\n".join(sorted(left))
