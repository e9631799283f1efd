"""What the shim exports under names of Kafka is what the JMX exporter of Prometheus makes of the MBeans of Apache
Kafka under the same load: the names, the labels and, where the load decides it alone, the values."""

from __future__ import annotations

import json
import urllib.request
from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from kafka_shim.targets import Target
from kafka_shim.targets.base import free_ports
from kafka_shim.targets.kafka_jars import jmx_agent
from kafka_shim.targets.kafka_native import KafkaNative
from kafka_shim.targets.shim_process import ShimProcess

pytestmark = [pytest.mark.soak, pytest.mark.java, pytest.mark.timeout(300)]

TOPIC, RECORDS, PARTITIONS = "orders", 20, 2
Labels = frozenset[tuple[str, str]]
Samples = dict[str, dict[Labels, float]]

# An MBean's keys become labels but for the first two, its type and name; rates become counters.
PAIR, NAMED = r", (.+)=(.+)", r"kafka.(\w+)<type=(.+), name=(.+)"


def rules() -> list[dict[str, object]]:
    """The exporter's rules for Kafka in KRaft mode, as far as they make the names of the shim."""
    found: list[dict[str, object]] = [
        {
            "pattern": r"kafka.coordinator.(\w+)<type=(.+), name=(.+)><>Value",
            "name": "kafka_coordinator_$1_$2_$3",
            "type": "GAUGE",
        }
    ]
    found.append(
        {
            "pattern": f"{NAMED}{PAIR}><>(\\d+)thPercentile",
            "name": "kafka_$1_$2_$3",
            "type": "GAUGE",
            "labels": {"$4": "$5", "quantile": "0.$6"},
        }
    )
    for ending, attribute, suffix, kind in (
        (r"PerSec\w*", "Count", "_total", "COUNTER"),
        ("", "Value", "", "GAUGE"),
        ("", "Count", "_count", "COUNTER"),
    ):
        found += [
            {
                "pattern": f"{NAMED}{ending}{PAIR * pairs}><>{attribute}",
                "name": f"kafka_$1_$2_$3{suffix}",
                "type": kind,
                "labels": {f"${4 + 2 * at}": f"${5 + 2 * at}" for at in range(pairs)},
            }
            for pairs in (2, 1, 0)
        ]
    return found


# Names whose values the load decides, with the labels of the samples to compare.
OF_TOPIC: Labels = frozenset({("topic", TOPIC)})
OF_PARTITIONS = tuple(frozenset({*OF_TOPIC, ("partition", str(number))}) for number in range(PARTITIONS))
NONE: Labels = frozenset()
SAME_VALUES: dict[str, tuple[Labels, ...]] = {
    **dict.fromkeys(
        (f"kafka_server_brokertopicmetrics_{name}_total" for name in ("bytesin", "bytesout", "messagesin")), (OF_TOPIC,)
    ),
    **dict.fromkeys(
        (f"kafka_log_log_{name}" for name in ("size", "numlogsegments", "logstartoffset", "logendoffset")),
        OF_PARTITIONS,
    ),
    **dict.fromkeys(
        (
            f"kafka_cluster_partition_{name}"
            for name in (
                "replicascount",
                "insyncreplicascount",
                "underreplicated",
                "underminisr",
                "atminisr",
                "laststableoffsetlag",
            )
        ),
        OF_PARTITIONS,
    ),
    "kafka_network_requestmetrics_errors_total": (
        frozenset({("request", "Produce"), ("error", "NONE")}),
        frozenset({("request", "JoinGroup"), ("error", "MEMBER_ID_REQUIRED")}),
    ),
    "kafka_network_requestmetrics_requests_total": (frozenset({("request", "Produce"), ("version", "10")}),),
    "kafka_network_requestmetrics_totaltimems_count_total": (frozenset({("request", "Produce")}),),
    **dict.fromkeys(
        (
            *(f"kafka_controller_kafkacontroller_{name}count" for name in ("globaltopic", "globalpartition")),
            *(f"kafka_controller_kafkacontroller_{name}count" for name in ("activecontroller", "activebroker")),
            *(f"kafka_controller_kafkacontroller_{name}count" for name in ("fencedbroker", "offlinepartitions")),
            *(f"kafka_server_replicamanager_{name}count" for name in ("partition", "leader", "offlinereplica")),
            *(f"kafka_server_replicamanager_{name}minisrpartitioncount" for name in ("under", "at")),
            "kafka_server_replicamanager_underreplicatedpartitions",
            "kafka_server_replicamanager_reassigningpartitions",
            "kafka_log_logmanager_offlinelogdirectorycount",
            "kafka_server_replicamanager_partitionswithlatetransactionscount",
            "kafka_coordinator_group_groupmetadatamanager_numoffsets",
            "kafka_server_sharesessioncache_sharesessionscount",
        ),
        (NONE,),
    ),
}


def load(target: Target) -> Consumer:
    """20 records one by one, read by a group that commits, and a transaction of one record; the group goes on."""
    server = {"bootstrap.servers": target.bootstrap}
    admin = AdminClient(server)
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
    producer = Producer({**server, "enable.idempotence": True, "linger.ms": 0})
    for number in range(RECORDS):
        producer.produce(TOPIC, b"v" * 100, partition=number % PARTITIONS, timestamp=1_700_000_000_000 + number)
        assert producer.flush(60) == 0
    consumer = Consumer({**server, "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe([TOPIC])
    read = 0
    while read < RECORDS:
        message = consumer.poll(60)
        assert message is not None
        read += message.error() is None
    consumer.commit(asynchronous=False)
    writer = Producer({**server, "transactional.id": "t"})
    writer.init_transactions(60)
    writer.begin_transaction()
    writer.produce(TOPIC, b"x", partition=0, timestamp=1_700_000_000_999)
    writer.commit_transaction(60)
    message = consumer.poll(60)
    assert message is not None
    return consumer


def scrape(address: str) -> Samples:
    with urllib.request.urlopen(f"{address}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    found: Samples = defaultdict(dict)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.startswith("kafka_") and not sample.name.startswith("kafka_shim_"):
                found[sample.name][frozenset(sample.labels.items())] = sample.value
    return found


def of_kafka(folder: Path) -> Samples:
    path = folder / "rules.yml"
    path.write_text(json.dumps({"lowercaseOutputName": True, "rules": rules()}))
    (port,) = free_ports(1)
    target = KafkaNative()
    target.jvm_options = (*target.jvm_options, f"-javaagent:{jmx_agent()}={port}:{path}")
    with target:
        consumer = load(target)
        samples = scrape(f"http://127.0.0.1:{port}")
        consumer.close()
    return samples


def of_shim() -> Samples:
    with ShimProcess({"kafka.shim.http.listener": "127.0.0.1:0"}) as target:
        consumer = load(target)
        samples = scrape(target.http_address)
        consumer.close()
    return samples


def test_names_labels_and_values_are_those_of_the_jmx_exporter(tmp_path: Path) -> None:
    kafka, shim = of_kafka(tmp_path), of_shim()
    assert len(shim) > 25
    for name, samples in shim.items():
        assert name in kafka
        known = {frozenset(key for key, _ in labels) for labels in kafka[name]}
        given = {frozenset(key for key, _ in labels) for labels in samples}
        assert given <= known, f"{name} has the labels {given}, there {known}"
    differences = [
        f"{name}{dict(labels)}: {shim[name].get(labels)}, there {kafka[name].get(labels)}"
        for name, wanted in SAME_VALUES.items()
        for labels in wanted
        if labels not in shim[name] or shim[name][labels] != kafka[name].get(labels)
    ]
    assert not differences, "\n".join(differences)
