"""`kafka-consumer-groups.sh` (Kafka: ConsumerGroupCommand). What goes wrong at the broker is printed, and the status
is 0 all the same, as that of Kafka's tool."""

from __future__ import annotations

import re
import sys

from kafka_shim.client.groups import list_groups
from kafka_shim.client.reading import LATEST, list_offsets
from kafka_shim.client.requests import make
from kafka_shim.errors import ErrorCode
from kafka_shim.tools.consumer_group_data import ConsumerGroup, committed, describe
from kafka_shim.tools.errors import exception_of, message_of
from kafka_shim.tools.options import FLAG, NUMBER, OPTIONAL, VALUE, Options, UsageError, connect
from kafka_shim.tools.reset_offsets import SCENARIOS, InvalidArgument, parse_topics, prepare, print_plan, to_csv
from kafka_shim.tools.running import flat_main, leave
from kafka_shim.wire_client import RequestError, WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_shim.client.cluster import Cluster, TopicPartition
    from kafka_shim.tools.options import Given

    Row = tuple[object, ...]

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
NOT_EXECUTED = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will require "
    "either --dry-run or --execute to be specified. You should add the --dry-run option explicitly if you are "
    "scripting this command and want to keep the current default behavior without prompting.\n"
)
OPTIONS = Options(
    "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, or reset "
    "consumer group offsets.",
    {
        **dict.fromkeys(("list", "describe", "delete", "reset-offsets", "delete-offsets"), FLAG),
        **dict.fromkeys(("all-topics", "all-groups", "dry-run", "execute", "export", "members", "verbose"), FLAG),
        **dict.fromkeys(("offsets", "to-earliest", "to-latest", "to-current"), FLAG),
        **dict.fromkeys(("bootstrap-server", "command-config", "group", "topic", "validate-regex"), VALUE),
        **dict.fromkeys(("from-file", "to-datetime", "by-duration"), VALUE),
        **dict.fromkeys(("timeout", "to-offset", "shift-by"), NUMBER),
        **dict.fromkeys(("state", "type"), OPTIONAL),
    },
)
NONE = "-"
STATES = ("Empty", "Assigning", "Reconciling", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
TYPES = ("classic", "consumer")


def run(given: Given) -> int:
    _check(given)
    if given.has("validate-regex"):
        return _validate(given.text("validate-regex"))
    try:
        with connect(given, "kafka-consumer-groups") as cluster:
            RUN[given.exactly_one(*ACTIONS)](cluster, given)
    except InvalidArgument as err:
        raise UsageError(str(err)) from None
    except WireClientError as err:
        # Java's exception is wrapped in another one, whose message names its class, except where offsets are reset.
        said = message_of(err) if given.has("reset-offsets") else exception_of(err)
        print(f"\nError: Executing consumer group command failed due to {said}")
    return 0


def _check(given: Given) -> None:
    if not given.has("validate-regex"):
        given.require("bootstrap-server")
    for name, on in (("members", ("describe",)), ("verbose", ("describe",)), ("offsets", ("describe",))):
        if given.has(name) and not given.has(*on):
            raise UsageError(f"Option(s) [{name}] are unavailable given other options on the command line")
    if (given.has("state") and not given.has("describe", "list")) or (given.has("type") and not given.has("list")):
        raise UsageError("Option(s) [state, type] are unavailable given other options on the command line")
    has_groups = given.has("group", "all-groups")
    for name in ("describe", "delete", "reset-offsets"):
        if given.has(name) and not has_groups:
            raise UsageError(f"Option [{name}] takes one of these options: [group], [all-groups]")
    if given.has("describe"):
        if sum(given.has(name) for name in ("members", "offsets", "state")) > 1:
            raise UsageError("Option [describe] takes at most one of these options: [members], [offsets], [state]")
        if given.one("state") is not None:
            raise UsageError("Option [describe] does not take a value for [state]")
    if given.has("delete") and given.has("topic"):
        raise UsageError("The consumer does not support topic-specific offset deletion from a consumer group.")
    if given.has("delete-offsets") and not (given.has("group") and given.has("topic")):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")
    if given.has("reset-offsets"):
        if given.has("dry-run") and given.has("execute"):
            raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
        if not given.has("dry-run", "execute"):
            sys.stderr.write(NOT_EXECUTED)
        for name in SCENARIOS:
            given.exclude(name, [other for other in SCENARIOS if other != name])
    given.exclude("group", ["all-groups", "list"])
    given.exclude("topic", ["list", "describe"])
    if sum(given.has(name) for name in ACTIONS) != 1:
        raise UsageError(f"Command must include exactly one action: {', '.join(f'--{name}' for name in ACTIONS)}")


def _validate(pattern: str) -> int:
    try:
        re.compile(pattern)
    except re.error as err:
        print(f"The regular expression `{pattern}` is invalid: {err}.")
    else:
        print(f"The regular expression `{pattern}` is valid.")
    return 0


# --- list


def _consumer_groups(cluster: Cluster, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ConsumerListed]:
    found = list_groups(cluster, states, types or TYPES)
    return [(one.group_id, one.kind.capitalize(), one.state) for one in found if one.protocol in ("consumer", "")]


ConsumerListed = tuple[str, str, str]


def list_all(cluster: Cluster, given: Given) -> None:
    shows_type, shows_state = given.has("type"), given.has("state")
    groups = _consumer_groups(cluster, _states(given.text("state")), _types(given.text("type")))
    if not (shows_type or shows_state):
        for name, *_ in groups:
            print(name)
        return
    width = max(15, *(len(name) for name, *_ in groups), 0) + 10
    for name, kind, state in [("GROUP", "TYPE", "STATE"), *groups]:
        cells = [f"{name:<{width}}"]
        cells += [f"{kind:<20}"] if shows_type else []
        cells += [f"{state:<20}"] if shows_state else []
        print(" ".join(cells))


def _states(text: str) -> list[str]:
    known = {state.lower(): state for state in STATES}
    words = [word.strip().lower().replace("_", "") for word in text.split(",")] if text else []
    if not set(words) <= known.keys():
        raise InvalidArgument(f"Invalid state list '{text}'. Valid states are: {', '.join(STATES)}")
    return [known[word] for word in words]


def _types(text: str) -> list[str]:
    words = [word.strip() for word in text.lower().split(",")] if text else []
    if not set(words) <= set(TYPES):
        raise InvalidArgument(f"Invalid types list '{text}'. Valid types are: Consumer, Classic")
    return words


# --- describe


def describe_groups(cluster: Cluster, given: Given) -> None:
    is_verbose = given.has("verbose")
    show = _print_members if given.has("members") else _print_state if given.has("state") else _print_offsets
    found = [describe(cluster, name) for name in dict.fromkeys(_names(cluster, given))]
    for group in sorted(found, key=lambda one: one.group_id):
        show(cluster, group, is_verbose)


def _names(cluster: Cluster, given: Given) -> list[str]:
    return [name for name, *_ in _consumer_groups(cluster)] if given.has("all-groups") else given.all("group")


def _is_shown(group: ConsumerGroup, count: int) -> bool:
    if group.state == "Dead":
        print(f"\nError: Consumer group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        sys.stderr.write(f"\nConsumer group '{group.group_id}' has no active members.\n")
    elif group.state != "Stable":
        sys.stderr.write(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.\n")
    return group.state != "Dead" and count > 0


def _print_offsets(cluster: Cluster, group: ConsumerGroup, is_verbose: bool) -> None:
    offsets = committed(cluster, group.group_id)
    rows: list[list[str]] = []
    taken: set[TopicPartition] = set()
    for member in sorted(group.members, key=lambda one: len(one.held), reverse=True):
        taken |= set(member.held)
        rows += _rows(cluster, group.group_id, member.held, offsets, (member.member_id, member.host, member.client_id))
    rest = [each for each in offsets if each not in taken]
    rows += _rows(cluster, group.group_id, rest, offsets, (NONE, NONE, NONE))
    if not _is_shown(group, len(rows)):
        return
    titles = ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    titles += ["CONSUMER-ID", "HOST", "CLIENT-ID"]
    widths = [15, 15, 10, 15, 15, 15, 15, 15, 15, 0]
    for at in (0, 1, 7, 8):
        widths[at] = max(15, *(len(row[at]) for row in rows))
    shown = [at for at in range(len(titles)) if is_verbose or at != 3]
    for row in [titles, *rows]:
        print("\n" + " ".join(f"{row[at]:<{widths[at]}}" for at in shown), end="")
    print()


def _rows(
    cluster: Cluster,
    group: str,
    partitions: Sequence[TopicPartition],
    offsets: dict[TopicPartition, tuple[int, int | None]],
    who: tuple[str, str, str],
) -> list[list[str]]:
    ends = list_offsets(cluster, dict.fromkeys(partitions, LATEST)) if partitions else {}
    rows = []
    for topic, number in sorted(partitions):
        offset, epoch = offsets.get((topic, number), (None, None))
        end = ends[topic, number]
        lag = None if offset is None else end - offset
        cells = (group, topic, number, epoch, offset, end, lag, *who)
        rows.append([NONE if cell is None else str(cell) for cell in cells])
    return rows


def _print_members(cluster: Cluster, group: ConsumerGroup, is_verbose: bool) -> None:
    members = group.members
    has_instance = any(member.instance_id for member in members)
    is_migrating = {member.is_upgraded for member in members} >= {True, False}
    rows = [
        [
            group.group_id,
            member.member_id,
            member.instance_id,
            member.host,
            member.client_id,
            str(len(member.held)),
            _text(member.epoch),
            _assignment(member.held),
            _text(group.assignment_epoch),
            _assignment(member.target),
            "" if member.is_upgraded is None else str(member.is_upgraded).lower(),
        ]
        for member in members
    ]
    titles = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "CURRENT-EPOCH"]
    titles += ["CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED"]
    widths = [15, 15, 17, 15, 15, 15, 15, 20, 15, 20, 0]
    if _is_shown(group, len(members)):
        for at in (0, 1, 2, 3, 4, 7, 9):
            widths[at] = max(widths[at], *(len(row[at]) for row in rows))
    first = [at for at in range(6) if has_instance or at != 2]
    more = [6, 7, 8, 9, 10] if is_migrating else [6, 7, 8, 9]
    print()
    for row in [titles, *rows]:
        line = "".join(f"{row[at]:<{widths[at]}} " for at in first)
        print(line + (" ".join(f"{row[at]:<{widths[at]}}" for at in more) if is_verbose else ""))


def _text(value: object) -> str:
    return NONE if value is None else str(value)


def _assignment(held: Sequence[TopicPartition]) -> str:
    topics: dict[str, list[int]] = {}
    for topic, number in held:
        topics.setdefault(topic, []).append(number)
    return ";".join(f"{topic}:{','.join(map(str, sorted(topics[topic])))}" for topic in sorted(topics)) or NONE


def _print_state(cluster: Cluster, group: ConsumerGroup, is_verbose: bool) -> None:
    if not _is_shown(group, 1):
        return
    titles = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    cells = [group.group_id, group.coordinator, group.assignor or NONE, group.state]
    widths = [max(15, len(group.group_id)), max(25, len(group.coordinator)), 20, 20]
    if is_verbose:
        titles += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        cells += [_text(group.epoch), _text(group.assignment_epoch)]
        widths += [15, 25]
    for row, count in ((titles, "#MEMBERS"), (cells, str(len(group.members)))):
        print("\n" + " ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)), count, end="")
    print()


# --- changes


def delete(cluster: Cluster, given: Given) -> None:
    failed: dict[str, RequestError] = {}
    done: list[str] = []
    for name in dict.fromkeys(_names(cluster, given)):
        try:
            _delete(cluster, name)
            done.append(name)
        except RequestError as err:
            failed[name] = err
    names = ", ".join(f"'{name}'" for name in done)
    if not failed:
        print(f"Deletion of requested consumer groups ({names}) was successful.")
        return
    print("\nError: Deletion of some consumer groups failed:")
    for name, refusal in failed.items():
        print(f"* Group '{name}' could not be deleted due to: {exception_of(refusal)}")
    if done:
        print(f"\nThese consumer groups were deleted successfully: {names}")


def _delete(cluster: Cluster, name: str) -> None:
    def ask() -> None:
        (result,) = cluster.coordinator(name).request(make("DeleteGroups", groups_names=[name])).results
        check(result.error_code)

    cluster.patiently(ask)


def reset(cluster: Cluster, given: Given) -> None:
    plans: dict[str, dict[TopicPartition, int]] = {}
    for name in dict.fromkeys(_names(cluster, given)):
        try:
            state = describe(cluster, name).state
        except RequestError as err:
            if err.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            state = "Dead"
        if state not in ("Empty", "Dead"):
            print(
                f"\nError: Assignments can only be reset if the group '{name}' is inactive, but the current state is "
                f"{state}."
            )
            plans[name] = {}
            continue
        plans[name] = prepare(cluster, given, name)
        if given.has("execute"):
            from kafka_shim.client.offsets import commit_offsets

            commit_offsets(cluster, name, plans[name])
    if given.has("export"):
        print(to_csv(plans, len(given.all("group")) == 1))
    else:
        print_plan(plans)


def delete_offsets(cluster: Cluster, given: Given) -> None:
    name = given.text("group")
    results: dict[TopicPartition, str] = {}
    partitions: list[TopicPartition] = []
    for text in given.all("topic"):
        try:
            partitions += parse_topics(cluster, [text])
        except RequestError as err:
            results[text, -1] = f"Error: {exception_of(err)}"
    topics: dict[str, list[dict[str, int]]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append({"partition_index": number})
    request = make(
        "OffsetDelete",
        group_id=name,
        topics=[{"name": topic, "partitions": numbers} for topic, numbers in topics.items()],
    )

    answer = cluster.patiently(lambda: cluster.coordinator(name).request(request))
    first: RequestError | None = RequestError(answer.error_code) if answer.error_code else None
    if first is not None:
        results |= {each: f"Error: {exception_of(first)}" for each in partitions}
        print(f"\nError: {message_of(first)}")
    else:
        for topic in answer.topics:
            for each in topic.partitions:
                refusal = RequestError(each.error_code) if each.error_code else None
                first = first or refusal
                said = "Successful" if refusal is None else f"Error: {exception_of(refusal)}"
                results[topic.name, each.partition_index] = said
        if first is None:
            print(f"Request succeeded for deleting offsets from group {name}.")
        else:
            print("\nError: Encountered some partition-level error, see the follow-up details.")
    width = max(15, *(len(topic) for topic, _ in results), 0)
    rows = sorted(results.items(), key=lambda one: f"{one[0][0]}{one[0][1]}")
    lines = [(topic, NONE if number < 0 else str(number), said) for (topic, number), said in rows]
    for name_of, number_of, status in [("TOPIC", "PARTITION", "STATUS"), *lines]:
        print(f"\n{name_of:<{width}} {number_of:<10} {status:<15}", end="")
    print()


RUN = {
    "list": list_all,
    "describe": describe_groups,
    "delete": delete,
    "reset-offsets": reset,
    "delete-offsets": delete_offsets,
}
main = flat_main(OPTIONS, run)

if __name__ == "__main__":
    leave(main)
