"""Kafka's tools without a JVM, against a broker of this process; that they print what Kafka's own print is tested with
those beside them (compat_tests/tests/admin/test_tools_without_jvm.py)."""

from __future__ import annotations

import pytest

from kafka_shim import Broker
from kafka_shim.client.classic_membership import assign_range
from kafka_shim.client.consumer_membership import ConsumerMember
from kafka_shim.client.offsets import commit_offsets
from kafka_shim.client.requests import make
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.consumer_protocol import write_assignment
from kafka_shim.protocol.messages.consumer_group_describe_response import Assignment, Member, TopicPartitions
from kafka_shim.protocol.messages.describe_groups_response import DescribedGroupMember
from kafka_shim.protocol.messages.describe_log_dirs_response import DescribeLogDirsResult
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.tests.unknown_host import UNKNOWN_HOST
from kafka_shim.tools import log_dirs
from kafka_shim.tools.console_producer import LineReader, ReadError
from kafka_shim.tools.consumer_group_data import _assigned, _modern, committed
from kafka_shim.tools.reset_offsets import InvalidArgument, duration_ms, timestamp_of
from kafka_shim.wire_client import Connection


def test_topics_are_created_listed_grown_described_and_deleted(run):
    assert run("topics --create --topic a --partitions 2 --config retention.ms=5") == (0, "Created topic a.\n")
    failed = "Error while executing topic command : "
    assert run("topics --create --topic a") == (1, f"{failed}Topic 'a' already exists.\n")
    assert run("topics --create --topic a --if-not-exists") == (0, "")
    assert run("topics --create --topic b --replica-assignment 1,1") == (0, "Created topic b.\n")
    assert run("topics --create --topic b --replica-assignment 1:1")[0] == 1
    assert run("topics --create --topic b --replica-assignment 1,1:2")[0] == 1
    assert run("topics --create --topic b --replica-assignment 1:b") == (1, f'{failed}For input string: "b"\n')
    assert run("topics --create --topic b --partitions 0") == (1, f"{failed}The partitions must be greater than 0\n")
    assert run("topics --create --topic b --replication-factor 0")[0] == 1
    assert run("topics --create --topic b --config no=1") == (1, f"{failed}Unknown topic config name: no\n")
    assert run("topics --create --topic b --config no")[0] == 1
    assert run("topics --list") == (0, "a\nb\n")
    assert run("topics --list --topic a|c") == (0, "a\n")
    assert run("topics --list --topic (") == (1, f"{failed}( is an invalid regex.\n")
    assert run("topics --alter --topic a --partitions 3") == (0, "")
    assert run("topics --alter --topic b --partitions 3 --replica-assignment 1,1,1") == (0, "")
    status, out = run("topics --describe --topic a")
    assert status == 0
    assert out.splitlines()[0].endswith(
        "\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: min.insync.replicas=1,retention.ms=5"
    )
    last = "\tTopic: a\tPartition: 2\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
    assert out.splitlines()[3] == last
    assert run("topics --describe --under-min-isr-partitions") == (0, "")
    assert run("topics --describe --topic a --at-min-isr-partitions")[1].splitlines()[2] == last
    topic_id = out.partition("TopicId: ")[2].partition("\t")[0]
    assert run(f"topics --describe --topic-id {topic_id}")[1] == out
    assert run("topics --describe --topic-id AAAAAAAAAAAAAAAAAAAAAQ")[0] == 1
    assert run("topics --describe --topic c") == (1, f"{failed}Topic 'c' does not exist as expected\n")
    assert run("topics --delete --topic a") == (0, "")
    assert run("topics --delete --topic a --if-exists") == (0, "")
    for wrong in ("--list --create", "--create", "--alter --topic a", "--describe --if-exists", "--list --config a=b"):
        assert run(f"topics {wrong}") == (1, "")


