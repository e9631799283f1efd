"""`uniform` for members with different subscriptions. Members keep what they have, the remaining partitions go to the
least loaded subscribers, and then partitions move from loaded members to less loaded ones, topic by topic, until
nothing moves.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.group.assignors import GroupSpec
    from kafka_shim.group.consumer_member import Partitions

# The maximum number of rounds over all topics. More rounds gain too little for their time.
MAX_ROUNDS = 16


def assign_mixed(spec: GroupSpec) -> dict[str, Partitions]:
    """Returns the assignment by member id. It is empty if no member is subscribed to an existing topic."""
    return _Mixed(spec).run()


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


class _Mixed:
    """The state of one run. Members are represented by their index in the order of `spec.members`."""

    def __init__(self, spec: GroupSpec) -> None:
        self.spec = spec
        self.ids = list(spec.members)
        self.subscribers: dict[bytes, list[int]] = {}
        for number, member in enumerate(spec.members.values()):
            for topic_id in member.topic_ids:
                self.subscribers.setdefault(topic_id, []).append(number)
        self.loads = [0] * len(self.ids)
        self.owners = {topic_id: [-1] * spec.partition_counts[topic_id] for topic_id in self.subscribers}
        self.result: list[Partitions] = [{} for _ in self.ids]

    def run(self) -> dict[str, Partitions]:
        if not self.subscribers:
            return {}
        self._keep()
        unassigned = {
            topic_id: [partition for partition, owner in enumerate(owners) if owner == -1]
            for topic_id, owners in self.owners.items()
        }
        balancer = _Balancer(self.loads)
        for topic_id in self._in_order([topic_id for topic_id, found in unassigned.items() if found]):
            balancer.start(self.subscribers[topic_id])
            for partition in unassigned[topic_id]:
                self._give(topic_id, partition, balancer.next_least_loaded())
        self._balance([topic_id for topic_id, found in self.subscribers.items() if len(found) >= 2])
        return dict(zip(self.ids, self.result, strict=True))

    def _keep(self) -> None:
        for number, member in enumerate(self.spec.members.values()):
            for topic_id, partitions in member.assignment.items():
                if topic_id not in member.topic_ids:
                    continue
                self.result[number][topic_id] = set(partitions)
                self.loads[number] += len(partitions)
                for partition in partitions:
                    self.owners[topic_id][partition] = number

    def _in_order(self, topic_ids: list[bytes]) -> list[bytes]:
        """Order: most partitions per subscriber first, then fewest subscribers, then topic id."""

        def place(topic_id: bytes) -> tuple[float, int, int, int]:
            subscribers = len(self.subscribers[topic_id])
            ratio = self.spec.partition_counts[topic_id] / subscribers
            return -ratio, subscribers, _signed(topic_id[:8]), _signed(topic_id[8:])

        return sorted(topic_ids, key=place)

    def _give(self, topic_id: bytes, partition: int, number: int) -> None:
        owner = self.owners[topic_id][partition]
        if owner != -1:
            theirs = self.result[owner][topic_id]
            theirs.discard(partition)
            if not theirs:
                del self.result[owner][topic_id]
            self.loads[owner] -= 1
        self.result[number].setdefault(topic_id, set()).add(partition)
        self.owners[topic_id][partition] = number
        self.loads[number] += 1

    def _balance(self, topic_ids: list[bytes]) -> None:
        ordered = self._in_order(topic_ids)
        balancer = _Balancer(self.loads)
        last_moved = -1
        for _ in range(MAX_ROUNDS):
            for index, topic_id in enumerate(ordered):
                if index == last_moved:
                    return
                if self._balance_topic(topic_id, balancer) > 0 or last_moved == -1:
                    last_moved = index

    def _balance_topic(self, topic_id: bytes, balancer: _Balancer) -> int:
        """Returns the number of moves made."""
        if balancer.start(self.subscribers[topic_id]) <= 1:
            return 0
        owners = self.owners[topic_id]
        # The partitions of each owner. The highest is moved first.
        by_owner: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            by_owner.setdefault(owner, []).append(partition)
        moved = 0
        while not balancer.is_balanced:
            donor = balancer.next_most_loaded()
            while donor != -1 and not by_owner.get(donor):
                balancer.exclude_most_loaded()
                donor = balancer.next_most_loaded()
            if donor == -1:
                break
            partition = by_owner[donor].pop()
            taker = balancer.next_least_loaded()
            if balancer.is_balanced:
                break
            self._give(topic_id, partition, taker)
            moved += 1
        return moved


class _Balancer:
    """Walks the subscribers of one topic from the least loaded upwards and from the most loaded downwards, one load
    level at a time. Every step takes one partition from the top and gives it to the bottom."""

    def __init__(self, loads: list[int]) -> None:
        self.loads = loads
        self.members: list[int] = []
        # The bottom: members[:low_end] have low_load partitions, or will have them once the walk has passed them.
        self.low_end = 0
        self.low_load = 0
        self.next_low = 0
        # The top: members[high_start:high_end] have high_load.
        self.high_start = 0
        self.high_end = 0
        self.high_load = 0
        self.next_high = 0

    def start(self, members: list[int]) -> int:
        """Begin with these members. Returns the difference between the highest and the lowest load."""
        self.members = sorted(members, key=lambda number: (self.loads[number], number))
        least, most = self.loads[self.members[0]], self.loads[self.members[-1]]
        self.low_end = 0
        self.low_load = least - 1
        self.next_low = 0
        self.high_start = self.high_end = len(self.members)
        self.high_load = most + 1
        self.next_high = len(self.members) - 1
        return most - least

    def next_least_loaded(self) -> int:
        """Returns the member that gets the next partition."""
        if self.next_low >= self.low_end:
            self.low_load += 1
            while self.low_end < len(self.members) and self.loads[self.members[self.low_end]] == self.low_load:
                self.low_end += 1
            self.next_low = 0
        member = self.members[self.next_low]
        self.next_low += 1
        return member

    def next_most_loaded(self) -> int:
        """Returns the member that gives up the next partition, or -1 if none is left."""
        if self.next_high < self.high_start:
            if self.high_end <= self.high_start and self.high_start > 0:
                # Every member of the level was excluded: there may be a gap to the next level.
                self.high_load = self.loads[self.members[self.high_start - 1]]
            else:
                self.high_load -= 1
            while self.high_start > 0 and self.loads[self.members[self.high_start - 1]] == self.high_load:
                self.high_start -= 1
            self.next_high = self.high_end - 1
        if self.next_high < 0:
            return -1
        member = self.members[self.next_high]
        self.next_high -= 1
        return member

    def exclude_most_loaded(self) -> None:
        """Exclude the member returned last: it has no partition of this topic to give up."""
        at = self.next_high + 1
        self.members[at], self.members[self.high_end - 1] = self.members[self.high_end - 1], self.members[at]
        self.high_end -= 1

    @property
    def is_balanced(self) -> bool:
        return self.high_load - self.low_load <= 1
