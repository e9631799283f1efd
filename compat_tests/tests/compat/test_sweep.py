"""Every advertised API in every version answers the same requests as Apache Kafka does, on a broker's listener and on
the controller's.
"""

from __future__ import annotations

import pytest

from kafka_shim.api import APIS
from kafka_shim.api.controller import CONTROLLER_APIS
from kafka_shim.compat.controller_sweep import ALL_CASES, CONTROLLER_CASES, CONTROLLER_FACTS, CONTROLLER_LEFT_OUT
from kafka_shim.compat.sweep import CASES, LEFT_OUT, prepare, sweep, unswept
from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.targets.kafka_native import KafkaNative
from kafka_shim.targets.shim_process import ShimProcess
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

Brokers = tuple[ShimProcess, KafkaNative]
NAMES = {key: row[0] for key, row in API_KEYS.items()}


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    """(shim, Kafka), each with a listener of the controller, and a topic."""
    shim = ShimProcess({"controller.listener.names": "CONTROLLER"})
    shim.bootstrap = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
    with shim, KafkaNative() as kafka:
        for target in (shim, kafka):
            prepare(target.bootstrap)
        yield shim, kafka


def test_every_version_of_every_api_answers_as_kafka_does(brokers: Brokers) -> None:
    done = sweep(brokers[0].bootstrap, brokers[1].bootstrap)
    print(f"{done.asked} requests over {done.apis} APIs, {len(done.disparities)} differ")
    assert not done.disparities, "\n".join(map(str, done.disparities[:40]))
    assert done.apis == len([api for api in CASES if api not in LEFT_OUT])


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


def test_each_served_api_is_swept_or_left_out_for_a_reason() -> None:
    assert unswept(NAMES[api.key] for api in APIS) == set()
    assert not CASES.keys() & LEFT_OUT.keys()
    assert unswept(["Nonsense", *CASES, *LEFT_OUT]) == {"Nonsense"}
    of_controllers = {NAMES[api.key] for api in CONTROLLER_APIS} - CASES.keys() - LEFT_OUT.keys()
    assert of_controllers <= CONTROLLER_CASES.keys() | CONTROLLER_LEFT_OUT.keys()
