"""`kafka-shim groups`: list, describe with lag, reset and delete offsets, delete. The tables look like those of Kafka's
tool.
"""

from __future__ import annotations

import click

from kafka_shim.client.groups import GROUP_STATES, GROUP_TYPES, describe_group, list_groups, share_offsets
from kafka_shim.client.offsets import by_topic, committed_offsets
from kafka_shim.client.reading import LATEST, list_offsets
from kafka_shim.client.requests import make
from kafka_shim.commands.group_offsets import partitions_of, reset_offsets
from kafka_shim.commands.options import (
    bootstrap_option,
    cluster_of,
    each_in_turn,
    json_option,
    show_rows,
    wants_json,
    warn_of_unknown,
)
from kafka_shim.commands.tables import print_table
from kafka_shim.errors import ErrorCode
from kafka_shim.wire_client import RequestError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.client.cluster import Cluster, TopicPartition
    from kafka_shim.client.groups import Group, Member

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
EPILOG = """\b
Examples:
  kafka-shim groups list -v
  kafka-shim groups describe --all
  kafka-shim groups reset-offsets billing --topic orders --to-datetime 2026-01-31T12:00:00 --execute

\b
Exit status: 0; 1 the broker refused or was not reached; 2 wrong options.
"""


@click.group(
    name="groups", epilog=EPILOG, help="List and describe groups, reset and delete their offsets, delete groups."
)
def group() -> None:
    pass


group.add_command(reset_offsets)


@group.command(name="list", help="Print all groups.")
@bootstrap_option
@click.option("--state", "states", multiple=True, help="only in this state, as Stable or Empty; repeatable")
@click.option(
    "--type", "types", multiple=True, help="only of this type: classic, consumer, share or streams; repeatable"
)
@click.option("-v", "--verbose", is_flag=True, help="with type and state")
@json_option
def show_groups(bootstrap_server: str, states: tuple[str, ...], types: tuple[str, ...], verbose: bool) -> None:
    warn_of_unknown("type", types, GROUP_TYPES)
    warn_of_unknown("state", states, GROUP_STATES)
    with cluster_of(bootstrap_server) as cluster:
        found = list_groups(cluster, states, types)
        if verbose or wants_json():
            print_table(("GROUP", "TYPE", "STATE"), [(one.group_id, one.kind.title(), one.state) for one in found])
        else:
            for one in found:
                click.echo(one.group_id)


@group.command(help="Print offsets and lag of groups of any type, or with an option their members or their state.")
@click.argument("names", nargs=-1)
@bootstrap_option
@click.option("--all", "everything", is_flag=True, help="all groups")
@click.option("--members", is_flag=True, help="members and how many partitions they have")
@click.option("--state", is_flag=True, help="state, assignor and number of members")
@click.option("--offsets", is_flag=True, help="offsets and lag; the default")
@json_option
def describe(
    names: tuple[str, ...], bootstrap_server: str, everything: bool, members: bool, state: bool, offsets: bool
) -> None:
    if bool(names) == everything:
        raise click.UsageError("name groups, or give --all")
    if members + state + offsets > 1:
        raise click.UsageError("give one of --members, --state and --offsets")
    with cluster_of(bootstrap_server) as cluster:
        chosen = [one.group_id for one in list_groups(cluster)] if everything else names
        for name in chosen:
            try:
                found = describe_group(cluster, name)
            except RequestError as error:
                if everything and error.code == ErrorCode.GROUP_ID_NOT_FOUND:
                    continue  # it is gone since it was listed
                raise
            if members:
                _describe_members(found)
            elif state:
                _describe_state(found)
            else:
                _describe_offsets(cluster, found)


def _describe_members(found: Group) -> None:
    rows = [(found.group_id, _member_id(one), one.host, one.client_id, len(one.held)) for one in found.members]
    print_table(("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"), sorted(rows))


def _member_id(member: Member) -> str:
    return member.member_id if member.instance_id is None else f"{member.instance_id}-{member.member_id}"


def _describe_state(found: Group) -> None:
    row = (found.group_id, found.assignor or None, found.state, len(found.members))
    print_table(("GROUP", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"), [row])


def _describe_offsets(cluster: Cluster, found: Group) -> None:
    if found.state == "Empty":
        kind = "Consumer" if found.kind in ("classic", "consumer") else found.kind.title()
        click.echo(f"{kind} group '{found.group_id}' has no active members.", err=True)
    lags: dict[TopicPartition, int] = {}
    if found.kind == "share":
        shared = share_offsets(cluster, found.group_id)
        current = {each: start for each, (start, _) in shared.items() if start >= 0}
        lags = {each: lag for each, (_, lag) in shared.items() if lag >= 0}
    else:
        current = committed_offsets(cluster, found.group_id)
    owners: dict[TopicPartition, Member] = {each: one for one in found.members for each in one.held}
    partitions = sorted({*current, *owners})
    ends = _end_offsets(cluster, partitions)
    rows = []
    for each in partitions:
        at, end = current.get(each), ends.get(each)
        lag = lags.get(each) if found.kind == "share" else None if at is None or end is None else max(end - at, 0)
        owner = owners.get(each)
        who = (None, None, None) if owner is None else (_member_id(owner), owner.host, owner.client_id)
        rows.append((found.group_id, *each, at, end, lag, *who))
    print_table(OFFSET_COLUMNS, rows)


def _end_offsets(cluster: Cluster, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """The ends of those that exist: offsets outlive topics that were deleted."""
    topics = cluster.metadata(sorted({topic for topic, _ in partitions})).topics
    there = {(topic.name, one.partition_index) for topic in topics for one in topic.partitions}
    return list_offsets(cluster, dict.fromkeys([each for each in partitions if each in there], LATEST))


@group.command(name="delete-offsets", help="Delete committed offsets of topics that the group's members do not use.")
@click.argument("name")
@bootstrap_option
@click.option("--topic", "topics", multiple=True, required=True, metavar="TOPIC[:P,P]", help="repeatable")
@json_option
def delete_offsets(name: str, bootstrap_server: str, topics: tuple[str, ...]) -> None:
    with cluster_of(bootstrap_server) as cluster:
        request = make(
            "OffsetDelete",
            group_id=name,
            topics=[
                {"name": topic, "partitions": [{"partition_index": each} for each in partitions]}
                for topic, partitions in by_topic(partitions_of(cluster, topics)).items()
            ],
        )
        answer = cluster.coordinator(name).request(request)
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
@json_option
def delete(names: tuple[str, ...], bootstrap_server: str) -> None:
    with cluster_of(bootstrap_server) as cluster:
        answers = [cluster.coordinator(name).request(make("DeleteGroups", groups_names=[name])) for name in names]
        results = [result for answer in answers for result in answer.results]

        def tell(result: Any) -> None:
            check(result.error_code, subject=result.group_id)
            _say_deleted(result.group_id)

        each_in_turn(results, tell)


def _say_deleted(name: str) -> None:
    show_rows(("Group",), [(name,)], lambda: click.echo(f"Deleted group {name}."))
