"""Kafka's command-line tools without a JVM: the same flags, the same output, the same exit status.

`python -m kafka_shim.tools.NAME` is `kafka-NAME.sh` of Kafka's bin folder. Each module has `main(words) -> status`.
"""

from __future__ import annotations

# The tools, named as Kafka's scripts without `kafka-` and `.sh`, each in the module of that name.
TOOLS = (
    "acls",
    "broker-api-versions",
    "cluster",
    "configs",
    "console-consumer",
    "console-producer",
    "consumer-groups",
    "delete-records",
    "features",
    "get-offsets",
    "groups",
    "log-dirs",
    "metadata-quorum",
    "storage",
    "topics",
    "transactions",
)
