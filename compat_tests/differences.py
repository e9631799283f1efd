"""The known differences between the shim and Apache Kafka 4.3.1, and what the comparisons leave out: one table.

`docs/differences.md` is `page()`: ``python -m kafka_shim.compat.differences > docs/differences.md``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.compat.runner import Difference

# The folder of the tests that ask both brokers.
BOTH = "compat_tests/tests/compat/differences"


@dataclass(frozen=True)
class KnownDifference:
    """A difference in behaviour. `test` shows it: a function in `BOTH`, which asks both brokers, the name of a
    scenario, or the path of a test of the shim alone (`PATH::FUNCTION`).

    `scenario` and `where` are patterns, for a difference that transcripts may show: of the scenario's name, and of the
    difference's text up to the values.
    """

    name: str
    shim: str
    kafka: str
    why: str
    test: str
    scenario: str = ""
    where: str = ""

    @property
    def is_shown_on_both(self) -> bool:
        return "::" not in self.test


DIFFERENCES = (
    KnownDifference(
        "first look-up of a coordinator",
        "answers the first FindCoordinator with the coordinator",
        "creates the internal topic, and answers COORDINATOR_NOT_AVAILABLE until it is there",
        "the topic is there at once, so a client saves its back-off",
        "test_the_first_look_up_of_a_coordinator",
    ),
    KnownDifference(
        "group.initial.rebalance.delay.ms",
        "is 0 by default",
        "is 3000 by default",
        "a single consumer of a test does not wait three seconds for others",
        "test_the_initial_rebalance_delay",
    ),
    KnownDifference(
        "socket.listen.backlog.size",
        "is 4096 by default",
        "is 50 by default",
        "a client whose connection finds the kernel's queue full tries again after a second",
        "test_the_queue_of_connections",
    ),
    KnownDifference(
        "what is cached after a kill",
        "after a kill knows the last five batches of each producer that it replays (A9)",
        "snapshots producers while it recovers, and keeps one batch of each",
        "what was in flight when the broker died is not written twice",
        "a9-what-is-cached-after-a-kill",
        "a9-what-is-cached-after-a-kill",
        r"Produce v12 answer\.(error_code|base_offset|log_append_time_ms|log_start_offset)",
    ),
    KnownDifference(
        "Produce without records",
        "closes the connection on a partition whose records are null",
        "fails in its request handler and never answers",
        "a client that waits learns of it at once",
        "test_produce_of_null_records",
    ),
    KnownDifference(
        "names of broker loggers",
        "lists its own loggers, and those of Kafka's names whose work a module of it does",
        "lists the loggers of its classes",
        "a level that is set must have an effect",
        "test_broker_loggers",
    ),
    KnownDifference(
        "no controller's listener",
        "starts without `controller.listener.names`, and then names the client's listener in DescribeQuorum v2",
        "does not start without",
        "a broker for tests needs one socket; the second is opened where it is configured",
        "test_a_broker_without_a_listener_of_the_controller",
    ),
    KnownDifference(
        "another leader of the quorum",
        "answers INVALID_REQUEST to a Vote, BeginQuorumEpoch or EndQuorumEpoch of a newer epoch or leader",
        "resigns for a newer epoch; another leader of the same epoch ends the process",
        "the quorum has one member, and nobody else can have begun an epoch",
        "test_another_leader_of_the_quorum",
    ),
    KnownDifference(
        "other brokers and voters",
        "refuses the registration of another broker or controller (INVALID_REGISTRATION); no voter can be added",
        "takes them into its cluster",
        "the shim replicates nothing; Apache Kafka goes on from its directory",
        "test_another_broker_registers",
    ),
    KnownDifference(
        "FetchSnapshot without a snapshot",
        "says why: SNAPSHOT_NOT_FOUND, POSITION_OUT_OF_RANGE and so on",
        "answers UNKNOWN_SERVER_ERROR to each of them",
        "it cannot write an answer without a piece of a snapshot, a fault that no client wants",
        "test_fetch_snapshot_without_a_snapshot",
    ),
    KnownDifference(
        "unregistering the running broker",
        "refuses UnregisterBroker of itself with INVALID_REQUEST",
        "accepts it, and serves no partition until it is started again",
        "nothing could be done with the broker but to stop it",
        "test_unregistering_the_running_broker",
    ),
    KnownDifference(
        "documentation of options",
        "describes options in texts of its own",
        "describes them in Kafka's",
        "Kafka's texts are not copied, and these say what the option does here",
        "test_documentation_of_options",
    ),
    KnownDifference(
        "the smallest indexes",
        "takes a `segment.index.bytes` of 4 to 11, and rolls at each batch, as with 12",
        "takes it, and then cannot make the log of the partition: NOT_LEADER_OR_FOLLOWER to whoever writes or reads",
        "a topic that nobody can use helps nobody",
        "test_the_smallest_indexes",
    ),
    KnownDifference(
        "files of an idle partition",
        "writes the files of a partition with the first batch",
        "writes an empty log and preallocated indexes when the partition is created",
        "an idle partition costs neither files nor descriptors; Kafka starts on such a directory",
        "test_files_of_an_idle_partition",
    ),
    KnownDifference(
        "ids that no member uses",
        "keeps at most 10,000 ids of a group that were given with MEMBER_ID_REQUIRED, and drops the oldest",
        "keeps all for the session timeout",
        "a flood of first joins takes bounded memory",
        "test_ids_that_no_member_uses",
    ),
    KnownDifference(
        "metadata of classic members",
        "refuses a member with GROUP_MAX_SIZE_REACHED when a group's protocol metadata exceeds 64 MB",
        "has no such limit",
        "memory is bounded; in Kafka such a group never becomes stable, as its record is too large",
        "test_metadata_of_classic_members",
    ),
    KnownDifference(
        "a subscription that claims a huge array",
        "takes it for a subscription to every topic, and answers the join",
        "fails while it reads the array, and never answers",
        "a member that waits for ever helps nobody",
        "test_a_subscription_that_claims_a_huge_array",
    ),
    KnownDifference(
        "a member that joins again while it waits",
        "answers UNKNOWN_MEMBER_ID to the first of the two JoinGroups at once",
        "never answers the first",
        "a connection on which somebody waits is not held for nothing",
        "test_a_member_that_joins_again_while_it_waits",
    ),
    KnownDifference(
        "a group of refused offsets",
        "has no group of which each offset of an OffsetCommit was refused",
        "keeps an empty group in memory, which DeleteGroups finds, and forgets it at the next start",
        "nothing was stored of the group",
        "test_a_group_of_refused_offsets",
    ),
    KnownDifference(
        "offsets of a group that a stranger has ended",
        "keeps the offsets of an empty consumer or streams group that a JoinGroup of an unknown member id ends",
        "shows neither them nor the group, from its next write to their partition until the next start",
        "a consumer that is no member would start over by auto.offset.reset",
        "test_offsets_of_a_group_that_a_stranger_has_ended",
    ),
    KnownDifference(
        "an upgraded group's partitions that do not exist",
        "leaves out what a classic group's assignment names of a topic that has fewer partitions now",
        "takes it over, so that others may have no owner, or answers UNKNOWN_SERVER_ERROR to the first consumer",
        "each partition is read, and the upgrade succeeds",
        "shim/tests/group/test_upgrade.py::test_an_upgrade_leaves_out_partitions_that_a_topic_has_no_longer",
    ),
    KnownDifference(
        "an assignment of a time to come",
        "computes the next assignment of a group, and resolves its expressions, at once if the clock is behind the time"
        " of the last one",
        "waits until the clock is there again, however long that takes",
        "after the clock was set back new members would own nothing, and partitions be read by nobody",
        "shim/tests/group/test_clock_set_back.py::test_a_consumer_group_goes_on_after_the_clock_was_set_back",
    ),
    KnownDifference(
        "share offsets of a partition that does not exist",
        "answers a DescribeShareGroupOffsets of it with the offset -1",
        "never answers",
        "a client that waits for ever helps nobody",
        "test_share_offsets_of_a_partition_that_does_not_exist",
    ),
    KnownDifference(
        "share sessions of a connection",
        "ends all of them with it",
        "ends the newest; others stay until a restart, and count towards `group.share.max.share.sessions`",
        "a client could take all sessions that there are, and leave",
        "shim/tests/api/test_k78_share_fetch.py::test_a_closed_connection_ends_all_of_its_sessions",
    ),
    KnownDifference(
        "unknown topic ids of a ShareFetch",
        "answers UNKNOWN_TOPIC_ID for their partitions, and the others as ever",
        "answers UNKNOWN_SERVER_ERROR alone",
        "the records of other topics need not wait until a member has heard that one is deleted",
        "test_unknown_topic_ids_of_a_share_fetch",
    ),
    KnownDifference(
        "requests that get no answer",
        "answers a WriteTxnMarkers that names a partition twice, or of whose last marker no partition exists, an "
        "AddPartitionsToTxn of version 4 or 5 without transactions, and an AlterConfigs that names a resource twice",
        "never answers",
        "an administrator who waits for ever helps nobody",
        "test_requests_that_get_no_answer",
    ),
    KnownDifference(
        "large regular expressions",
        "answers INVALID_REGULAR_EXPRESSION to one that does not compile in 1 MB",
        "accepts it",
        "expressions are matched on the event loop, so their size is bounded",
        "test_a_large_regular_expression",
    ),
    KnownDifference(
        "which clients push metrics",
        "takes RE2 in `match`, so that look-ahead is INVALID_CONFIG, and keeps 1,000 characters of a client id",
        "takes Java's expressions",
        "a client chooses its id, and an engine that backtracks may not come to an end with it",
        "test_which_clients_push_metrics",
    ),
    KnownDifference(
        "a damaged batch header in an old segment",
        "answers CORRUPT_MESSAGE to a fetch behind it",
        "skips the rest of the segment",
        "records must not be lost in silence",
        "test_a_damaged_batch_header_in_an_old_segment",
    ),
    KnownDifference(
        "the start of a log after a kill",
        "is where DeleteRecords put it",
        "is where it was up to a minute before (`log.flush.start.offset.checkpoint.interval.ms`): the records are back",
        "what was answered stays so",
        "test_the_start_of_a_log_after_a_kill",
    ),
    KnownDifference(
        "a log that was cut short after a clean stop",
        "cuts off the half batch at its end with a warning, and appends behind the last whole one",
        "appends behind the half batch: what it acknowledges cannot be read",
        "an acknowledged record must not be lost",
        "test_a_log_that_was_cut_short_after_a_clean_stop",
    ),
    KnownDifference(
        "the expiration of producers at a restart",
        "forgets producers by the stored `producer.id.expiration.ms`, if there is one",
        "loads its logs before it reads stored options, and forgets producers by the one in its file",
        "a longer time that was set shall keep a batch from being written twice",
        "test_the_expiration_of_producers_at_a_restart",
    ),
    KnownDifference(
        "the epoch of a marker that compaction emptied",
        "takes it over when it replays a log without its snapshot, as after a kill, and refuses older epochs",
        "takes nothing over, and accepts what the last transaction fenced",
        "compaction keeps the marker for its epoch, and a restart must not let a fenced producer write",
        "test_the_epoch_of_a_marker_that_compaction_emptied",
    ),
    KnownDifference(
        "a last stable offset inside a batch",
        "names the log start offset, when DeleteRecords ended inside the first batch of an open transaction",
        "names the first offset of that batch, which is below the log start offset",
        "a read_committed reader that seeks to the end would be out of range there",
        "test_a_last_stable_offset_inside_a_batch",
    ),
    KnownDifference(
        "a read_committed reader beyond the last stable offset",
        "lets its Fetch wait until there is something to read, or `max_wait_ms` has passed",
        "answers each Fetch at once, with nothing",
        "the reader would ask again and again for as long as the transaction is open",
        "test_a_read_committed_reader_beyond_the_last_stable_offset",
    ),
    KnownDifference(
        "a waiting reader whose records are deleted",
        "answers OFFSET_OUT_OF_RANGE to its Fetch when the start of the log passes it",
        "answers it when `max_wait_ms` has passed",
        "the reader cannot get what it waits for",
        "shim/tests/api/test_k01_fetch.py::test_a_waiting_reader_hears_that_its_records_are_deleted",
    ),
    KnownDifference(
        "a damaged small file of a partition",
        "takes the leader epochs from the batches where `leader-epoch-checkpoint` is damaged, the topic's id from the "
        "metadata log where `partition.metadata` is",
        "takes the data directory offline, and ends if it was the only one",
        "both can be had elsewhere, and no record is in doubt",
        "test_a_damaged_small_file_of_a_partition",
    ),
    KnownDifference(
        "the time of a login",
        "closes a connection that has not authenticated within `kafka.shim.login.timeout.ms` (30 s)",
        "closes it after `connections.max.idle.ms` without a byte",
        "who has not said who he is holds memory and a descriptor for a short time only",
        "test_the_time_of_a_login",
    ),
    KnownDifference(
        "long messages of a login",
        "refuses a message of SCRAM or OAUTHBEARER over 64 KB",
        "parses what `sasl.server.max.receive.size` allows (512 KB)",
        "whoever reaches the port can send it, and it holds the event loop for tens of milliseconds",
        "test_a_long_message_of_a_login",
    ),
    KnownDifference(
        "rules that make names",
        "matches `ssl.principal.mapping.rules` and `sasl.kerberos.principal.to.local.rules` by RE2, and what RE2 has "
        "not by an engine that backtracks, with a warning; tries them on names up to 8,192 characters; refuses a class "
        "in a class, and `&&` in one",
        "takes Java's expressions",
        "a client chooses its name, and an engine that backtracks may not come to an end with it",
        "shim/tests/security/test_costly_input.py::test_a_name_makes_no_rule_backtrack",
    ),
    KnownDifference(
        "a name in a certificate of more than 256 parts",
        "closes the connection",
        "takes it",
        "it holds the event loop for tens of milliseconds",
        "test_a_name_in_a_certificate_of_many_parts",
    ),
    KnownDifference(
        "suites of TLS 1.3",
        "refuses an `ssl.cipher.suites` with some of them: it names all three, or none",
        "chooses among them",
        "Python has no call for it, and what was left out would be used all the same",
        "test_suites_of_tls_1_3",
    ),
    KnownDifference(
        "a Kerberos principal without a rule",
        "refuses the login, and says in its log which rule is missing",
        "accepts the login, and closes the connection at its first request",
        "the client learns of it where it can be told",
        "shim/tests/security/test_gssapi.py::test_a_principal_to_which_no_rule_applies_is_refused",
    ),
    KnownDifference(
        "passwords in dumps of the metadata log",
        "`dump-log` prints (redacted) in their place, and shows them with `--show-secrets`",
        "prints them",
        "a dump is often sent to somebody else",
        "test_passwords_in_dumps_of_the_metadata_log",
    ),
    KnownDifference(
        "clients of an added listener",
        "tells a client of a listener that was added while it runs the address of that listener",
        "tells it no broker, and LISTENER_NOT_FOUND for each partition: its registration is that of the start",
        "a client could do nothing with the listener",
        "test_clients_of_an_added_listener",
    ),
    KnownDifference(
        "a listener without its logins",
        "refuses a change of stored options with which an open listener could log nobody in",
        "stores it, and has it in force after the next start",
        "the mistake would only be felt then",
        "test_a_listener_without_its_logins",
    ),
    KnownDifference(
        "changed logins of an open listener",
        "has `sasl.jaas.config`, `sasl.enabled.mechanisms` and `connections.max.reauth.ms` in force once stored",
        "stores them, and the listener goes on with those that it was opened with",
        "a password that was changed because it is known to others must not log in any longer",
        "test_changed_logins_of_an_open_listener",
    ),
    KnownDifference(
        "stores of the listener between brokers, at the start",
        "checks only that new stores and those in force trust each other",
        "does not start either unless the listener's truststore trusts its keystore",
        "there is no other broker, so nothing that works is lost",
        "test_stores_of_the_listener_between_brokers",
    ),
    KnownDifference(
        "classes in changes of options",
        "refuses every class that the options of the start do not name, and says so",
        "loads the class, and says of one that it does not find that the validation failed",
        "nobody makes a broker load code by storing an option",
        "test_a_class_in_a_change_of_options",
    ),
    KnownDifference(
        "private keys in PEM",
        "takes OpenSSL's older forms (`BEGIN EC PRIVATE KEY`, `BEGIN RSA PRIVATE KEY`) and keys encrypted by PBES2",
        "takes PKCS #8 alone, and of encrypted keys those that its JVM reads: Java 17 none of PBES2",
        "it is the same key, and OpenSSL writes both",
        "shim/tests/security/test_stores.py::test_private_keys_in_other_forms_than_pkcs_8_are_read",
    ),
    KnownDifference(
        "plug-ins in Java",
        "refuses a start with a Java class that is not built in, and takes Python classes",
        "loads the class",
        "there is no JVM",
        "shim/tests/security/test_starting.py::test_another_class_is_refused_with_one_line",
    ),
)

# Fields that the comparisons of responses leave out, with the reason. The lists are IGNORED in
# `shim/wiretap/compare.py` (recordings and the sweep), `compat_tests/scenarios/scenario_client.py` (scenarios) and
# `compat_tests/groups/script.py` (conversations of groups).
NOT_COMPARED = {
    "a fact of the machine": "host port cluster_id rack log_dir total_bytes usable_bytes",
    "a clock": "timestamp last_timestamp log_append_time_ms transaction_start_time_ms throttle_time_ms timeout_ms",
    "how far the log of this run is": (
        "leader_epoch current_leader_epoch committed_leader_epoch finalized_features_epoch offset_lag size"
    ),
    "a text: compared where tools show it, in compat_tests/tests/admin": "error_message batch_index_error_message",
    "compared apart, decoded": "records",
    "how often a member asked until there was something": "share_session_epoch",
    "no field of the message": "unknown_tags",
}


def reason_for(scenario: str, difference: Difference) -> str | None:
    """Returns why a transcript may show this difference, or None if it may not."""
    where = f"{difference.what}{difference.path}"
    for row in DIFFERENCES:
        if row.scenario and re.fullmatch(row.scenario, scenario) and re.fullmatch(row.where, where):
            return row.why
    return None


def page() -> str:
    """The text of docs/differences.md."""
    both = sum(row.is_shown_on_both for row in DIFFERENCES)
    lines = [
        "# Differences from Apache Kafka 4.3.1",
        "",
        f"The {len(DIFFERENCES)} known differences in behaviour, and what the comparisons leave out. Whatever else",
        "differs is a bug, unless the next paragraph names it.",
        "This page is generated from `compat_tests/differences.py`; a test compares the two. Each difference is shown",
        f"by the test that is named: {both} on both brokers, by a function in `{BOTH}`",
        "or by a scenario, the others, with a path, on the shim.",
        "",
        "On top comes what is not there: the limits of [security.md](security.md), and the options of",
        "[options.md](options.md) that are refused or have no effect.",
        "",
        "| Difference | The shim | Apache Kafka | Why | Shown by |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [f"| {row.name} | {row.shim} | {row.kafka} | {row.why} | `{row.test}` |" for row in DIFFERENCES]
    lines += ["", "## Fields that are not compared", "", "| Why | Fields |", "| --- | --- |"]
    lines += [
        f"| {why} | {', '.join(f'`{name}`' for name in sorted(names.split()))} |" for why, names in NOT_COMPARED.items()
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
