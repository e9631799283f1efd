"""`kafka-cluster.sh`: the id of a cluster, its nodes, and brokers to be forgotten (Kafka: ClusterTool)."""

from __future__ import annotations

from kafka_shim.client.requests import make
from kafka_shim.tools.options import connect_to
from kafka_shim.tools.running import leave
from kafka_shim.tools.subcommands import Parser, ToolError, run_command
from kafka_shim.wire_client import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any

    from kafka_shim.client.cluster import Cluster

BROKERS, CONTROLLERS = 1, 2
HELP = {
    "cluster-id": "Get information about the ID of a cluster.",
    "unregister": "Unregister a broker.",
    "list-endpoints": "List endpoints",
}


def parser() -> argparse.ArgumentParser:
    found = Parser(prog="kafka-cluster", description="The Kafka cluster tool.")
    commands = found.add_subparsers(dest="command", required=True)
    by_name = {name: commands.add_parser(name, help=text) for name, text in HELP.items()}
    for one in by_name.values():
        bootstrap = one.add_mutually_exclusive_group(required=True)
        bootstrap.add_argument("--bootstrap-server", "-b", help="The brokers to connect to.")
        bootstrap.add_argument("--bootstrap-controller", "-C", help="The controllers to connect to.")
        one.add_argument("--config", help="(DEPRECATED) --command-config")
        one.add_argument("--command-config", "-c", help="Properties of the client.")
    by_name["unregister"].add_argument("--id", "-i", type=int, required=True, help="The broker to unregister.")
    by_name["list-endpoints"].add_argument(
        "--include-fenced-brokers", action="store_true", help="Whether to list fenced brokers too."
    )
    return found


def _connect(given: argparse.Namespace) -> Cluster:
    if given.config is not None:
        if given.command_config is not None:
            raise ToolError("--config and --command-config cannot be specified together.")
        print(
            "Option --config has been deprecated and will be removed in a future version. Use --command-config instead."
        )
    path = given.command_config or given.config
    return connect_to(given.bootstrap_server or given.bootstrap_controller, path, "kafka-cluster")


def _describe(given: argparse.Namespace, has_fenced: bool = False) -> Any:
    """The answer to DescribeCluster."""
    kind = CONTROLLERS if given.bootstrap_controller else BROKERS
    with _connect(given) as cluster:
        answer = cluster.any().request(make("DescribeCluster", endpoint_type=kind, include_fenced_brokers=has_fenced))
    check(answer.error_code, answer.error_message)
    return answer


def cluster_id(given: argparse.Namespace) -> None:
    print(f"Cluster ID: {_describe(given).cluster_id}")


def unregister(given: argparse.Namespace) -> None:
    with _connect(given) as cluster:
        answer = cluster.any().request(make("UnregisterBroker", broker_id=given.id))
    check(answer.error_code, answer.error_message)
    print(f"Broker {given.id} is no longer registered.")


def list_endpoints(given: argparse.Namespace) -> None:
    if given.include_fenced_brokers and given.bootstrap_controller:
        raise ToolError("The option --include-fenced-brokers is only supported with --bootstrap-server option")
    nodes = _describe(given, given.include_fenced_brokers).brokers
    host_width = max((len(node.host) for node in nodes), default=100)
    rack_width = max((len(node.rack) for node in nodes if node.rack), default=10)
    rows = [("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")]
    for node in nodes:
        state = "fenced" if node.is_fenced else "unfenced"
        kind = "controller" if given.bootstrap_controller else "broker"
        rows.append((str(node.broker_id), node.host, str(node.port), node.rack or "null", state, kind))
    for number, host, port, rack, state, kind in rows:
        shown = "" if given.bootstrap_controller else f"{state:<10} "
        print(f"{number:<10} {host:<{host_width}} {port:<10} {rack:<{rack_width}} {shown}{kind:<15}")


COMMANDS = {"cluster-id": cluster_id, "unregister": unregister, "list-endpoints": list_endpoints}


def main(words: Sequence[str]) -> int:
    """Run the tool. Returns the exit status; wrong words raise SystemExit."""
    return run_command(parser(), COMMANDS, words)


if __name__ == "__main__":
    leave(main)
