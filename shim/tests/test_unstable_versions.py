"""Versions of APIs that Kafka 4.3.1 has and does not release: InitProducerId 6 (KIP-939)."""

from __future__ import annotations

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kafka_shim.wire_client import Connection, WireClientError

INIT_PRODUCER_ID = 22


def last_version(client: Connection) -> int:
    (row,) = (one for one in client.request(ApiVersionsRequest(), 0).api_keys if one.api_key == INIT_PRODUCER_ID)
    return row.max_version


def init(client: Connection, **fields: object) -> int:
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000, **fields)
    return client.request(request, 6).error_code


@pytest.mark.option("unstable.api.versions.enable")
def test_unstable_versions_are_served_where_they_are_enabled():
    with Broker(unstable_api_versions_enable=True) as broker, Connection(broker.bootstrap_servers) as client:
        assert last_version(client) == 6
        client.request(FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]), 4)
        assert init(client) == 0
        assert init(client, enable2_pc=True) == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert init(client, keep_prepared_txn=True) == ErrorCode.UNSUPPORTED_VERSION
        for wish in ("enable2_pc", "keep_prepared_txn"):
            assert init(client, producer_id=5, **{wish: True}) == ErrorCode.INVALID_REQUEST


def test_unstable_versions_are_unknown_otherwise():
    with Broker() as broker, Connection(broker.bootstrap_servers) as client:
        assert last_version(client) == 5
        with pytest.raises(WireClientError):
            init(client)
