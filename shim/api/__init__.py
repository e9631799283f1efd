"""The list of APIs. Dispatch and ApiVersions both read it; a test checks that rows, modules and message tables agree.

A handler is `shim/api/k<key>_<name>.py` with `KEY, MIN, MAX` (MIN is the lowest version that is served), `REQUEST` and
`RESPONSE` (message classes), and

    def handle(context: Context, request: REQUEST) -> RESPONSE | Outcome | None | Coroutine | Steps

An `Outcome` (shim/outcome.py) is a response with the fsyncs that must finish before it, or with work that follows it. A
coroutine returns a response, an `Outcome` or None. None: no response is sent. A handler that waits is `async def`. A
handler that rarely waits (Produce, Fetch) is a plain `def` that returns a coroutine if it must, so that the common case
runs without a task. `Steps` are a generator (shim/turns.py): a handler whose work grows with the entries of its request
yields after each, so that a request with very many of them holds up nobody. It returns a response or an `Outcome`, and
must expect a changed state after each `yield`. `records` of a request are views of the receive buffer and are valid
until `handle` returns. A coroutine therefore copies what it needs with `bytes(...)` *before* it is returned, that is,
in the plain `def` part. A KafkaError that `handle` raises becomes the response's error (shim/api/failures.py).
`ABANDONABLE = True` in the module: a waiting request is cancelled when its client disconnects; one that acts first and
then waits sets `Session.is_abandonable` for that time. `PLAIN` is a fast path for requests about which there is nothing
to decide (`cext.plain_api`); `context.done` is what it has done of a request that it leaves to `handle`.
"""

from __future__ import annotations

from enum import Enum
from importlib import import_module

from kafka_shim.cext.dispatcher_base import ApiBase
from kafka_shim.security.acl import AclOperation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kafka_shim.context import Context
    from kafka_shim.protocol.message import Message


class ThrottleClass(Enum):
    """The Kafka quota that an API counts against, besides the request-time quota, which applies to all APIs but the
    exempt ones."""

    REQUEST = "request_percentage"
    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    CONTROLLER_MUTATION = "controller_mutation_rate"
    EXEMPT = "exempt"


T, Op = ThrottleClass, AclOperation
# Whether an API may be served on a connection that has not authenticated yet. `Authenticator.admit` decides when.
EARLY, LATER = True, False

