"""`/api/cluster`: the brokers, the controller, the features and the disks of a cluster."""

from __future__ import annotations

from kafka_shim.client.requests import make
from kafka_shim.console.cluster import is_denied, name_of
from kafka_shim.wire_client import RequestError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.console.cluster import Cluster
    from kafka_shim.console.parameters import Query

API_VERSIONS_VERSION = 3


def described(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return the cluster. Raises RequestError, WireClientError."""
    answer = cluster.metadata(None)
    versions = cluster.ask(
        make("ApiVersions", client_software_name="kafka-shim", client_software_version="0"), API_VERSIONS_VERSION
    )
    check(versions.error_code)
    topics = answer.topics
    return {
        "id": answer.cluster_id,
        "controller": answer.controller_id,
        "topics": len(topics),
        "partitions": sum(len(topic.partitions) for topic in topics),
        "offline": sum(one.leader_id < 0 for topic in topics for one in topic.partitions),
        "underReplicated": sum(
            len(one.isr_nodes) < len(one.replica_nodes) for topic in topics for one in topic.partitions
        ),
        "brokers": [
            {
                "id": one.node_id,
                "host": one.host,
                "port": one.port,
                "rack": one.rack,
                "leads": sum(part.leader_id == one.node_id for topic in topics for part in topic.partitions),
                "disks": _disks(cluster, one.node_id),
            }
            for one in sorted(answer.brokers, key=lambda one: int(one.node_id))
        ],
        "features": {one.name: one.max_version_level for one in versions.finalized_features or ()},
        "apis": len(versions.api_keys),
    }


def _disks(cluster: Cluster, node: int) -> list[dict[str, Any]]:
    """Return the log directories of a broker; none if the person may not see them."""
    try:
        answer = cluster.ask(make("DescribeLogDirs", topics=[]), node=node)
        check(answer.error_code)
    except RequestError as error:
        if is_denied(error):
            return []
        raise
    return [
        {
            "path": one.log_dir,
            "total": one.total_bytes if one.total_bytes >= 0 else None,
            "usable": one.usable_bytes if one.usable_bytes >= 0 else None,
            "error": name_of(one.error_code),
        }
        for one in answer.results
    ]
