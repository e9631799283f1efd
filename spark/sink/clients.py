"""Kafka clients of the sink that a process keeps: one of each kind for each broker and query, for as long as it lives.

A worker process of Spark runs many tasks, and a client costs threads, connections and a search for its coordinator
each time. None of these clients is ever a member of the group: the progress group is only a place for offsets.

Progress is read by consumers, not by ``AdminClient.list_consumer_group_offsets``: librdkafka (up to 2.16 at least)
answers NOT_COORDINATOR there by waking the group of the client, which an admin client does not have, and the process
dies of a segmentation fault. A coordinator that has just started or moved answers that.
"""

from __future__ import annotations

from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from confluent_kafka import Consumer
    from confluent_kafka.admin import AdminClient

# librdkafka says every lost connection on stderr; what matters is raised.
QUIET = {"log_level": "2"}

Settings = tuple[tuple[str, str], ...]


@cache
def admin(settings: Settings) -> AdminClient:
    from confluent_kafka.admin import AdminClient

    return AdminClient({**QUIET, **dict(settings)})


@cache
def offsets_reader(settings: Settings, group: str, *, stable: bool) -> Consumer:
    """A consumer that only asks for committed offsets. ``stable``: it waits while a transaction holds a newer one
    (KIP-447); else it gets the one before."""
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
    """What ``send_offsets_to_transaction`` wants to know of a group without members: its name, in librdkafka's form."""
    return offsets_reader(settings, group, stable=True).consumer_group_metadata()
