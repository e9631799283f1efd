"""A scripted sequence of group requests, recorded in a form that is comparable between brokers."""

from __future__ import annotations

import time
from itertools import count

from kafka_shim.errors import ErrorCode
from kafka_shim.java_hash import internal_partition
from kafka_shim.protocol.message import Message
from kafka_shim.targets import parked
from kafka_shim.targets.requests import make
from kafka_shim.targets.waiting import PATIENCE_S, right_answer
from kafka_shim.wire_client import Connection, WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# Fields that differ between runs and are not compared.
_IGNORED = {"throttle_time_ms", "unknown_tags"}
OFFSETS_TOPIC = "__consumer_offsets"
# What a broker does behind its responses is done by then, also on a busy machine.
_LOOK_UPS = {"DescribeGroups", "StreamsGroupDescribe", "ConsumerGroupDescribe", "OffsetFetch", "ListGroups"}


class Script:
    """A sequence of requests to one broker. Every response is noted, with random ids replaced by their order of
    appearance; `said` of two brokers must be equal. Requests that the broker may delay get their own connection.
    """

    def __init__(self, bootstrap: str, suffix: str) -> None:
        self.bootstrap = bootstrap
        self.suffix = suffix
        self.said: list[Any] = []
        self._names: dict[Any, str] = {}
        self._main = Connection(bootstrap, client_id="script", timeout_s=PATIENCE_S)
        self._parked: list[Parked] = []
        self._count = 0

    def close(self) -> None:
        for each in self._parked:
            each.connection.close()
        self._main.close()

    def group(self, name: str) -> str:
        """Returns a group id for this run."""
        return f"{name}-{self.suffix}"

    def topic(self, name: str, partitions: int = 1) -> str:
        """Creates a topic for this run."""
        full = f"{name}-{self.suffix}"
        topics = [{"name": full, "num_partitions": partitions, "replication_factor": 1}]
        self._main.request(make("CreateTopics", topics=topics, timeout_ms=60_000), 7)
        self._names.setdefault(full, name)
        self._wait_for(full)
        return full

    def _wait_for(self, topic: str) -> None:
        """Waits until Kafka's coordinator accepts a commit for the topic. It learns of a topic some time after its
        creation.
        """
        entry = {"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 0}]}
        self.quietly("FindCoordinator", 4, key_type=0, coordinator_keys=[f"wait-{topic}"])
        self.until(
            lambda: self.quietly("OffsetCommit", 9, group_id=f"wait-{topic}", topics=[entry]),
            lambda answer: not answer.topics[0].partitions[0].error_code,
            f"{topic} does not appear",
        )
        # The assignor learns of it later still. Wait until a member of another group gets partitions.
        deadline_s = time.monotonic() + PATIENCE_S
        for number in count():
            member = {"group_id": f"wait-{number}-{topic}", "member_id": "waits"}
            first = {"member_epoch": 0, "rebalance_timeout_ms": 10_000, "topic_partitions": []}
            given: Any = self.quietly("ConsumerGroupHeartbeat", 1, **member, **first, subscribed_topic_names=[topic])
            if isinstance(given, str) or given.error_code:
                return  # a broker without this protocol
            self.quietly("ConsumerGroupHeartbeat", 1, **member, member_epoch=-1)
            if given.assignment is not None and given.assignment.topic_partitions:
                return
            assert time.monotonic() < deadline_s, f"{topic} is not assigned"
            time.sleep(0.02)

    def topic_id(self, topic: str) -> bytes:
        found: Any = self._main.request(make("Metadata", topics=[{"name": topic}]), 12)
        topic_id = bytes(found.topics[0].topic_id)
        self._names.setdefault(topic_id, f"id of {topic}")
        return topic_id

    # --- requests

    def ask(self, api: str, version: int, **fields: Any) -> Any:
        """Sends a request, notes the response and returns it. Kafka's look-ups see a change only after its write has
        completed, so they are sent after a write that completes behind it.
        """
        if api in _LOOK_UPS:
            self._write_behind(_groups_of(fields))
        return self._note(f"{api} v{version}", self._send(self._main, api, version, fields))

    def listed(self, group: str, **filters: Any) -> None:
        """Asks ListGroups, and notes what it says of this group and those whose ids begin with its id: other
        conversations on the same broker have groups of the same kind.
        """
        self._write_behind([group])
        told = self.quietly("ListGroups", 5, **filters)
        told.groups = [one for one in told.groups if one.group_id.startswith(group)]
        self._note("ListGroups v5", told)

    def _write_behind(self, groups: Iterable[str]) -> None:
        """Returns when a commit in the partition of each group has completed; all earlier writes there have then
        completed too.
        """
        if not self._count:
            found: Any = self.quietly("Metadata", 12, topics=[{"name": OFFSETS_TOPIC}])
            self._count = len(found.topics[0].partitions)
        for partition in sorted({internal_partition(group, self._count) for group in groups}):
            name = next(name for name in map(str, count()) if internal_partition(name, self._count) == partition)
            entry = {"name": OFFSETS_TOPIC, "partitions": [{"partition_index": 0, "committed_offset": 0}]}
            self.quietly("OffsetCommit", 9, group_id=name, topics=[entry])

    def settle(self, transactional_id: str) -> None:
        """Waits until all markers of a transaction are written. Kafka responds to EndTxn before that."""
        self.until(
            lambda: self.quietly("DescribeTransactions", 0, transactional_ids=[transactional_id]),
            # A coordinator that loads again tells an error and no state.
            lambda told: (
                not told.transaction_states[0].error_code
                and not told.transaction_states[0].transaction_state.startswith("Prepare")
            ),
            f"the transaction of {transactional_id} does not end",
        )

    def until(self, ask: Callable[[], Any], holds: Callable[[Any], bool], otherwise: str) -> Any:
        """Asks until the answer is as wanted, and returns it: Kafka does some work behind its responses. Raises
        AssertionError with `otherwise` at the deadline.
        """
        return right_answer(ask, holds, otherwise)

    def quietly(self, api: str, version: int, **fields: Any) -> Any:
        """Sends a request without noting the response."""
        return self._send(self._main, api, version, fields)

    def park(self, api: str, version: int, **fields: Any) -> Parked:
        """Sends a request that the broker may delay. `Parked.answer()` notes the response."""
        self._parked.append(Parked(self, make(api, **fields), version, f"{api} v{version}"))
        return self._parked[-1]

    def _send(self, connection: Connection, api: str, version: int, fields: dict[str, Any]) -> Any:
        try:
            return connection.request(make(api, **fields), version)
        except WireClientError as error:
            return str(error)

    def _note(self, what: str, response: Any) -> Any:
        self._find_members(response)
        self.said.append((what, self._plain(response)))
        return response

    def _find_members(self, value: Any) -> None:
        """Names members in their order of appearance."""
        for row in value.FIELDS if isinstance(value, Message) else ():
            inner = getattr(value, row[0])
            if row[0] in ("member_id", "leader") and inner and inner not in self._names:
                self._names[inner] = f"member {len(self._names)}"
            for each in inner if isinstance(inner, list) else ():
                self._find_members(each)

    def name(self, value: str | bytes, name: str) -> None:
        """Replaces this value with `name` from now on."""
        if value:
            self._names.setdefault(value, name)

    def _plain(self, value: Any, field: str = "") -> Any:
        if isinstance(value, Message):
            return {
                row[0]: self._plain(getattr(value, row[0]), row[0]) for row in value.FIELDS if row[0] not in _IGNORED
            }
        if isinstance(value, list | tuple):
            return sorted((self._plain(each) for each in value), key=repr)
        if isinstance(value, int) and "error" in field:
            return ErrorCode(value).name
        if field == "error_message":
            return value is not None
        if field == "client_host" and str(value).startswith("/"):
            return "/an address"  # a broker in a container sees that of its network
        if isinstance(value, str):
            for known, name in self._names.items():
                if isinstance(known, str) and known in value:
                    value = value.replace(known, name)
            return value.replace(self.suffix, "run")
        if isinstance(value, bytes | bytearray | memoryview):
            plain = bytes(value)
            return self._names.get(plain, "an id" if field.endswith("_id") and any(plain) else plain)
        return value


def _groups_of(fields: dict[str, Any]) -> list[str]:
    """The groups that a look-up names."""
    named = [fields.get("group_id", ""), *fields.get("group_ids", ())]
    named += [each["group_id"] if isinstance(each, dict) else each for each in fields.get("groups", ())]
    return [each for each in named if each]


class Parked(parked.Parked):
    """A request that may wait."""

    def __init__(self, script: Script, message: Message, version: int, what: str) -> None:
        super().__init__(script.bootstrap, message, version, client_id="script", timeout_s=PATIENCE_S)
        self._script = script
        self._what = what

    def answer(self) -> Any:
        """The response, noted when it is there."""
        try:
            response = self.receive()
        except WireClientError as error:
            response = str(error)
        return self._script._note(self._what, response)
