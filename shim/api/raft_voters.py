"""What AddRaftVoter and RemoveRaftVoter share: the checks of Kafka's KafkaRaftClient before a change of the voters."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

NO_DIRECTORY = bytes(16)


def check_voter(context: Context, cluster_id: str | None, voter_id: int, directory_id: bytes, operation: str) -> None:
    """Raises KafkaError for another cluster and for a voter without id or directory. `operation` is "Add" or
    "Remove"."""
    own = context.broker.cluster_id
    if cluster_id is not None and cluster_id != own:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID, f'The given id "{cluster_id}" doesn\'t match the cluster id "{own}"'
        )
    if voter_id < 0 or directory_id == NO_DIRECTORY:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{operation} voter request didn't include a valid voter")


def check_dynamic(context: Context, doing: str) -> None:
    """Raises KafkaError UNSUPPORTED_VERSION in a static quorum (kraft.version 0)."""
    version = context.broker.metadata.kraft_version
    if version < 1:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Cluster doesn't support {doing} voter because the kraft.version feature is {version}",
        )


def voter_key(voter_id: int, directory_id: bytes) -> str:
    """Returns a voter as Kafka prints it in its messages."""
    directory = "<undefined>" if directory_id == NO_DIRECTORY else uuid_text(directory_id)
    return f"ReplicaKey(id={voter_id}, directoryId={directory})"


def voter_keys(context: Context) -> str:
    """Returns the voters as Kafka prints them in its messages."""
    metadata = context.broker.metadata
    return f"[{voter_key(context.node_id, metadata.voter_directory_id)}]"
