"""Every advertised API in every version answers the same requests as Apache Kafka does, on a broker's listener and on
the controller's.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafka_shim.api import APIS
from kafka_shim.api.controller import CONTROLLER_APIS
from kafka_shim.compat.controller_sweep import ALL_CASES, CONTROLLER_CASES, CONTROLLER_FACTS, CONTROLLER_LEFT_OUT
from kafka_shim.compat.sweep import CASES, EARLY_CASES, LEFT_OUT, TOPIC, prepare, sweep, unswept
from kafka_shim.metadata.features import ELR_VERSION, SUPPORTED
from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.targets import jvm
from kafka_shim.targets.kafka_native import KafkaNative
from kafka_shim.targets.requests import create_topic, make
from kafka_shim.targets.shim_process import ShimProcess
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

CONFIG_COMMAND = "kafka.admin.ConfigCommand"
Brokers = tuple[ShimProcess, KafkaNative]
NAMES = {key: row[0] for key, row in API_KEYS.items()}


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    """(shim, Kafka), each with a listener of the controller, and a topic."""
    with ShimProcess({"controller.listener.names": "CONTROLLER"}) as shim, KafkaNative() as kafka:
        for target in (shim, kafka):
            prepare(target.bootstrap)
        yield shim, kafka


def test_every_version_of_every_api_answers_as_kafka_does(brokers: Brokers) -> None:
    done = sweep(brokers[0].bootstrap, brokers[1].bootstrap)
    print(f"{done.asked} requests over {done.apis} APIs, {len(done.disparities)} differ")
    assert not done.disparities, "\n".join(map(str, done.disparities[:40]))
    assert done.apis == len([api for api in CASES if api not in LEFT_OUT])


def test_before_anybody_asked_for_a_coordinator_every_version_answers_as_kafka_does() -> None:
    """Kafka's coordinators have no partitions then: NOT_COORDINATOR, behind what is checked before."""
    with ShimProcess({}) as shim, KafkaNative() as kafka:
        for target in (shim, kafka):
            with Connection(target.bootstrap) as connection:
                create_topic(connection, TOPIC, 2)
        cases = {api: CASES[api] + more for api, more in EARLY_CASES.items()}
        done = sweep(shim.bootstrap, kafka.bootstrap, cases)
        print(f"{done.asked} requests over {done.apis} APIs, {len(done.disparities)} differ")
        assert not done.disparities, "\n".join(map(str, done.disparities[:40]))
        assert done.apis == len(EARLY_CASES)
        for target in (shim, kafka):
            with Connection(target.bootstrap) as connection:
                assert connection.request(make("Metadata", topics=None), 12).topics[0].name == TOPIC


def test_the_controllers_table_is_kafkas(brokers: Brokers) -> None:
    """Key by key and range by range; what no listener serves yet is not advertised."""
    told = []
    for target in brokers:
        with Connection(target.controller) as connection:
            told.append(connection.ranges())
    ours, theirs = told
    served = {api.key for api in APIS}
    assert len(theirs) == 41
    assert ours == {key: span for key, span in theirs.items() if key in served or "broker" not in API_KEYS[key][5]} | {
        41: theirs[41]
    }


def test_every_version_of_every_api_of_the_controller_answers_as_kafkas_does(brokers: Brokers) -> None:
    done = sweep(brokers[0].controller, brokers[1].controller, ALL_CASES, CONTROLLER_FACTS)
    print(f"{done.asked} requests over {done.apis} APIs, {len(done.disparities)} differ")
    assert not done.disparities, "\n".join(map(str, done.disparities[:40]))
    assert done.apis == len(ALL_CASES)


def updates() -> Iterator[list[dict[str, Any]]]:
    """Every level of every feature, and one beyond at both ends, by every way; and several features at once."""
    for name, (lowest, highest) in SUPPORTED.items():
        for level in {-1, 0, lowest - 1, lowest, 13, highest - 1, highest, highest + 1, 99}:
            for kind in range(5):
                yield [{"feature": name, "max_version_level": level, "upgrade_type": kind}]
    for level in (0, 1):
        yield [{"feature": "no.such", "max_version_level": level, "upgrade_type": 1}]
    for metadata_version in (22, 29, 30):
        yield [
            {"feature": "metadata.version", "max_version_level": metadata_version, "upgrade_type": 3},
            {"feature": ELR_VERSION, "max_version_level": 1, "upgrade_type": 1},
        ]


def test_features_are_changed_or_refused_in_kafkas_words(brokers: Brokers) -> None:
    with Connection(brokers[0].controller) as ours, Connection(brokers[1].controller) as theirs:
        for wanted in updates():
            request = make("UpdateFeatures", feature_updates=wanted, validate_only=True)
            told = [one.request(request, 2) for one in (ours, theirs)]
            assert len({(one.error_code, one.error_message) for one in told}) == 1, (wanted, told)


def test_tools_with_bootstrap_controller_print_what_they_print_of_kafka(brokers: Brokers) -> None:
    """KIP-919. What is a fact of one broker is blotted out."""
    commands = {
        "org.apache.kafka.tools.FeatureCommand": ("describe",),
        "org.apache.kafka.tools.MetadataQuorumCommand": ("describe", "--status"),
        CONFIG_COMMAND: ("--describe", "--all", "--entity-type", "brokers", "--entity-name", "1"),
    }

    def run(tool: str, broker: ShimProcess | KafkaNative) -> str:
        address = ("--bootstrap-controller", broker.controller)
        output = jvm.run(tool, *address, *commands[tool], timeout_s=120).stdout.decode()
        if tool == CONFIG_COMMAND:
            # Its values and synonyms are compared by DescribeConfigs of the broker's listener.
            return "\n".join(sorted(line.split("=")[0] for line in output.splitlines()))
        return re.sub(r"Epoch: \d+|(ClusterId|HighWatermark): .*", "", output.replace(broker.controller, "ADDRESS"))

    with ThreadPoolExecutor(2) as pool:
        for tool in commands:
            ours, theirs = pool.map(lambda broker, tool=tool: run(tool, broker), brokers)
            assert ours == theirs


def test_each_served_api_is_swept_or_left_out_for_a_reason() -> None:
    assert unswept(NAMES[api.key] for api in APIS) == set()
    assert not CASES.keys() & LEFT_OUT.keys()
    assert unswept(["Nonsense", *CASES, *LEFT_OUT]) == {"Nonsense"}
    of_controllers = {NAMES[api.key] for api in CONTROLLER_APIS} - CASES.keys() - LEFT_OUT.keys()
    assert of_controllers <= CONTROLLER_CASES.keys() | CONTROLLER_LEFT_OUT.keys()