def test_lines_become_records_and_records_lines_again(run):
    assert run("topics --create --topic t --partitions 1")[0] == 0
    reader = "--reader-property parse.key=true --reader-property key.separator=:"
    assert run(f"console-producer --topic t {reader}", b"k:v\nl:w\n") == (0, "")
    assert run("console-producer --topic t --sync --compression-codec", b"x\n") == (0, "")
    assert run(f"console-producer --topic t {reader}", b"no\n")[0] == 1
    assert run("console-producer --topic t --line-reader other.Reader")[0] == 1
    assert run("console-producer --topic t --compression-codec none --request-required-acks 7")[0] == 1
    shown = "--formatter-property print.key=true --formatter-property print.offset=true"
    line = f"console-consumer --topic t --from-beginning --max-messages 3 {shown}"
    assert run(line) == (0, "Offset:0\tk\tv\nOffset:1\tl\tw\nOffset:2\tnull\tx\n")
    assert run("console-consumer --topic t --partition 0 --offset 2 --timeout-ms 0") == (0, "x\n")
    numbers = "--value-deserializer org.apache.kafka.common.serialization.ShortDeserializer"
    assert run(f"console-consumer --topic t --partition 0 --offset 0 --max-messages 1 {numbers}") == (0, "118\n")
    assert run("console-consumer --topic t --partition 0 --offset 99 --from-beginning")[0] == 1
    warned = (
        "Option --property is deprecated and will be removed in a future version. Use --formatter-property instead.\n"
    )
    assert run("console-consumer --include t.* --from-beginning --max-messages 1 --property print.value=true") == (
        0,
        f"{warned}v\n",
    )
    for wrong in ("", "--topic t --include t", "--topic t --offset 1", "--topic t --partition 0 --offset x"):
        assert run(f"console-consumer {wrong}") == (1, "")
    assert run("console-consumer --topic t --partition 0 --group g") == (1, "")
    assert run("console-consumer --topic t --group g --command-property group.id=h") == (1, "")
    assert run("console-consumer --topic t --from-beginning --command-property auto.offset.reset=latest") == (1, "")
    assert run("console-consumer --topic t --formatter other.Formatter") == (1, "")
    assert run("get-offsets --topic t") == run("get-offsets --topic t --partitions 0") == (0, "t:0:3\n")
    assert run("get-offsets --topic t --partitions 1")[0] == 1
    assert run("get-offsets --topic-partitions t:0-1,t:7 --time earliest") == (0, "t:0:0\n")
    assert run("get-offsets --topic t --time 99999999999999") == (0, "")
    assert run("topics --create --topic four --partitions 4")[0] == 0
    for rule, numbers in (("1", "1"), ("1-3", "12"), ("-2", "01"), ("2-", "23"), ("0-1", "0")):
        lines = [f"four:{number}:0\n" for number in numbers]
        assert run(f"get-offsets --topic-partitions four:{rule}") == (0, "".join(lines)), rule
    for wrong in (
        "--topic u",
        "--time soon",
        "--partitions x",
        "--topic t --topic-partitions t",
        "--topic-partitions t:x",
    ):
        assert run(f"get-offsets {wrong}") == (1, "")


def test_a_consumer_that_may_not_read_ends(run, capfd):
    everything = {"principal": "User:ANONYMOUS", "cluster": True}
    described = {"principal": "User:ANONYMOUS", "topic": "t", "operation": "Describe"}
    with Broker(clock="virtual", acls=[everything, described]) as broker:
        assert run("topics --create --topic t --partitions 1", at=broker)[0] == 0
        words = "console-consumer --topic t --partition 0 --offset 0 --timeout-ms 0"
        assert run(words, at=broker) == (0, "")
        refused = "Error processing message, terminating consumer process: Topic authorization failed.\n"
        assert capfd.readouterr().err.startswith(refused)


def test_groups_are_listed_described_reset_and_deleted(run):
    assert run("topics --create --topic t --partitions 1")[0] == 0
    assert run("console-producer --topic t", b"a\nb\nc\n")[0] == 0
    assert run("console-consumer --topic t --group g --from-beginning --max-messages 2") == (0, "a\nb\n")
    assert run("console-consumer --topic t --group g --max-messages 1") == (0, "c\n")
    assert run("groups --list")[1].split() == ["GROUP", "TYPE", "PROTOCOL", "g", "Classic", "consumer"]
    assert run("groups --list --share")[1].split() == ["GROUP", "TYPE", "PROTOCOL"]
    assert run("groups --list --group-type classic --protocol other")[1].split() == ["GROUP", "TYPE", "PROTOCOL"]
    for wrong in ("", "--list --group-type none", "--list --share --consumer"):
        assert run(f"groups {wrong}") == (1, "")
    assert run("consumer-groups --list") == (0, "g\n")
    assert run("consumer-groups --list --state --type")[1].split()[-3:] == ["g", "Classic", "Empty"]
    assert run("consumer-groups --list --state nowhere") == (1, "")
    described = run("consumer-groups --describe --group g --verbose")[1].split()
    assert described[10:] == ["g", "t", "0", "-", "3", "3", "0", "-", "-", "-"]
    assert run("consumer-groups --describe --all-groups --state")[1].split()[-3:] == ["-", "Empty", "0"]
    assert run("consumer-groups --describe --group g --members --verbose")[1].split()[-1] == "TARGET-ASSIGNMENT"
    lost = "org.apache.kafka.common.errors.GroupIdNotFoundException: Group h not found.\n"
    failed = "\nError: Executing consumer group command failed due to "
    assert run("consumer-groups --describe --group h") == (0, failed + lost)
    scope = "consumer-groups --reset-offsets --group g --topic t"
    assert run(f"{scope} --to-offset 1")[1].split() == ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET", "g", "t", "0", "1"]
    for form, offset in (
        ("--to-earliest", "0"),
        ("--to-latest", "3"),
        ("--to-current", "3"),
        ("--shift-by -2 --execute", "1"),
        ("--by-duration PT1H", "0"),
        ("--to-datetime 2020-01-01T00:00:00.000", "0"),
        ("--to-offset 9", "3"),
    ):
        assert run(f"{scope} {form}")[1].split()[-1] == offset
    assert run(f"{scope} --to-current --export") == (0, "t,0,1\n\n")
    for wrong in (f"{scope} --to-latest --to-earliest", scope, f"{scope} --to-latest --execute --dry-run"):
        assert run(wrong) == (1, "")
    assert run("consumer-groups --reset-offsets --group new --topic t --shift-by 1") == (1, "")
    absent = f'{failed}The partitions "t-5" do not exist\n'
    assert run("consumer-groups --reset-offsets --group new --topic t:5 --to-latest") == (0, absent)
    assert run("consumer-groups --delete-offsets --group g --topic t")[1].split()[-3:] == ["t", "0", "Successful"]
    assert "u               -          Error: " in run("consumer-groups --delete-offsets --group g --topic u")[1]
    done = "Deletion of requested consumer groups ('g') was successful.\n"
    assert run("consumer-groups --delete --group g") == (0, done)
    assert "* Group 'g' could not be deleted due to: " in run("consumer-groups --delete --group g")[1]
    assert run("consumer-groups --validate-regex a(")[1].startswith("The regular expression `a(` is invalid: ")


