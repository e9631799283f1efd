"""`kafka-cluster.sh` without a JVM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim import Broker
from kafka_shim.tools.cluster import main

BOTH = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
HEAD = "ID         HOST      PORT       RACK  STATE      ENDPOINT_TYPE  \n"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run the tool with words: (status, stdout)."""

    def call(*words: str) -> tuple[int, str]:
        try:
            status = main(words)
        except SystemExit as ended:
            assert isinstance(ended.code, int)
            status = ended.code
        return status, capsys.readouterr().out

    return call


def test_a_broker_tells_the_id_and_the_nodes_of_its_cluster(run, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.touch()
    with Broker(broker_rack="rack") as broker:
        at = "--bootstrap-server", broker.bootstrap_servers
        told = f"Cluster ID: {broker.cluster_id}\n"
        assert run("cluster-id", *at) == (0, told)
        assert run("cluster-id", *at, "--command-config", str(path)) == (0, told)
        status, out = run("cluster-id", *at, "--config", str(path))
        assert (status, out.splitlines()[0].startswith("Option --config has been deprecated")) == (0, True)
        assert out.endswith(told)
        assert run("cluster-id", *at, "--config", str(path), "--command-config", str(path)) == (1, "")
        port = broker.bootstrap_servers.rpartition(":")[2]
        row = f"1          127.0.0.1 {port:<10} rack unfenced   broker         \n"
        assert run("list-endpoints", *at, "--include-fenced-brokers") == (0, HEAD.replace("RACK  ", "RACK ") + row)


def test_a_controller_tells_them_too(run) -> None:
    with Broker(listen=BOTH, controller_listener_names="CONTROLLER") as broker:
        address = broker.bootstrap_controllers
        at = "--bootstrap-controller", address
        assert run("cluster-id", *at) == (0, f"Cluster ID: {broker.cluster_id}\n")
        port = address.rpartition(":")[2]
        assert run("list-endpoints", *at) == (
            0,
            "ID         HOST      PORT       RACK       ENDPOINT_TYPE  \n"
            f"1          127.0.0.1 {port:<10} null       controller     \n",
        )
        assert run("list-endpoints", *at, "--include-fenced-brokers") == (1, "")


def test_a_broker_that_is_not_there_cannot_be_forgotten(run) -> None:
    with Broker() as broker:
        at = "--bootstrap-server", broker.bootstrap_servers
        assert run("unregister", *at, "--id", "77") == (1, "")
        assert run("unregister", *at) == (1, "")
        assert run() == (1, "")
