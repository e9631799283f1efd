from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SUITE = """
import pytest
from kafka_shim.tests.produced import metadata
from kafka_shim.wire_client import Connection

def test_plain(kafka_shim):
    with Connection(kafka_shim.bootstrap_servers) as client:
        metadata(client, "t")  # makes it
        assert len(metadata(client, "t").topics[0].partitions) == 1

@pytest.mark.kafka_shim(num_partitions=4, clock="virtual")
class TestOptions:
    def test_of_the_class(self, kafka_shim):
        kafka_shim.clock.advance("1d")
        with Connection(kafka_shim.bootstrap_servers) as client:
            metadata(client, "t")  # makes it
            assert len(metadata(client, "t").topics[0].partitions) == 4

    @pytest.mark.kafka_shim(num_partitions=2)
    def test_nearest_marker_wins(self, kafka_shim):
        with Connection(kafka_shim.bootstrap_servers) as client:
            metadata(client, "t")  # makes it
            assert len(metadata(client, "t").topics[0].partitions) == 2

def test_nothing_was_loaded_early():
    pass
"""


def test_the_fixture_gives_a_broker_with_the_markers_options(tmp_path: Path):
    (tmp_path / "test_suite.py").write_text(SUITE)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "kafka_shim.pytest_plugin",
        "--strict-markers",
        "-p",
        "no:cacheprovider",
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [*command, str(tmp_path)], capture_output=True, text=True, check=False, cwd=root, timeout=60, env=environment
    )
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_the_plugin_loads_nothing_of_the_broker():
    code = (
        "import sys, kafka_shim.pytest_plugin; print([name for name in sys.modules if name.startswith('kafka_shim.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['kafka_shim.pytest_plugin']"