def test_a_reset_that_is_not_executed_is_warned_of(run, capfd):
    assert run("topics --create --topic t --partitions 1")[0] == 0
    scope = "consumer-groups --reset-offsets --group g --topic t --to-earliest"
    for words, lines in (("", 1), ("--dry-run", 0), ("--execute", 0)):
        assert run(f"{scope} {words}")[0] == 0
        assert capfd.readouterr().err.count("WARN: No action will be performed as the --execute option") == lines


def test_offsets_are_asked_for_again_while_the_group_is_being_read(run, broker, monkeypatch):
    assert run("topics --create --topic t --partitions 1")[0] == 0
    commits = {("t", 0): 7}
    with broker.cluster() as cluster:
        commit_offsets(cluster, "g", commits)
        refusals = [KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]
        offsets = type(broker.state.groups.offsets)
        fetch = offsets.fetch

        def refused_once(self, *arguments):
            if refusals:
                raise refusals.pop()
            return fetch(self, *arguments)

        monkeypatch.setattr(offsets, "fetch", refused_once)
        assert committed(cluster, "g") == {("t", 0): (7, None)}


def test_a_group_with_a_member(run, broker):
    assert run("topics --create --topic t --partitions 2")[0] == 0
    with broker.cluster() as cluster:
        member = ConsumerMember(cluster, "g", ["t"])
        for _ in range(2):
            member.beat()
        members = run("consumer-groups --describe --group g --members --verbose")[1].splitlines()
        titles, cells = members[1].split(), members[2].split()
        assert titles == [
            *("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"),
            *("CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"),
        ]
        assert [cells[0], *cells[2:]] == ["g", "/127.0.0.1", "kafka-shim-test", "2", "2", "t:0,1", "2", "t:0,1"]
        refused = run("consumer-groups --delete-offsets --group g --topic t:1")[1]
        assert refused.startswith("\nError: Encountered some partition-level error, see the follow-up details.\n")
        assert "GroupSubscribedToTopicException" in refused
        member.leave()
    succeeded = "Request succeeded for deleting offsets from group g.\n"
    assert run("consumer-groups --delete-offsets --group g --topic t:1")[1].startswith(succeeded)


