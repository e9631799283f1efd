"""Ending the transaction of another producer."""

from __future__ import annotations

from kafka_shim.client.cluster import TRANSACTION
from kafka_shim.client.requests import make
from kafka_shim.own_tags import RESOLVE_TAG
from kafka_shim.wire_client import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.client.cluster import Cluster


def force_terminate(cluster: Cluster, transactional_id: str) -> None:
    """Abort whatever a transactional id has open, and fence its producer (Kafka: Admin.forceTerminateTransaction).
    Returns once it is ended. Raises RequestError TRANSACTIONAL_ID_NOT_FOUND; CONCURRENT_TRANSACTIONS if it is still
    being ended after the cluster's timeout."""

    def exists() -> None:
        request = make("DescribeTransactions", transactional_ids=[transactional_id])
        (found,) = cluster.coordinator(transactional_id, TRANSACTION).request(request).transaction_states
        check(found.error_code, subject=transactional_id)

    def end() -> None:
        request = make("InitProducerId", transactional_id=transactional_id, transaction_timeout_ms=1)
        request.unknown_tags = {RESOLVE_TAG: b"\1"}
        check(cluster.coordinator(transactional_id, TRANSACTION).request(request).error_code, subject=transactional_id)

    # InitProducerId makes an id that is not there.
    cluster.patiently(exists)
    cluster.patiently(end)
