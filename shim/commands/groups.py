"""`kafka-shim groups`: list, describe with lag, reset and delete offsets, delete. The tables look like those of Kafka's
tool.
"""

from __future__ import annotations

import click

from kafka_shim.commands.options import (
    bootstrap_option,
    connected,
    json_option,
    look_up_coordinators,
    show_rows,
    wants_json,
)
from kafka_shim.errors import ErrorCode
from kafka_shim.group.consumer_protocol import ConsumerProtocolError, read_assignment
from kafka_shim.wire_client import Connection, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    TopicPartition = tuple[str, int]

GROUP = 0
EARLIEST, LATEST = -2, -1
GROUP_TYPES = ("classic", "consumer", "share", "streams")
# What describes the groups that are neither classic nor consumer groups.
OTHER_TOOLS = {"share": "kafka-share-groups.sh", "streams": "kafka-streams-groups.sh"}
DASH = "-"
OFFSET_COLUMNS = (
    "GROUP",
    "TOPIC",
    "PARTITION",
    "CURRENT-OFFSET",
    "LOG-END-OFFSET",
    "LAG",
    "CONSUMER-ID",
    "HOST",
    "CLIENT-ID",
)


class Member:
    """A group member of either protocol, for display."""

    __slots__ = ("client_id", "held", "host", "instance_id", "member_id")

    def __init__(
        self, member_id: str, instance_id: str | None, client_id: str, host: str, held: set[TopicPartition]
    ) -> None:
        self.member_id = member_id if instance_id is None else f"{instance_id}-{member_id}"
        self.instance_id = instance_id
        self.client_id = client_id
        self.host = host
        self.held = held


class Group:
    """A group of either protocol, for display."""

    __slots__ = ("assignor", "group_id", "members", "state")

    def __init__(self, group_id: str, state: str, assignor: str, members: list[Member]) -> None:
        self.group_id = group_id
        self.state = state
        self.assignor = assignor
        self.members = members


@click.group(name="groups", help="List and describe groups, reset and delete their offsets, delete groups.")
def group() -> None:
    pass


@group.command(name="list", help="Print all groups.")
@bootstrap_option
@click.option("--state", "states", multiple=True, help="only in this state, as Stable or Empty; repeatable")
@click.option(
    "--type", "types", multiple=True, help="only of this type: classic, consumer, share or streams; repeatable"
)
@click.option("-v", "--verbose", is_flag=True, help="with type and state")
@json_option
def list_groups(bootstrap_server: str, states: tuple[str, ...], types: tuple[str, ...], verbose: bool) -> None:
    from kafka_shim.protocol.messages.list_groups_request import ListGroupsRequest

    for each in types:
        if each.lower() not in GROUP_TYPES:
            click.echo(f"warning: no type is named {each}", err=True)
    with connected(bootstrap_server) as connection:
        answer = connection.request(ListGroupsRequest(states_filter=list(states), types_filter=list(types)))
        check(answer.error_code)
        found = sorted(answer.groups, key=lambda each: each.group_id)
        if verbose or wants_json():
            rows = [(each.group_id, each.group_type.title(), each.group_state) for each in found]
            print_table(("GROUP", "TYPE", "STATE"), rows)
        else:
            for each in found:
                click.echo(each.group_id)


@group.command(help="Print offsets and lag of groups, or with an option their members or their state.")
@click.argument("names", nargs=-1, required=True)
@bootstrap_option
@click.option("--members", "what", flag_value="members", help="members and how many partitions they have")
@click.option("--state", "what", flag_value="state", help="state, assignor and number of members")
@click.option("--offsets", "what", flag_value="offsets", default=True, help="offsets and lag; the default")
@json_option
def describe(names: tuple[str, ...], bootstrap_server: str, what: str) -> None:
    with connected(bootstrap_server) as connection:
        look_up_coordinators(connection, GROUP, names)
        for name in names:
            found = find_group(connection, name)
            if what == "members":
                _describe_members(found)
            elif what == "state":
                _describe_state(found)
            else:
                _describe_offsets(connection, found)


def _describe_members(found: Group) -> None:
    rows = [(found.group_id, one.member_id, one.host, one.client_id, len(one.held)) for one in found.members]
    print_table(("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"), sorted(rows))