def test_options_of_topics_brokers_and_groups(run):
    assert run("topics --create --topic t --partitions 1")[0] == 0
    done = "Completed updating config for topic t.\n"
    assert run("configs --alter --topic t --add-config retention.ms=5,cleanup.policy=[compact,delete]") == (0, done)
    described = run("configs --describe --entity-type topics --entity-name t")[1].splitlines()
    assert described[0] == "Dynamic configs for topic t are:"
    assert described[1].startswith("  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:")
    assert len(run("configs --describe --topic t --all")[1].splitlines()) > 30
    assert run("configs --alter --topic t --delete-config retention.ms,cleanup.policy") == (0, done)
    assert "retention.ms" not in run("configs --describe --entity-type topics")[1]
    default = "Completed updating default config for brokers in the cluster.\n"
    assert run("configs --alter --broker-defaults --add-config log.cleaner.backoff.ms=20000") == (0, default)
    assert "  log.cleaner.backoff.ms=20000 " in run("configs --describe --entity-type brokers")[1]
    assert run("configs --alter --broker 1 --add-config log.cleaner.backoff.ms=30000")[0] == 0
    assert run("configs --alter --group g --add-config consumer.session.timeout.ms=50000")[0] == 0
    assert "=50000 " in run("configs --describe --group g")[1]
    absent = "The topic 'u' doesn't exist and doesn't have dynamic config.\n"
    assert run("configs --describe --topic u") == (0, absent)
    for wrong in (
        "",
        "--describe",
        "--describe --entity-type teapots",
        "--describe --entity-type topics --topic t",
        "--describe --broker one",
        "--describe --entity-type topics --entity-default",
        "--describe --entity-type broker-loggers",
        "--alter --entity-type brokers --add-config a=b",
        "--alter --entity-type topics --add-config a=b",
        "--alter --topic t",
        "--alter --topic t --add-config a=b --add-config-file f",
        "--alter --topic t --add-config retention.ms",
        "--alter --client c --add-config producer_byte_rate=1=2",
        "--alter --topic t --add-config leader.replication.throttled.replicas=0:1=2",
        "--alter --topic t --add-config retention.ms=soon",
    ):
        assert run(f"configs {wrong}") == (1, "")


def test_a_plan_comes_from_a_file(run, tmp_path):
    run("topics --create --topic t --partitions 1")
    run("console-producer --topic t", b"a\nb\nc\n")
    path = tmp_path / "plan.csv"
    path.write_text('"t",0,2\n')
    scope = f"consumer-groups --reset-offsets --group g --from-file {path}"
    assert run(f"{scope} --execute")[1].split()[-1] == "2"
    path.write_text("h,t,0,1\n")
    assert run(scope)[1].startswith("\nError: No reset plan for group g found")
    for wrong in (b"nonsense\n", b"\xfe,0,1\n", b"t" * 200_000):
        path.write_bytes(wrong)
        assert run(scope) == (1, "")


def test_the_versions_of_a_brokers_apis_are_printed(run):
    status, out = run("broker-api-versions")
    assert status == 0
    assert "(id: 1 rack: null isFenced: false) -> (\n\tProduce(0): 0 to 13 [usable: 13],\n" in out


def test_lines_become_records():
    reader = LineReader.of({"parse.key": "true", "parse.headers": "true", "null.marker": "NIL"})
    assert reader.record("h:1,i:NIL\tk\tv\tw") == (b"k", b"v\tw", [("h", b"1"), ("i", None)])
    assert reader.record("NIL\tNIL\tNIL") == (None, None, [])
    assert reader.record("h:1,,\tk\tv") == (b"k", b"v", [("h", b"1")])
    assert reader.record(",\tk\tv") == (b"k", b"v", [])
    for line in ("no tabs", "h:1\tno key", "h\tk\tv", "NIL:1\tk\tv", ",h:1\tk\tv", "\tk\tv"):
        with pytest.raises(ReadError):
            reader.record(line)
    lenient = LineReader.of({"parse.key": "true", "parse.headers": "true", "ignore.error": "true"})
    assert lenient.record("plain") == (None, b"plain", [])
    assert lenient.record("h\tk\tv") == (b"k", b"v", [("h", None)])
    for wrong in ({"headers.separator": ":"}, {"null.marker": "\t"}):
        with pytest.raises(ReadError):
            LineReader.of(wrong)


def test_times_and_durations_are_javas():
    assert timestamp_of("1970-01-01T00:00:01.500") == 1500
    assert timestamp_of("1970-01-01T01:00:00+01:00") == 0
    assert timestamp_of("0001-01-01T00:00:00+14:00") == -62_135_647_200_000
    assert duration_ms("P1DT2H3M4.5S") == 93_784_500
    for wrong in ("tomorrow", "2020-01-01"):
        with pytest.raises(InvalidArgument):
            timestamp_of(wrong)
    for wrong in ("P", "1h"):
        with pytest.raises(InvalidArgument):
            duration_ms(wrong)


def test_ranges_of_partitions():
    assert assign_range({"b": ["t"], "a": ["t", "u"]}, {"t": 3, "u": 1}) == {
        "a": {"t": [0, 1], "u": [0]},
        "b": {"t": [2]},
    }


def test_members_of_both_protocols_are_read():
    held = Assignment(topic_partitions=[TopicPartitions(topic_name="t", partitions=[1, 0])])
    modern = Member(member_id="m", client_id="c", client_host="/h", assignment=held, target_assignment=held)
    modern.member_epoch, modern.member_type = 5, 1
    found = _modern(modern)
    assert (found.held, found.target, found.epoch, found.is_upgraded) == ([("t", 1), ("t", 0)], found.held, 5, True)
    classic = DescribedGroupMember(member_assignment=write_assignment({"t": [2]}, 1))
    assert _assigned(classic) == [("t", 2)]
    assert _assigned(DescribedGroupMember(member_assignment=b"not one")) == []


