"""`kafka-groups.sh` (Kafka: GroupsCommand)."""

from __future__ import annotations

import sys

from kafka_shim.client.groups import GROUP_TYPES, list_groups
from kafka_shim.tools.errors import message_of
from kafka_shim.tools.options import FLAG, VALUE, Options, UsageError, connect
from kafka_shim.tools.running import flat_main, leave
from kafka_shim.wire_client import WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.client.groups import Listed
    from kafka_shim.tools.options import Given

OPTIONS = Options(
    "This tool helps to list groups of all types.",
    {
        **dict.fromkeys(("bootstrap-server", "command-config", "group-type", "protocol"), VALUE),
        **dict.fromkeys(("list", "consumer", "share", "streams"), FLAG),
    },
)
FILTERS = ("consumer", "share", "streams")
# The narrowest column.
WIDTH = 20


def run(given: Given) -> int:
    if not given.has("bootstrap-server"):
        raise UsageError("Missing required option(s) [bootstrap-server]")
    if not given.has("list"):
        raise UsageError("Command must include exactly one action: --list.")
    kind = given.text("group-type").lower()
    if kind and kind not in GROUP_TYPES:
        sys.stderr.write("--group-type must be a valid group type.\n")
        return 1
    for name in FILTERS:
        given.exclude(name, [other for other in (*FILTERS, "group-type", "protocol") if other != name])
    try:
        with connect(given, "kafka-groups") as cluster:
            groups = [group for group in list_groups(cluster) if _is_wanted(group, given, kind)]
    except WireClientError as err:
        print(f"Error while executing groups command : {message_of(err)}")
        return 1
    rows = [(group.group_id, group.kind.capitalize(), group.protocol) for group in groups]
    width = max(WIDTH, *(len(cell) for row in rows for cell in row), 0)
    print(" ".join(f"{title:<{width}}" for title in ("GROUP", "TYPE", "PROTOCOL")))
    for row in rows:
        print("".join(f"{cell:<{width}} " for cell in row))
    return 0


def _is_wanted(group: Listed, given: Given, kind: str) -> bool:
    protocol = given.one("protocol")
    if kind:
        return group.kind == kind and protocol in (None, group.protocol)
    if protocol is not None:
        return group.protocol == protocol
    if given.has("consumer"):
        return group.protocol in ("consumer", "") or group.kind == "consumer"
    if given.has("share", "streams"):
        return group.kind == ("share" if given.has("share") else "streams")
    return True


main = flat_main(OPTIONS, run)

if __name__ == "__main__":
    leave(main)
