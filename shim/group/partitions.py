"""Which partition of `__consumer_offsets` holds a group."""

from __future__ import annotations

import logging

from kafka_shim.internal_topics import GROUP_METADATA_TOPIC
from kafka_shim.metadata.partition_count import PartitionCount
from kafka_shim.plurals import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from kafka_shim.group.groups import Groups

logger = logging.getLogger("kafka_shim.group")

# Groups per step.
LOOKS_PER_STEP = 2000


class GroupPartitions(PartitionCount):
    """Owned by the runtime."""

    __slots__ = ()

    def leave_out_others(self, partition: int, groups: Groups) -> Generator[None, None, None]:
        """Leave out, in steps, what was read of groups that are in another partition since the topic has more: nobody
        finds them here, and what their timers and their expiry write would be of the groups of their ids there."""
        others: set[str] = set()
        for number, group_id in enumerate(_ids(groups), 1):
            if self.of(group_id) != partition:
                others.add(group_id)
                groups.by_id.pop(group_id, None)
                groups.offsets.leave_out(group_id)
            if number % LOOKS_PER_STEP == 0:
                yield
        if not others:
            return
        yield from groups.offsets.leave_out_pending(others)
        text = "%s-%d: left out the groups that are elsewhere since the topic has %s: %d, such as %s"
        logger.warning(
            text, GROUP_METADATA_TOPIC, partition, counted(self.count(), "partition"), len(others), next(iter(others))
        )


def _ids(groups: Groups) -> Iterator[str]:
    """Yields the ids of groups, and then those of which there are offsets: some come twice."""
    yield from list(groups.by_id)
    yield from groups.offsets.all_group_ids()