def test_features_are_described_upgraded_and_downgraded(run, broker):
    status, out = run("features describe", first=True)
    assert status == 0
    line = next(line for line in out.splitlines() if line.startswith("Feature: metadata.version "))
    assert line.split("  SupportedMinVersion: ")[1].startswith("3.3-IV3          SupportedMaxVersion: 4.3-IV0 ")
    assert "FinalizedVersionLevel: 4.3-IV0          Epoch: " in line
    assert run("features describe --node-id 1", first=True) == (0, out)
    assert run("features upgrade --feature share.version=1 --dry-run", first=True) == (
        0,
        "share.version can be upgraded to 1.\n",
    )
    assert run("features downgrade --feature share.version=0", first=True) == (
        0,
        "share.version was downgraded to 0.\n",
    )
    assert run("features upgrade --release-version 4.3", first=True)[1].splitlines()[-1] == (
        "transaction.version was upgraded to 2."
    )
    assert run("features disable --feature streams.version --dry-run", first=True) == (
        0,
        "streams.version can be disabled.\n",
    )
    status, out = run("features upgrade --feature share.version=9", first=True)
    assert (status, out.partition(". ")[0]) == (1, "Could not upgrade share.version to 9")
    assert run("features upgrade --metadata 4.3-IV0", first=True)[0] == 0
    assert run("features version-mapping --release-version 4.3", first=True)[1].startswith(
        "metadata.version=30 (4.3)\n"
    )
    for wrong in (
        "describe --node-id -1",
        "describe --node-id x",
        "upgrade",
        "upgrade --feature share.version=0",
        "upgrade --feature share.version",
        "upgrade --feature share.version=x",
        "upgrade --release-version 9.9",
        "upgrade --release-version 4.3 --feature share.version=1",
        "disable --feature share.version --feature share.version",
        "feature-dependencies --feature metadata.version=99",
        "feature-dependencies --feature share.version=9",
        "nonsense",
    ):
        assert run(f"features {wrong}", first=True) == (1, ""), wrong


def test_the_quorum_is_described_and_a_controller_added_on_trial(run, tmp_path):
    status, out = run("metadata-quorum describe --status", first=True)
    assert status == 0
    assert "\nLeaderId:               1\n" in out
    assert '\nCurrentVoters:          [{"id": 1, "endpoints": ["PLAINTEXT://127.0.0.1:' in out
    status, out = run("metadata-quorum describe --replication", first=True)
    assert (status, out.splitlines()[1].split()[-1]) == (0, "Leader")
    path = tmp_path / "controller.properties"
    path.write_text(
        f"process.roles=controller\nnode.id=7\nlog.dirs={tmp_path},/other\ncontroller.listener.names=one,two\n"
        "listeners=ONE://:9093,TWO://[::1]:9094\n"
    )
    add = f"metadata-quorum --command-config {path} add-controller --dry-run"
    assert run(add, first=True) == (1, "")
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert run(add, first=True) == (1, "")
    (tmp_path / "meta.properties").write_text("version=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n")
    assert run(add, first=True) == (
        0,
        "DRY RUN of adding controller 7 with directory id AAAAAAAAAAAAAAAAAAAAAQ and endpoints: ONE://localhost:9093, "
        "TWO://[::1]:9094\n",
    )
    good = path.read_text()
    for wrong in (
        good.replace("node.id=7", ""),
        good.replace("node.id=7", "node.id=x"),
        good.replace("node.id=7", "node.id=-7"),
        good.replace("roles=controller", "roles=broker"),
        good.replace("log.dirs", "log.dir.s"),
        good.replace("names=one", "names=three"),
        good.replace("controller.listener.names", "names"),
        good.replace("9094", "nine"),
    ):
        path.write_text(wrong)
        assert run(add, first=True) == (1, ""), wrong
    remove = "metadata-quorum remove-controller --controller-id 7 --controller-directory-id"
    assert run(f"{remove} AAAAAAAAAAAAAAAAAAAAAQ --dry-run", first=True) == (
        0,
        "DRY RUN of removing  KRaft controller 7 with directory id AAAAAAAAAAAAAAAAAAAAAQ\n",
    )
    for wrong in (f"{remove} AAAAAAAAAAAAAAAAAAAAAQ", f"{remove} short", f"{remove} ==="):
        assert run(wrong, first=True) == (1, "")
    for wrong in ("", "--status --replication", "--status --human-readable"):
        assert run(f"metadata-quorum describe {wrong}", first=True) == (1, "")
    assert run("metadata-quorum add-controller", first=True) == (1, "")
    assert run("metadata-quorum --command-config /no/such describe --status", first=True) == (1, "")


