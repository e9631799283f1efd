"""Topics: made and deleted."""

from __future__ import annotations

from kafka_shim.client.requests import make
from kafka_shim.errors import ErrorCode
from kafka_shim.wire_client import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_shim.client.cluster import Cluster


def create_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    configs: Mapping[str, str] | None = None,
    may_exist: bool = False,
) -> None:
    """Make a topic, and return once it has leaders. -1 is the broker's default. Raises RequestError."""
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replication_factor,
        "configs": [{"name": option, "value": value} for option, value in (configs or {}).items()],
    }
    (result,) = cluster.any().request(make("CreateTopics", topics=[topic], timeout_ms=30_000)).topics
    if not (may_exist and result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS):
        check(result.error_code, result.error_message, name)

    def ask() -> None:
        (found,) = cluster.metadata([name]).topics
        code = found.error_code
        # A broker may learn of the topic later than the controller, which made it.
        check(ErrorCode.LEADER_NOT_AVAILABLE if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else code, subject=name)
        for part in found.partitions:
            check(part.error_code, subject=f"{name}-{part.partition_index}")

    cluster.patiently(ask)


def delete_topics(cluster: Cluster, names: Sequence[str]) -> None:
    """Delete topics. Raises RequestError for the first that is refused."""
    if names:
        topics = [{"name": name} for name in names]
        for result in cluster.any().request(make("DeleteTopics", topics=topics, timeout_ms=30_000)).responses:
            check(result.error_code, result.error_message, result.name)
            cluster.forget_leaders()
