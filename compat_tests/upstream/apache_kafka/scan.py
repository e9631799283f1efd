"""Finds in Kafka's test jars the classes whose tests run on a broker: those that end in one of Kafka's harnesses."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field

from kafka_shim.compat.upstream.apache_kafka.class_file import ClassFile, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# A class that inherits from the first, names one of the next two, or has the annotation of a cluster, runs a broker.
QUORUM_HARNESS = "kafka.server.QuorumTestHarness"
TEST_KIT = "org.apache.kafka.common.test.KafkaClusterTestKit"
STREAMS_CLUSTER = "org.apache.kafka.streams.integration.utils.EmbeddedKafkaCluster"
_API = "Lorg/apache/kafka/common/test/api/"
CLUSTER_ANNOTATIONS = frozenset(
    {f"{_API}ClusterTest;", f"{_API}ClusterTests;", f"{_API}ClusterTemplate;"},
)
_JUPITER = "Lorg/junit/jupiter/"
TEST_ANNOTATIONS = CLUSTER_ANNOTATIONS | {
    f"{_JUPITER}api/Test;",
    f"{_JUPITER}api/RepeatedTest;",
    f"{_JUPITER}api/TestFactory;",
    f"{_JUPITER}params/ParameterizedTest;",
}


@dataclass
class Scan:
    """Of one jar: names of test classes."""

    counted: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Unit tests: no harness."""


def scan(jars: Mapping[str, Path]) -> dict[str, Scan]:
    """Return for each jar, by its name, which test classes count. A harness may be in another jar than its tests."""
    found: dict[str, dict[str, ClassFile]] = {}
    for name, path in jars.items():
        found[name] = {}
        with zipfile.ZipFile(path) as archive:
            for entry in archive.namelist():
                if entry.endswith(".class") and "module-info" not in entry:
                    one = parse(archive.read(entry))
                    found[name][one.name] = one
    everything = {name: one for classes in found.values() for name, one in classes.items()}
    result = {}
    for jar, classes in found.items():
        result[jar] = Scan()
        for name in sorted(classes):
            one = classes[name]
            if one.is_abstract or "$" in name or not _has_tests(one, everything):
                continue
            counts = _runs_a_broker(one, everything)
            (result[jar].counted if counts else result[jar].left_out).append(name)
    return result


def _line(one: ClassFile, everything: Mapping[str, ClassFile]) -> list[ClassFile]:
    line = [one]
    while line[-1].parent in everything:
        line.append(everything[line[-1].parent])
    return line


def _inner(one: ClassFile, everything: Mapping[str, ClassFile]) -> list[ClassFile]:
    return [everything[name] for name in one.classes if name.startswith(f"{one.name}$") and name in everything]


def _parts(one: ClassFile, everything: Mapping[str, ClassFile]) -> list[ClassFile]:
    """The class, what it inherits from, and their inner classes."""
    return [each for own in _line(one, everything) for each in [own, *_inner(own, everything)]]


def _has_tests(one: ClassFile, everything: Mapping[str, ClassFile]) -> bool:
    return any(each.texts & TEST_ANNOTATIONS for each in _parts(one, everything))


def _runs_a_broker(one: ClassFile, everything: Mapping[str, ClassFile]) -> bool:
    return any(
        each.name == QUORUM_HARNESS
        or each.texts & CLUSTER_ANNOTATIONS
        or any(name.startswith((TEST_KIT, STREAMS_CLUSTER)) for name in each.classes)
        for each in _parts(one, everything)
    )