# key, name, advertised first version, last version, first version that is served; which throttle; operations on the
# cluster of which the client needs one (handlers ask for what else they need); whether served before authentication
ROWS: tuple[tuple[int, str, int, int, int, ThrottleClass, tuple[AclOperation, ...], bool], ...] = (
    # advertised from 0 for librdkafka before 2.x, as Kafka does (KAFKA-18659)
    (0, "produce", 0, 13, 3, T.PRODUCE, (), LATER),
    (1, "fetch", 4, 18, 4, T.FETCH, (), LATER),
    (2, "list_offsets", 1, 11, 1, T.REQUEST, (), LATER),
    (3, "metadata", 0, 13, 0, T.REQUEST, (), LATER),
    (8, "offset_commit", 2, 10, 2, T.REQUEST, (), LATER),
    (9, "offset_fetch", 1, 10, 1, T.REQUEST, (), LATER),
    (10, "find_coordinator", 0, 6, 0, T.REQUEST, (), LATER),
    (11, "join_group", 0, 9, 0, T.REQUEST, (), LATER),
    (12, "heartbeat", 0, 4, 0, T.REQUEST, (), LATER),
    (13, "leave_group", 0, 5, 0, T.REQUEST, (), LATER),
    (14, "sync_group", 0, 5, 0, T.REQUEST, (), LATER),
    (15, "describe_groups", 0, 6, 0, T.REQUEST, (), LATER),
    (16, "list_groups", 0, 5, 0, T.REQUEST, (), LATER),
    (17, "sasl_handshake", 0, 1, 0, T.REQUEST, (), EARLY),
    (18, "api_versions", 0, 4, 0, T.REQUEST, (), EARLY),
    (19, "create_topics", 2, 7, 2, T.CONTROLLER_MUTATION, (), LATER),
    (20, "delete_topics", 1, 6, 1, T.CONTROLLER_MUTATION, (), LATER),
    (21, "delete_records", 0, 2, 0, T.REQUEST, (), LATER),
    (22, "init_producer_id", 0, 5, 0, T.REQUEST, (), LATER),  # see UNSTABLE (B25)
    (23, "offset_for_leader_epoch", 2, 4, 2, T.REQUEST, (), LATER),
    (24, "add_partitions_to_txn", 0, 5, 0, T.REQUEST, (), LATER),
    (25, "add_offsets_to_txn", 0, 4, 0, T.REQUEST, (), LATER),
    (26, "end_txn", 0, 5, 0, T.REQUEST, (), LATER),
    (27, "write_txn_markers", 1, 2, 1, T.EXEMPT, (Op.ALTER, Op.CLUSTER_ACTION), LATER),
    (28, "txn_offset_commit", 0, 5, 0, T.REQUEST, (), LATER),
    (29, "describe_acls", 1, 3, 1, T.REQUEST, (Op.DESCRIBE,), LATER),
    (30, "create_acls", 1, 3, 1, T.REQUEST, (Op.ALTER,), LATER),
    (31, "delete_acls", 1, 3, 1, T.REQUEST, (Op.ALTER,), LATER),
    (32, "describe_configs", 1, 4, 1, T.REQUEST, (), LATER),
    (33, "alter_configs", 0, 2, 0, T.REQUEST, (), LATER),
    (34, "alter_replica_log_dirs", 1, 2, 1, T.REQUEST, (Op.ALTER,), LATER),
    (35, "describe_log_dirs", 1, 5, 1, T.REQUEST, (Op.DESCRIBE,), LATER),
    (36, "sasl_authenticate", 0, 2, 0, T.REQUEST, (), EARLY),
    (37, "create_partitions", 0, 3, 0, T.CONTROLLER_MUTATION, (), LATER),
    (38, "create_delegation_token", 1, 3, 1, T.REQUEST, (), LATER),
    (39, "renew_delegation_token", 1, 2, 1, T.REQUEST, (), LATER),
    (40, "expire_delegation_token", 1, 2, 1, T.REQUEST, (), LATER),
    (41, "describe_delegation_token", 1, 3, 1, T.REQUEST, (), LATER),
    (42, "delete_groups", 0, 2, 0, T.REQUEST, (), LATER),
    (43, "elect_leaders", 0, 2, 0, T.REQUEST, (Op.ALTER,), LATER),
    (44, "incremental_alter_configs", 0, 1, 0, T.REQUEST, (), LATER),
    (45, "alter_partition_reassignments", 0, 1, 0, T.REQUEST, (Op.ALTER,), LATER),
    (46, "list_partition_reassignments", 0, 0, 0, T.REQUEST, (Op.DESCRIBE,), LATER),
    (47, "offset_delete", 0, 0, 0, T.REQUEST, (), LATER),
    (48, "describe_client_quotas", 0, 1, 0, T.REQUEST, (Op.DESCRIBE_CONFIGS,), LATER),
    (49, "alter_client_quotas", 0, 1, 0, T.REQUEST, (Op.ALTER_CONFIGS,), LATER),
    (50, "describe_user_scram_credentials", 0, 0, 0, T.REQUEST, (Op.DESCRIBE,), LATER),
    (51, "alter_user_scram_credentials", 0, 0, 0, T.REQUEST, (Op.ALTER,), LATER),
    (55, "describe_quorum", 0, 2, 0, T.REQUEST, (Op.DESCRIBE,), LATER),
    (57, "update_features", 0, 2, 0, T.REQUEST, (Op.ALTER,), LATER),
    (60, "describe_cluster", 0, 2, 0, T.REQUEST, (), LATER),
    (61, "describe_producers", 0, 0, 0, T.REQUEST, (), LATER),
    (64, "unregister_broker", 0, 0, 0, T.REQUEST, (Op.ALTER,), LATER),
    (65, "describe_transactions", 0, 0, 0, T.REQUEST, (), LATER),
    (66, "list_transactions", 0, 2, 0, T.REQUEST, (), LATER),
    (68, "consumer_group_heartbeat", 0, 1, 0, T.REQUEST, (), LATER),
    (69, "consumer_group_describe", 0, 1, 0, T.REQUEST, (), LATER),
    (71, "get_telemetry_subscriptions", 0, 0, 0, T.REQUEST, (), LATER),
    (72, "push_telemetry", 0, 0, 0, T.REQUEST, (), LATER),
    (74, "list_config_resources", 0, 1, 0, T.REQUEST, (Op.DESCRIBE_CONFIGS,), LATER),
    (75, "describe_topic_partitions", 0, 0, 0, T.REQUEST, (), LATER),
    (76, "share_group_heartbeat", 1, 1, 1, T.REQUEST, (), LATER),
    (77, "share_group_describe", 1, 1, 1, T.REQUEST, (), LATER),
    (78, "share_fetch", 1, 2, 1, T.FETCH, (), LATER),
    (79, "share_acknowledge", 1, 2, 1, T.REQUEST, (), LATER),
    (80, "add_raft_voter", 0, 1, 0, T.REQUEST, (Op.ALTER,), LATER),
    (81, "remove_raft_voter", 0, 0, 0, T.REQUEST, (Op.ALTER,), LATER),
    (83, "initialize_share_group_state", 0, 0, 0, T.REQUEST, (Op.CLUSTER_ACTION,), LATER),
    (84, "read_share_group_state", 0, 0, 0, T.REQUEST, (Op.CLUSTER_ACTION,), LATER),
    (85, "write_share_group_state", 0, 1, 0, T.REQUEST, (Op.CLUSTER_ACTION,), LATER),
    (86, "delete_share_group_state", 0, 0, 0, T.REQUEST, (Op.CLUSTER_ACTION,), LATER),
    (87, "read_share_group_state_summary", 0, 1, 0, T.REQUEST, (Op.CLUSTER_ACTION,), LATER),
    (88, "streams_group_heartbeat", 0, 0, 0, T.REQUEST, (), LATER),
    (89, "streams_group_describe", 0, 0, 0, T.REQUEST, (), LATER),
    (90, "describe_share_group_offsets", 0, 1, 0, T.REQUEST, (), LATER),
    (91, "alter_share_group_offsets", 0, 0, 0, T.REQUEST, (), LATER),
    (92, "delete_share_group_offsets", 0, 0, 0, T.REQUEST, (), LATER),
)
# GetTelemetrySubscriptions, PushTelemetry: served always, but advertised only if `metric.reporters` names a receiver.
TELEMETRY = frozenset({71, 72})
# Key -> the last version that Kafka 4.3.1 does not release yet: with `unstable.api.versions.enable`.
UNSTABLE = {22: 6}


