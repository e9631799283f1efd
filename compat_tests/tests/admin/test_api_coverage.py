"""What is advertised: the shim's list against the page in docs and against a running Apache Kafka 4.3.1."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from kafka_shim.targets.shim_process import ROOT
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from kafka_shim.targets import Target


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    """The script that writes the page."""
    spec = importlib.util.spec_from_file_location("api_coverage", ROOT / "scripts" / "api_coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = path
    return module


def test_the_page_takes_kafkas_ranges_from_what_kafka_advertises(coverage: ModuleType, kafka: Target):
    with Connection(kafka.bootstrap) as connection:
        assert connection.ranges() == coverage.kafka_ranges()


def test_the_shim_advertises_kafkas_ranges_and_nothing_else(coverage: ModuleType, shim: Target):
    theirs = coverage.kafka_ranges()
    with Connection(shim.bootstrap) as connection:
        ours = connection.ranges()
    assert ours == coverage.our_ranges()
    assert ours == {key: theirs[key] for key in ours}