def test_an_open_transaction_is_listed_described_and_does_not_hang(run, client, broker):
    assert run("topics --create --topic t --partitions 2")[0] == 0
    client.request(make("FindCoordinator", key_type=1, coordinator_keys=["app"]))
    producer = client.request(make("InitProducerId", transactional_id="app", transaction_timeout_ms=60_000))
    assert producer.error_code == 0
    records = batch(b"v", producer_id=producer.producer_id, producer_epoch=0, base_sequence=0, transactional=True)
    assert produce(client, "t", 0, records, 12, transactional_id="app").error_code == 0
    assert run("transactions list", first=True)[1].splitlines()[1].split() == ["app", "1", "0", "Ongoing"]
    assert len(run("transactions list --duration-filter 99999", first=True)[1].splitlines()) == 1
    row = run("transactions describe --transactional-id app", first=True)[1].splitlines()[1].split()
    assert (row[4], row[-1]) == ("Ongoing", "t-0")
    assert run("transactions describe --transactional-id other", first=True) == (1, "")
    row = run("transactions describe-producers --topic t --partition 0", first=True)[1].splitlines()[1].split()
    assert (row[0], row[-1]) == ("0", "0")
    # The coordinator knows it, so it does not hang.
    assert len(run("transactions find-hanging --topic t", first=True)[1].splitlines()) == 1
    assert len(run("transactions find-hanging --broker-id 1", first=True)[1].splitlines()) == 1
    for wrong in (
        "find-hanging",
        "find-hanging --partition 0 --broker-id 1",
        "abort --topic t --partition 0",
        "abort --topic t --partition 0 --producer-id 0",
        "abort --topic t --partition 0 --producer-id 0 --producer-epoch 0",
        "abort --topic t --partition 0 --start-offset 9",
        "describe-producers --topic t --partition 7",
    ):
        assert run(f"transactions {wrong}", first=True) == (1, ""), wrong
    assert run("transactions forceTerminateTransaction --transactionalId app", first=True) == (0, "")
    assert run("transactions list", first=True)[1].splitlines()[1].split()[-1] == "Empty"


def test_a_hanging_transaction_is_found_and_aborted(run, tmp_path):
    with (
        Broker(clock="virtual", transaction_partition_verification_enable=False) as broker,
        Connection(broker.bootstrap_servers) as client,
    ):
        make_topic(client, "t", 1)
        records = batch(b"v", producer_id=77, producer_epoch=3, base_sequence=0, transactional=True)
        assert produce(client, "t", 0, records, transactional_id="lost").error_code == 0
        row = run("transactions find-hanging --topic t", first=True, at=broker)[1].splitlines()[1].split()
        assert row[:4] == ["t", "0", "77", "3"]
        assert run("transactions abort --topic t --partition 0 --start-offset 0", first=True, at=broker) == (0, "")
        assert len(run("transactions find-hanging --topic t", first=True, at=broker)[1].splitlines()) == 1


def test_acls_are_added_listed_and_removed(run):
    with Broker(
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer", super_users="User:ANONYMOUS"
    ) as broker:

        def acls(words, stdin=b""):
            return run(f"acls {words}", stdin, at=broker)

        pattern = "ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)"
        entry = "(principal=User:a, host=*, operation=READ, permissionType=ALLOW)"
        given = "--topic t --allow-principal User:a --operation Read"
        assert acls(f"--add {given}") == (0, f"Adding ACLs for resource `{pattern}`: \n \t{entry}\n\n")
        assert acls(f"--add {given}") == (0, f"Acl (pattern={pattern}, entry={entry}) already exists.\n")
        listed = f"Current ACLs for resource `{pattern}`:\n\t{entry}\n\n"
        assert acls("--list") == (0, listed)
        assert acls("--list --principal User:a") == (0, f"ACLs for principal `User:a`\n{listed}")
        assert acls("--list --principal User:b") == (0, "ACLs for principal `User:b`\n")
        question = f"Are you sure you want to remove ACLs: \n \t{entry}\n from resource filter `{pattern}`? (y/n)\n"
        assert acls(f"--remove {given}", b"n\n") == (0, question)
        advice = "the standard input has ended: give --force to go on without the question"
        said = f"Error while executing ACL command: {advice}\n"
        assert acls(f"--remove {given}") == (1, question + said)
        assert acls(f"--remove {given}", b"y\n") == (0, question)
        assert acls("--list") == (0, "")
        both = "--producer --consumer --topic p --group g --transactional-id x --idempotent --allow-principal User:b"
        assert acls(f"--add {both}")[1].count("\t(") == 8
        question = "Are you sure you want to delete all ACLs for resource filter `" + pattern.replace("=t,", "=p,")
        assert acls("--remove --topic p", b"y\n") == (0, f"{question}`? (y/n)\n")
        assert acls("--list --topic p") == (0, "")
        for wrong in (
            "",
            "--list --add",
            "--list --producer",
            "--add --topic t",
            "--add --allow-principal User:a",
            "--add --topic t --allow-principal User:a --operation Fly",
            "--add --topic t --allow-principal User:a --operation Read --resource-pattern-type any",
            "--add --producer --allow-principal User:a",
            "--add --producer --topic t --operation Read",
            "--add --idempotent --topic t --allow-principal User:a",
            "--add --consumer --topic t --allow-principal User:a",
            "--remove --principal User:a",
            "--list --bootstrap-controller localhost:1",
        ):
            assert acls(wrong) == (1, ""), wrong
        assert acls("--add --topic t --allow-principal a")[0] == 1
        assert acls("--add --topic t --resource-pattern-type odd")[0] == 1
    assert run("acls --list")[1].startswith(
        "Error while executing ACL command: org.apache.kafka.common.errors.Security"
    )


