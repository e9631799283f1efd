from __future__ import annotations

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.tests.api.admin import create, delete, new_topic
from kafka_shim.tests.produced import batch, fetch, produce
from kafka_shim.wire_client import Connection


@pytest.mark.parametrize("version", range(1, 7))
def test_a_topic_goes_in_every_version_and_its_name_is_free(client, version):
    first = create(client, new_topic("t"))["t"].topic_id
    produce(client, "t", 0, batch(b"a"))
    assert delete(client, "t", version=version) == [("t", 0)]
    assert delete(client, "t", version=version) == [("t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert create(client, new_topic("t"))["t"].topic_id != first
    assert fetch(client, "t", 0, 0).high_watermark == 0


def test_a_topic_goes_by_its_id(client):
    topic_id = create(client, new_topic("t"))["t"].topic_id
    assert delete(client, ids=[topic_id]) == [("t", 0)]
    assert delete(client, ids=[topic_id]) == [(None, ErrorCode.UNKNOWN_TOPIC_ID)]


def test_a_topic_by_name_and_id_at_once_stays(client):
    topic_id = create(client, new_topic("t"))["t"].topic_id
    assert delete(client, "t", ids=[topic_id]) == [("t", ErrorCode.INVALID_REQUEST)]
    assert delete(client, "t") == [("t", 0)]


def test_a_name_twice_stays(client):
    create(client, new_topic("t"), new_topic("u"))
    assert sorted(delete(client, "t", "u", "t")) == [("t", ErrorCode.INVALID_REQUEST), ("u", 0)]


def test_deletion_may_be_forbidden():
    with Broker(delete_topic_enable=False) as broker, Connection(broker.bootstrap_servers) as client:
        create(client, new_topic("t"))
        assert delete(client, "t") == [("t", ErrorCode.TOPIC_DELETION_DISABLED)]
        assert delete(client, "t", version=2) == [("t", ErrorCode.INVALID_REQUEST)]
