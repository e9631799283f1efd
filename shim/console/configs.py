"""`/api/configs`: the options of a topic, broker or group, each with where its value comes from."""

from __future__ import annotations

import html
import re

from kafka_shim.client.requests import make
from kafka_shim.wire_client import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.console.cluster import Cluster
    from kafka_shim.console.parameters import Query

# Kafka: ConfigResource.Type, DescribeConfigsResponse.ConfigSource
KINDS = {"topic": 2, "broker": 4, "group": 32}
SOURCES = {
    1: "topic",
    2: "broker, changed",
    3: "all brokers, changed",
    4: "broker's file",
    5: "default",
    6: "broker's logger",
    7: "client metrics",
    8: "group",
}
LONGEST_VALUE = 4096
# Apache Kafka's documentation is HTML: parts of it that stand apart, and other tags.
APART = re.compile(r"</?(?:p|br|ul|ol|li|table|tr|td|pre)\b[^<>]*>", re.IGNORECASE)
TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)


def described(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return the options of one resource. Raises BadRequestError, RequestError, WireClientError."""
    kind, name = query.choice("kind", KINDS, "topic"), query.text("name")
    resource = {"resource_type": KINDS[kind], "resource_name": name, "configuration_keys": None}
    node = None
    if kind == "broker":
        known = {str(one): one for one in cluster.nodes()}
        node = known.get(name)
    request = make("DescribeConfigs", resources=[resource], include_synonyms=True, include_documentation=True)
    (found,) = cluster.ask(request, node=node).results
    check(found.error_code, found.error_message, name)
    return {
        "kind": kind,
        "name": name,
        "configs": [
            {
                "name": one.name,
                "value": None if one.value is None else one.value[:LONGEST_VALUE],
                "source": SOURCES.get(one.config_source, str(one.config_source)),
                "isDefault": one.config_source == 5,
                "isSensitive": one.is_sensitive,
                "isReadOnly": one.read_only,
                "documentation": plain(one.documentation or ""),
                "synonyms": [
                    {
                        "name": each.name,
                        "value": None if each.value is None else each.value[:LONGEST_VALUE],
                        "source": SOURCES.get(each.source, str(each.source)),
                    }
                    for each in one.synonyms or ()
                ],
            }
            for one in sorted(found.configs, key=lambda one: str(one.name))
        ],
    }


def plain(documentation: str) -> str:
    """Return what a browser would show of `documentation`, in one paragraph."""
    return " ".join(html.unescape(TAG.sub("", APART.sub(" ", documentation))).split())