class Api(ApiBase):
    """One row. The handler's module is imported on the first request for it, so that start-up does not pay for it."""

    __slots__ = (
        "advertised_min",
        "before_authentication",
        "is_abandonable",
        "last_unstable",
        "module_name",
        "name",
        "throttle",
    )

    if TYPE_CHECKING:
        cluster_operations: tuple[AclOperation, ...]
        handle: Callable[[Context, Any], Any]
        request: type[Message]
        response: type[Message]

    def __init__(
        self,
        key: int,
        name: str,
        advertised_min: int,
        last: int,
        first: int,
        throttle: ThrottleClass,
        cluster_operations: tuple[AclOperation, ...],
        before_authentication: bool,
        package: str = __name__,
    ) -> None:
        self.key = key
        self.name = name
        self.module_name = f"{package}.k{key:02d}_{name}"
        self.advertised_min = advertised_min
        self.last = last
        self.last_unstable = UNSTABLE.get(key, last)
        self.first = first
        self.throttle = throttle
        self.cluster_operations = cluster_operations
        self.before_authentication = before_authentication
        # Set by `load`, which also sets the request class.
        self.handle = _not_loaded
        self.plain = None
        self.is_abandonable = False
        self.is_loaded = False

    def load(self) -> None:
        """Import the handler and set `handle`, `plain`, `request`, `response` and `is_abandonable`."""
        module = import_module(self.module_name)
        self.request = module.REQUEST
        self.response = module.RESPONSE
        self.is_abandonable = getattr(module, "ABANDONABLE", False)
        self.handle = module.handle
        self.plain = getattr(module, "PLAIN", None)
        self.is_loaded = True


def _not_loaded(context: Context, request: Any) -> Any:
    raise AssertionError("the handler is not loaded")


APIS = tuple(Api(*row) for row in ROWS)
TABLE = {api.key: api for api in APIS}
