"""`kafka-shim cluster`: nodes, features, listeners and health of a cluster."""

from __future__ import annotations

import click

from kafka_shim.client.overview import features, health, nodes
from kafka_shim.client.requests import make
from kafka_shim.commands.options import bootstrap_option, cluster_of, json_option, show_rows
from kafka_shim.commands.tables import print_table
from kafka_shim.plurals import counted
from kafka_shim.wire_client import check

BROKER = 4
EPILOG = """\b
Examples:
  kafka-shim cluster nodes
  kafka-shim cluster health --bootstrap-server kafka:9092 && echo fine

\b
Exit status: 0; 1 the broker refused or was not reached, and of `health`: something is wrong; 2 wrong options.
"""


@click.group(name="cluster", epilog=EPILOG, help="Nodes, features, listeners and health of a cluster.")
def group() -> None:
    pass


@group.command(name="nodes", help="Print the cluster's id and its brokers.")
@bootstrap_option
@json_option
def show_nodes(bootstrap_server: str) -> None:
    with cluster_of(bootstrap_server) as cluster:
        cluster_id, found = nodes(cluster)
        rows = [
            (cluster_id, one.node_id, one.host, one.port, one.rack or None, one.is_controller, one.is_fenced)
            for one in found
        ]
        print_table(("ClusterId", "NodeId", "Host", "Port", "Rack", "Controller", "Fenced"), rows)


@group.command(name="features", help="Print the features with their levels.")
@bootstrap_option
@json_option
def show_features(bootstrap_server: str) -> None:
    with cluster_of(bootstrap_server) as cluster:
        print_table(("Feature", "Level", "LowestSupported", "HighestSupported"), features(cluster))


@group.command(name="listeners", help="Print the listeners of each broker, as its options say.")
@bootstrap_option
@json_option
def show_listeners(bootstrap_server: str) -> None:
    wanted = ["listeners", "advertised.listeners", "listener.security.protocol.map"]
    with cluster_of(bootstrap_server) as cluster:
        _, found = nodes(cluster)
        rows = []
        for node in found:
            resource = {"resource_type": BROKER, "resource_name": str(node.node_id), "configuration_keys": wanted}
            (result,) = cluster.to(node.node_id).request(make("DescribeConfigs", resources=[resource])).results
            check(result.error_code, result.error_message, f"broker {node.node_id}")
            values = {one.name: one.value for one in result.configs}
            rows.append((node.node_id, *[values.get(name) or None for name in wanted]))
        print_table(("NodeId", "Listeners", "Advertised", "Protocols"), rows)


@group.command(name="health", help="Say whether every partition has a leader and all of its replicas.")
@bootstrap_option
@json_option
def show_health(bootstrap_server: str) -> int:
    with cluster_of(bootstrap_server) as cluster:
        _, found = nodes(cluster)
        state = health(cluster)
        fenced = [one.node_id for one in found if one.is_fenced]
        is_healthy = state.is_healthy and not fenced
        names = [[f"{topic}-{part}" for topic, part in each] for each in (state.leaderless, state.under_replicated)]
        row = (is_healthy, len(found), fenced, state.topics, state.partitions, *names)

        def tell() -> None:
            click.echo(
                f"{'healthy' if is_healthy else 'not healthy'}: {counted(len(found), 'broker')}, "
                f"{counted(state.topics, 'topic')}, {counted(state.partitions, 'partition')}"
            )
            for what, which in (
                ("fenced brokers", fenced),
                ("without a leader", names[0]),
                ("under-replicated", names[1]),
            ):
                if which:
                    click.echo(f"{what}: {', '.join(map(str, which))}")

        columns = ("Healthy", "Brokers", "Fenced", "Topics", "Partitions", "Leaderless", "UnderReplicated")
        show_rows(columns, [row], tell)
    return 0 if is_healthy else 1