def _describe_state(found: Group) -> None:
    row = (found.group_id, found.assignor or DASH, found.state, len(found.members))
    print_table(("GROUP", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"), [row])


def _describe_offsets(connection: Connection, found: Group) -> None:
    if found.state == "Empty":
        click.echo(f"Consumer group '{found.group_id}' has no active members.", err=True)
    committed = committed_offsets(connection, found.group_id)
    owners = {each: one for one in found.members for each in one.held}
    partitions = sorted({*committed, *owners})
    ends = list_offsets(connection, dict.fromkeys(partitions, LATEST))
    rows = []
    for each in partitions:
        current, end = committed.get(each), ends.get(each)
        lag = DASH if current is None or end is None else max(end - current, 0)
        owner = owners.get(each)
        who = (DASH, DASH, DASH) if owner is None else (owner.member_id, owner.host, owner.client_id)
        rows.append((found.group_id, *each, _dash(current), _dash(end), lag, *who))
    print_table(OFFSET_COLUMNS, rows)


@group.command(name="reset-offsets", help="Move the offsets of a group without members; only prints without --execute.")
@click.argument("name")
@bootstrap_option
@click.option("--topic", "topics", multiple=True, metavar="TOPIC[:P,P]", help="repeatable; default: all committed")
@click.option("--to-earliest", "target", flag_value="earliest", help="to the first record")
@click.option("--to-latest", "target", flag_value="latest", help="to the end")
@click.option("--to-current", "target", flag_value="current", help="to where it is, inside what the log holds")
@click.option("--to-offset", type=int, help="to this offset")
@click.option("--shift-by", type=int, help="by this many records, back when negative")
@click.option("--to-timestamp", type=int, metavar="MS", help="to the first record at or after this time")
@click.option("--execute", is_flag=True, help="do it")
@json_option
def reset_offsets(
    name: str,
    bootstrap_server: str,
    topics: tuple[str, ...],
    target: str | None,
    to_offset: int | None,
    shift_by: int | None,
    to_timestamp: int | None,
    execute: bool,
) -> None:
    wanted = [each for each in (target, to_offset, shift_by, to_timestamp) if each is not None]
    if len(wanted) != 1:
        raise click.UsageError(
            "give one of --to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-timestamp"
        )
    with connected(bootstrap_server) as connection:
        look_up_coordinators(connection, GROUP, [name])
        state = find_group(connection, name, must_exist=False).state
        if state not in ("Empty", "Dead"):
            raise click.ClickException(f"group {name} is {state}: its offsets can be reset only while it is inactive")
        committed = committed_offsets(connection, name)
        partitions = _partitions(connection, topics) if topics else sorted(committed)
        if not partitions:
            raise click.ClickException(f"group {name} has no offsets: name topics with --topic")
        earliest = list_offsets(connection, dict.fromkeys(partitions, EARLIEST))
        for topic, partition in partitions:
            if (topic, partition) not in earliest:
                check(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, subject=f"{topic}-{partition}")
        latest = list_offsets(connection, dict.fromkeys(partitions, LATEST))
        chosen: dict[TopicPartition, int] = {}
        if to_timestamp is not None:
            at_time = list_offsets(connection, dict.fromkeys(partitions, to_timestamp))
        for each in partitions:
            if target == "earliest":
                offset = earliest[each]
            elif target == "latest":
                offset = latest[each]
            elif to_timestamp is not None:
                offset = at_time[each] if at_time[each] >= 0 else latest[each]
            elif to_offset is not None:
                offset = to_offset
            else:
                offset = committed.get(each, latest[each]) + (shift_by or 0)
            chosen[each] = min(max(offset, earliest[each]), latest[each])
        if execute:
            _commit(connection, name, chosen)
        rows = [(name, topic, partition, offset) for (topic, partition), offset in chosen.items()]
        print_table(("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), rows)
        if not execute:
            click.echo("nothing was changed: add --execute", err=True)


@group.command(name="delete-offsets", help="Delete committed offsets of topics that the group's members do not use.")
@click.argument("name")
@bootstrap_option
@click.option("--topic", "topics", multiple=True, required=True, metavar="TOPIC[:P,P]", help="repeatable")
@json_option
def delete_offsets(name: str, bootstrap_server: str, topics: tuple[str, ...]) -> None:
    from kafka_shim.protocol.messages.offset_delete_request import (
        OffsetDeleteRequest,
        OffsetDeleteRequestPartition,
        OffsetDeleteRequestTopic,
    )

    with connected(bootstrap_server) as connection:
        look_up_coordinators(connection, GROUP, [name])
        request = OffsetDeleteRequest(
            group_id=name,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=each) for each in partitions]
                )
                for topic, partitions in _by_topic(_partitions(connection, topics)).items()
            ],
        )
        answer = connection.request(request)
        check(answer.error_code, subject=name)
        rows = [
            (topic.name, each.partition_index, "Successful" if not each.error_code else ErrorCode(each.error_code).name)
            for topic in answer.topics
            for each in topic.partitions
        ]
        print_table(("TOPIC", "PARTITION", "STATUS"), rows)
        for topic in answer.topics:
            for each in topic.partitions:
                check(each.error_code, subject=f"{topic.name}-{each.partition_index}")


@group.command(help="Delete groups without members, with their offsets.")
@click.argument("names", nargs=-1, required=True)
@bootstrap_option
def delete(names: tuple[str, ...], bootstrap_server: str) -> None:
    from kafka_shim.protocol.messages.delete_groups_request import DeleteGroupsRequest

    with connected(bootstrap_server) as connection:
        look_up_coordinators(connection, GROUP, names)
        results = connection.request(DeleteGroupsRequest(groups_names=list(names))).results
        for result in sorted(results, key=lambda each: each.error_code != 0):
            check(result.error_code, subject=result.group_id)
            click.echo(f"Deleted group {result.group_id}.")