def test_quotas_and_passwords(run, tmp_path):
    done = "Completed updating config for user u.\n"
    assert run("configs --alter --user u --add-config producer_byte_rate=12345678,request_percentage=0.0005") == (
        0,
        done,
    )
    shown = "producer_byte_rate=1.2345678E7, request_percentage=5.0E-4"
    assert run("configs --describe --user u") == (0, f"Quota configs for user-principal 'u' are {shown}\n")
    assert run("configs --describe --entity-type users")[1].startswith("Quota configs for user-principal 'u' are ")
    pair = "--entity-type users --entity-default --entity-type clients --entity-name c"
    path = tmp_path / "quotas"
    path.write_text("consumer_byte_rate=5\n")
    assert run(f"configs --alter {pair} --add-config-file {path}")[1] == (
        "Completed updating default config for users in the cluster.\n"
    )
    assert run(f"configs --describe {pair}") == (
        0,
        "Quota configs for the default user-principal, client-id 'c' are consumer_byte_rate=5.0\n",
    )
    assert run(f"configs --alter {pair} --delete-config consumer_byte_rate")[0] == 0
    assert run(f"configs --describe {pair}") == (0, "")
    assert run("configs --alter --ip 127.0.0.1 --add-config connection_creation_rate=100")[0] == 0
    assert (
        run("configs --describe --ip 127.0.0.1")[1]
        == "Quota configs for ip '127.0.0.1' are connection_creation_rate=100.0\n"
    )
    assert run("configs --alter --user u --delete-config producer_byte_rate,request_percentage") == (0, done)
    assert run("configs --alter --user u --add-config SCRAM-SHA-256=[iterations=-1,password=p]") == (0, done)
    assert run("configs --describe --user u") == (
        0,
        "SCRAM credential configs for user-principal 'u' are SCRAM-SHA-256=iterations=4096\n",
    )
    assert run("configs --alter --user u --delete-config SCRAM-SHA-256") == (0, done)
    assert run("configs --describe --user u") == (0, "")
    for wrong in (
        "--user u --delete-config SCRAM-SHA-256",
        "--user u --add-config SCRAM-SHA-256=p",
        "--user u --add-config SCRAM-SHA-256=[iterations=1,password=p]",
        "--user u --add-config SCRAM-SHA-256=[password=p],producer_byte_rate=1",
        "--user-defaults --add-config SCRAM-SHA-256=[password=p]",
        "--user u --add-config retention.ms=1",
        "--client c --add-config SCRAM-SHA-256=[password=p]",
        "--client c --add-config producer_byte_rate=fast",
        "--client c --delete-config producer_byte_rate",
        "--client c --add-config a*b=1",
        "--ip 127.0.0.1 --add-config producer_byte_rate=1",
        f"--ip {UNKNOWN_HOST} --add-config connection_creation_rate=1",
        "--entity-type users --add-config producer_byte_rate=1",
        "--entity-type users --entity-type topics --entity-name a --add-config producer_byte_rate=1",
        "--entity-type users --entity-type users --entity-name a --add-config producer_byte_rate=1",
        "--entity-type users --entity-type clients --entity-name a --add-config producer_byte_rate=1",
        "--broker-logger 1 --add-config no.such.logger=INFO",
        "--user u --bootstrap-controller localhost:1 --add-config producer_byte_rate=1",
    ):
        assert run(f"configs --alter {wrong}") == (1, ""), wrong


