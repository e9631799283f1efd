"""Imports, in the idle seconds after a start, what the first uses of the broker's parts import otherwise: the first
JoinGroup would hold everybody up for tens of milliseconds (docs/adr/0045-large-requests.md).
"""

from __future__ import annotations

from importlib import import_module

from kafka_shim.scheduler import Scheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from kafka_shim.broker import Broker

# A broker that is stopped before, as in most tests, has paid nothing.
AFTER_MS = 5000
# Between two modules, for those who are served meanwhile.
PAUSE_MS = 20
# The modules that producers, consumers, transactions, all kinds of groups and the creation of topics use. A module
# stands after those that it imports, so that each import brings few others. Modules for administrators are left out.
MODULES = (
    "api.k18_api_versions",
    "api.k03_metadata",
    "api.produce_append",
    "api.k00_produce",
    "protocol.messages.fetch_response",
    "api.k01_fetch",
    "api.delayed_fetch",
    "api.k10_find_coordinator",
    "api.k02_list_offsets",
    "group.metadata_image",
    "group.classic_join",
    "group.classic_sync",
    "protocol.records.group_metadata_value",
    "group.consumer_protocol",
    "group.classic",
    "group.classic_kind",
    "protocol.records.consumer_group_current_member_assignment_value",
    "protocol.records.consumer_group_member_metadata_value",
    "protocol.records.consumer_group_metadata_value",
    "protocol.records.consumer_group_target_assignment_member_value",
    "protocol.records.consumer_group_target_assignment_metadata_value",
    "group.consumer_records",
    "group.consumer",
    "group.consumer_kind",
    "protocol.records.share_group_metadata_key",
    "protocol.records.share_group_metadata_value",
    "protocol.records.share_group_state_partition_metadata_key",
    "protocol.records.share_group_state_partition_metadata_value",
    "protocol.records.share_group_target_assignment_member_key",
    "protocol.records.share_group_target_assignment_member_value",
    "protocol.records.share_group_target_assignment_metadata_key",
    "protocol.records.share_group_target_assignment_metadata_value",
    "group.share",
    "group.share_kind",
    "protocol.records.streams_group_member_metadata_key",
    "protocol.records.streams_group_metadata_key",
    "protocol.records.streams_group_metadata_value",
    "protocol.records.streams_group_target_assignment_member_key",
    "protocol.records.streams_group_target_assignment_member_value",
    "protocol.records.streams_group_target_assignment_metadata_key",
    "protocol.records.streams_group_target_assignment_metadata_value",
    "group.streams.group",
    "group.streams.topology",
    "group.streams.member",
    "group.streams.kind",
    "group.request_context",
    "group.purgatory",
    "group.requests",
    "group.member_turns",
    "group.classic_requests",
    "group.groups",
    "group.replay",
    "group.large_offsets",
    "group.offset_rules",
    "api.k11_join_group",
    "api.k14_sync_group",
    "api.k12_heartbeat",
    "group.classic_leave",
    "api.k13_leave_group",
    "api.k09_offset_fetch",
    "api.k08_offset_commit",
    "group.assignors",
    "group.assignor_mixed",
    "group.consumer_target",
    "group.consumer_reconcile",
    "group.consumer_leave",
    "group.migration",
    "group.consumer_regex",
    "group.consumer_heartbeat",
    "group.consumer_requests",
    "group.topic_hash",
    "api.k68_consumer_group_heartbeat",
    "api.k22_init_producer_id",
    "protocol.records.transaction_log_key",
    "protocol.records.transaction_log_value",
    "api.k24_add_partitions_to_txn",
    "api.k25_add_offsets_to_txn",
    "api.k26_end_txn",
    "api.k28_txn_offset_commit",
    "config.generated_rows",
    "config.docs",
    "config.effects",
    "config.providers",
    "config.table",
    "config.listener",
    "config.parse",
    "config.dynamic",
    "metadata.config_entries",
    "metadata.config_checks",
    "metadata.configs",
    "metadata.large_changes",
    "api.k19_create_topics",
    "api.k20_delete_topics",
    "api.k32_describe_configs",
    "api.k76_share_group_heartbeat",
    "share.in_flight_batch",
    "share.share_partition",
    "share.share_sessions",
    "share.share_partitions",
    "api.share_fetch_reads",
    "api.k78_share_fetch",
    "api.k79_share_acknowledge",
    "api.delayed_share_fetch",
    "share.records",
    "share.shard",
    "share.shard_loader",
    "share.coordinator",
    "group.streams.configured",
    "group.streams.assignor",
    "group.streams.target",
    "group.streams.heartbeat",
    "api.k88_streams_group_heartbeat",
)


def import_in_slices(broker: Broker) -> Scheduler:
    """Begin. Nothing is imported any more once the scheduler that is returned is stopped."""
    scheduler = Scheduler(broker.clock)
    scheduler.after("imports", AFTER_MS, scheduler.in_slices, "imports", imports(MODULES), PAUSE_MS)
    return scheduler


def imports(modules: Sequence[str]) -> Generator[None, None, None]:
    """Import one module a step. What fails, for lack of memory or descriptors, is left to its first use, which says
    so."""
    for name in modules:
        try:
            import_module(f"kafka_shim.{name}")
        except (ImportError, OSError, MemoryError):
            return
        yield
