"""Kafka clients of the sink that a process caches: one of each kind for each broker and query, until the process ends.

A Spark worker process runs many tasks. A new client each time costs threads, connections and a coordinator look-up.
None of these clients ever joins the group: the progress group only stores offsets.

Consumers read the progress, not ``AdminClient.list_consumer_group_offsets``: on NOT_COORDINATOR, librdkafka (up to 2.16
at least) then wakes the group of the client, which an admin client does not have, and the process crashes with a
segmentation fault. A coordinator that has just started or moved returns that error.
"""

from __future__ import annotations

from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from confluent_kafka import Consumer
    from confluent_kafka.admin import AdminClient

# librdkafka logs every lost connection on stderr; relevant errors are raised.
QUIET = {"log_level": "2"}

Settings = tuple[tuple[str, str], ...]


@cache
def admin(settings: Settings) -> AdminClient:
    from confluent_kafka.admin import AdminClient

    return AdminClient({**QUIET, **dict(settings)})


@cache
def offsets_reader(settings: Settings, group: str, *, stable: bool) -> Consumer:
    """Returns a consumer that only fetches committed offsets. With ``stable`` it waits while a transaction has a
    pending offset (KIP-447); otherwise it gets the previous one.
    """
    from confluent_kafka import Consumer

    isolation = "read_committed" if stable else "read_uncommitted"
    return Consumer(
        {
            **QUIET,
            **dict(settings),
            "group.id": group,
            "isolation.level": isolation,
            "enable.auto.commit": "false",
        }
    )


@cache
def group_metadata(settings: Settings, group: str) -> Any:
    """Returns the group metadata for ``send_offsets_to_transaction`` of a group without members: its name, in
    librdkafka's format.
    """
    return offsets_reader(settings, group, stable=True).consumer_group_metadata()