def test_values_of_a_clients_properties_may_be_kept_elsewhere(run, tmp_path, monkeypatch):
    monkeypatch.setenv("A_WORD", "secret-word")
    file = tmp_path / "client.properties"
    with Broker(sasl="PLAIN", users={"alice": "secret-word"}) as secured:
        lines = [f"{name}={value}" for name, value in secured.client_config("java").items()]
        provider = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
        lines += ["config.providers=env", f"config.providers.env.class={provider}"]
        file.write_text("\n".join(lines).replace("secret-word", "${env:A_WORD}"))
        assert run(f"topics --list --command-config {file}", at=secured)[0] == 0


def test_records_are_deleted_up_to_the_offsets_of_a_file(run, broker, tmp_path):
    with Connection(broker.bootstrap_servers) as client:
        make_topic(client, "a", 2)
        produce(client, "a", 1, batch(b"x", b"y", b"z"))
    file = tmp_path / "offsets.json"
    file.write_text(
        '{"partitions": [{"topic": "a", "partition": 1, "offset": 2}, {"topic": "a", "partition": 0, "offset": 9},'
        ' {"topic": "b", "partition": 0, "offset": 0}], "version": 1}'
    )
    where = "The requested offset is not within the range of offsets maintained by the server."
    assert run(f"delete-records --offset-json-file {file}") == (
        0,
        "Executing records delete operation\nRecords delete operation completed:\n"
        f"partition: a-0\terror: org.apache.kafka.common.errors.OffsetOutOfRangeException: {where}\n"
        "partition: a-1\tlow_watermark: 2\n"
        "partition: b-0\terror: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: "
        "This server does not host this topic-partition.\n",
    )
    assert run("get-offsets --topic a --time earliest") == (0, "a:0:0\na:1:2\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("offsets", "The input string is not a valid JSON"),
        ("[]", "Expected JSON object, received []"),
        ('{"version": 2, "partitions": []}', "Not supported version field value 2"),
        ('{"version": 1.0, "partitions": []}', "Expected `Integer` value, received 1.0"),
        ('{"version": 1}', "Missing partitions field"),
        ('{"partitions": {}}', "Expected JSON array, received {}"),
        ('{"partitions": [7]}', "Expected JSON object, received 7"),
        ('{"partitions": [{"partition": 0, "offset": 0}]}', "No such field exists: `topic`"),
        ('{"partitions": [{"topic": 1, "partition": 0, "offset": 0}]}', "Expected `String` value, received 1"),
        ('{"partitions": [{"topic": "a", "partition": true, "offset": 0}]}', "Expected `Integer` value, received True"),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "offset": 9223372036854775808}]}',
            "Expected `Long` value, received 9223372036854775808",
        ),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "offset": 1}, '
            '{"topic": "a", "partition": 0, "offset": 1}]}',
            "Offset json file contains duplicate topic partitions: a-0",
        ),
    ],
)
def test_a_file_that_does_not_say_what_to_delete_deletes_nothing(run, tmp_path, capsys, text, said):
    file = tmp_path / "offsets.json"
    file.write_text(text)
    assert run(f"delete-records --offset-json-file {file}") == (1, "")
    assert capsys.readouterr().err == f"{said}\n"


def test_directories_are_described_with_their_partitions(run, broker, capsys):
    with Connection(broker.bootstrap_servers) as client:
        make_topic(client, "a", 2)
        make_topic(client, "b", 1)
    begin = (
        "Querying brokers for log directories information\nReceived log directory information from brokers 1\n"
        '{"brokers":[{"broker":1,"logDirs":[{"partitions":['
    )
    end = f'],"error":null,"logDir":"{broker.data_dir}"}}]}}],"version":1}}\n'
    row = '{{"partition":"{}","size":0,"offsetLag":0,"isFuture":false}}'
    assert run("log-dirs --describe --topic-list b,c") == (0, begin + row.format("b-0") + end)
    status, printed = run("log-dirs --describe --broker-list 1")
    assert (status, printed[: len(begin)]) == (0, begin)
    assert all(row.format(name) in printed for name in ("a-0", "a-1", "b-0"))
    assert run("log-dirs --describe --broker-list 1,7,6") == (1, "")
    assert capsys.readouterr().err == (
        "ERROR: The given brokers do not exist from --broker-list: 6,7. Current existent brokers: 1\n"
    )
    assert run("log-dirs --describe --broker-list x") == (1, "")
    assert capsys.readouterr().err == 'For input string: "x"\n'


def test_a_directory_that_failed_has_the_name_of_javas_exception():
    failed = DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir="/d")
    assert log_dirs._directory(failed, set()) == {
        "partitions": [],
        "error": "org.apache.kafka.common.errors.KafkaStorageException",
        "logDir": "/d",
    }