# --- requests to the broker


def find_group(connection: Connection, name: str, must_exist: bool = True) -> Group:
    """Returns a group of either protocol. A missing group has the state Dead, or raises RequestError GROUP_ID_NOT_FOUND
    if `must_exist`.
    """
    from kafka_shim.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
    from kafka_shim.protocol.messages.describe_groups_request import DescribeGroupsRequest

    if ConsumerGroupDescribeRequest.API_KEY in connection.ranges():
        (modern,) = connection.request(ConsumerGroupDescribeRequest(group_ids=[name])).groups
        if not modern.error_code:
            return Group(
                name, modern.group_state, modern.assignor_name, [_modern_member(one) for one in modern.members]
            )
    (classic,) = connection.request(DescribeGroupsRequest(groups=[name])).groups
    if must_exist:
        if classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            _refuse_other_types(connection, name)
        check(classic.error_code, classic.error_message, name)
    members = [
        Member(one.member_id, one.group_instance_id, one.client_id, one.client_host, _held(one.member_assignment))
        for one in classic.members
    ]
    return Group(name, classic.group_state, classic.protocol_data, members)


def _refuse_other_types(connection: Connection, name: str) -> None:
    """Raises ClickException for a share or streams group, which these commands do not describe."""
    from kafka_shim.protocol.messages.list_groups_request import ListGroupsRequest

    for each in connection.request(ListGroupsRequest()).groups:
        if each.group_id == name and each.group_type.lower() in OTHER_TOOLS:
            raise click.ClickException(
                f"{name} is a {each.group_type.lower()} group: use Kafka's {OTHER_TOOLS[each.group_type.lower()]}"
            )


def _modern_member(member: Any) -> Member:
    held = {
        (entry.topic_name, partition) for entry in member.assignment.topic_partitions for partition in entry.partitions
    }
    return Member(member.member_id, member.instance_id, member.client_id, member.client_host, held)


def _held(assignment: bytes) -> set[TopicPartition]:
    try:
        by_topic, _ = read_assignment(bytes(assignment))
    except ConsumerProtocolError:
        return set()  # not the consumer protocol
    return {(topic, partition) for topic, partitions in by_topic.items() for partition in partitions}


def committed_offsets(connection: Connection, name: str) -> dict[TopicPartition, int]:
    """Returns all committed offsets of a group."""
    from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup

    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None)], require_stable=False)
    (answer,) = connection.request(request, 9).groups
    check(answer.error_code, subject=name)
    return {
        (topic.name, each.partition_index): each.committed_offset
        for topic in answer.topics
        for each in topic.partitions
        if each.committed_offset >= 0
    }


def list_offsets(connection: Connection, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Returns the offset of each partition for a timestamp, EARLIEST or LATEST; -1 if there is none."""
    from kafka_shim.protocol.messages.list_offsets_request import (
        ListOffsetsPartition,
        ListOffsetsRequest,
        ListOffsetsTopic,
    )

    if not wanted:
        return {}
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=each, timestamp=wanted[topic, each]) for each in partitions
                ],
            )
            for topic, partitions in _by_topic(wanted).items()
        ],
    )
    found = {}
    for topic in connection.request(request).topics:
        for each in topic.partitions:
            if each.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                check(each.error_code, subject=f"{topic.name}-{each.partition_index}")
                found[topic.name, each.partition_index] = each.offset
    return found


def _commit(connection: Connection, name: str, offsets: Mapping[TopicPartition, int]) -> None:
    from kafka_shim.protocol.messages.offset_commit_request import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )

    request = OffsetCommitRequest(
        group_id=name,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(partition_index=each, committed_offset=offsets[topic, each])
                    for each in partitions
                ],
            )
            for topic, partitions in _by_topic(offsets).items()
        ],
    )
    for topic in connection.request(request, 9).topics:
        for each in topic.partitions:
            check(each.error_code, subject=f"{topic.name}-{each.partition_index}")


def _partitions(connection: Connection, texts: Iterable[str]) -> list[TopicPartition]:
    """Parses `TOPIC` (all partitions) or `TOPIC:0,2`."""
    from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic

    found: list[TopicPartition] = []
    for text in texts:
        topic, _, numbers = text.partition(":")
        if numbers:
            try:
                found += [(topic, int(each)) for each in numbers.split(",")]
            except ValueError as error:
                raise click.UsageError(f"--topic {text}: partitions are numbers") from error
            continue
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        (answer,) = connection.request(request).topics
        check(answer.error_code, subject=topic)
        found += sorted((topic, each.partition_index) for each in answer.partitions)
    return found


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def _dash(value: int | None) -> str:
    return DASH if value is None else str(value)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints columns as wide as their widest cell, separated by one space, or with `--json` objects."""
    show_rows(columns, rows, lambda: _print_table(columns, rows))


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    texts = [list(columns), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[index]) for row in texts) for index in range(len(texts[0]))]
    for row in texts:
        click.echo(" ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
