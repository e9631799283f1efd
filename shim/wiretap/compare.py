"""Compares two responses by meaning. Pairs the ids that each broker generates, and ignores fields that depend on the
time or the host.
"""

from __future__ import annotations

from kafka_shim.cext.batch import Batch, BatchError, scan
from kafka_shim.cext.records import iterate, parse_marker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.message import ZERO_UUID, Message
from kafka_shim.wiretap.frames import error_codes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

# Fields that are not compared: they differ between brokers and between runs.
IGNORED = {
    *(
        "throttle_time_ms",
        "host",
        "port",
        "cluster_id",
        "rack",
        "log_dir",
        "error_message",
        "batch_index_error_message",
    ),
    *("timestamp", "log_append_time_ms", "transaction_start_time_ms", "last_timestamp", "unknown_tags", "records"),
    *("leader_epoch", "current_leader_epoch", "committed_leader_epoch", "finalized_features_epoch"),
    *("offset_lag", "total_bytes", "usable_bytes", "size"),
}
# Ids that brokers generate. A recorded id is paired with the id that the other broker returns in the same place.
INVENTED = {
    *("producer_id", "topic_id", "member_id", "leader", "session_id", "node_id", "leader_id", "controller_id"),
    *("replica_nodes", "isr_nodes", "offline_replicas", "broker_id"),
}
# Transient errors of a broker that is not ready yet. Another broker may be ready earlier or later.
PASSING = {
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "CONCURRENT_TRANSACTIONS",
    "LEADER_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "UNSTABLE_OFFSET_COMMIT",
}
# Values that mean "no id" on both sides. Fetch session 0 means the same.
NO_ID = (-1, "", ZERO_UUID)


class Pairs:
    """Maps recorded ids to live ids, separately for each kind of id."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, Any], Any] = {}
        self._live: set[tuple[str, Any]] = set()

    def learn(self, field: str, recorded: Any, live: Any) -> bool:
        """Pairs two values. Returns False if the recorded value is already paired with a different live value."""
        if recorded in NO_ID or live in NO_ID or (field == "session_id" and 0 in (recorded, live)):
            return bool(recorded == live)
        is_pair = bool(self._pairs.setdefault((kind_of(field), recorded), live) == live)
        if is_pair:
            self._live.add((kind_of(field), live))
        return is_pair

    def relearn(self, field: str, recorded: Any, live: Any) -> None:
        """Pairs two values and replaces an earlier pair. For ids that are reused, such as fetch session ids."""
        self._live.add((kind_of(field), live))
        self._pairs[kind_of(field), recorded] = live

    def live(self, field: str, recorded: Any) -> Any:
        """Returns the live value that is paired with a recorded value, or the recorded value itself if
        it has no pair.
        """
        return self._pairs.get((kind_of(field), recorded), recorded)

    def known_recorded(self, field: str, recorded: Any) -> Any:
        """Returns the live value that is paired with a recorded value, None if it has no pair."""
        return self._pairs.get((kind_of(field), recorded))

    def known_live(self, field: str, live: Any) -> Any:
        """Returns a live value that has a pair, else None."""
        return live if (kind_of(field), live) in self._live else None


def kind_of(field: str) -> str:
    """Returns the kind of id that a field holds. Fields of the same kind share their pairs."""
    if field.endswith("producer_id"):
        return "producer_id"
    if field in ("member_id", "leader"):
        return "member_id"
    if field in ("node_id", "leader_id", "broker_id", "controller_id", "replica_nodes", "isr_nodes"):
        return "node_id"
    return field


def is_invented(field: str) -> bool:
    return field in INVENTED or field.endswith(("producer_id", "topic_id"))


def answers_differ(recorded: Any, live: Any, pairs: Pairs) -> list[str]:
    """Returns the same as ``differences``, but returns no lines if both responses hold only transient errors (PASSING)
    and the recorded one holds at least one. The client retries in either case.
    """
    lines = differences(recorded, live, pairs)
    errors = error_codes(recorded)
    return [] if errors and {*errors, *error_codes(live)} <= PASSING else lines


def differences(recorded: Any, live: Any, pairs: Pairs, path: str = "", field: str = "") -> list[str]:
    """Returns one line for each place where two responses differ in meaning. Adds the ids that it meets to `pairs`."""
    if isinstance(recorded, Message) and isinstance(live, Message):
        found: list[str] = []
        for row in recorded.FIELDS:
            name = row[0]
            if name not in IGNORED:
                inner = f"{path}.{name}" if path else name
                found += differences(getattr(recorded, name), getattr(live, name), pairs, inner, name)
        return found
    if isinstance(recorded, list) and isinstance(live, list):
        if len(recorded) != len(live):
            return [f"{path}: {len(recorded)} entries recorded, {len(live)} now"]
        both = zip(
            sorted(recorded, key=lambda entry: (_order(entry), _known(entry, field, pairs.known_recorded))),
            sorted(live, key=lambda entry: (_order(entry), _known(entry, field, pairs.known_live))),
            strict=True,
        )
        return [line for at, (a, b) in enumerate(both) for line in differences(a, b, pairs, f"{path}[{at}]", field)]
    if is_invented(field) and not isinstance(recorded, Message | list) and recorded is not None and live is not None:
        return [] if pairs.learn(field, recorded, live) else [f"{path}: {recorded!r} recorded, {live!r} now"]
    if recorded == live:
        return []
    return [f"{path}: {_shown(field, recorded)} recorded, {_shown(field, live)} now"]


def _order(value: Any) -> str:
    """Returns the sort key of a list entry. It leaves out generated ids and ignored fields, because they differ between
    the two sides.
    """
    if isinstance(value, Message):
        names = [row[0] for row in value.FIELDS if row[0] not in IGNORED and not is_invented(row[0])]
        return repr([_order(getattr(value, name)) for name in names])
    if isinstance(value, list):
        return repr([_order(each) for each in value])
    return repr(value)


def _known(value: Any, field: str, known: Callable[[str, Any], Any]) -> str:
    """Returns what tells list entries apart that differ in generated ids alone: those that have a pair already, which
    the order of the entries may follow.
    """
    if isinstance(value, Message):
        return repr([_known(getattr(value, row[0]), row[0], known) for row in value.FIELDS if row[0] not in IGNORED])
    if isinstance(value, list):
        return repr(sorted(_known(each, field, known) for each in value))
    return repr(known(field, value)) if is_invented(field) else ""


def _shown(field: str, value: Any) -> str:
    return ErrorCode(value).name if "error_code" in field and isinstance(value, int) else repr(value)


def batches_of(data: Any) -> Iterator[tuple[bytes, Batch]]:
    """Yields (buffer, batch) for each complete batch of a records field. Stops at an incomplete or invalid batch."""
    if data is None:
        return
    raw = bytes(data) if isinstance(data, bytes | bytearray | memoryview) else b"".join(bytes(part) for part in data)
    at = 0
    while at < len(raw):
        try:
            batch = scan(raw, at)
        except BatchError:
            return
        yield raw, batch
        at = batch.end_position


def records_of(data: Any) -> dict[int, tuple[object, ...]]:
    """Returns the records of a Fetch response by offset: (key, value, headers...) of a data record, or the kind of a
    transaction marker.
    """
    found: dict[int, tuple[object, ...]] = {}
    for raw, batch in batches_of(data):
        for record in iterate(raw, batch.position, batch.end_position):
            if batch.is_control:
                commit, _ = parse_marker(record.key or b"", record.value or b"")
                found[record.offset] = ("commit marker" if commit else "abort marker",)
            else:
                found[record.offset] = (record.key, record.value, *record.headers)
    return found
