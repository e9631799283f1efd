"""Kafka's command-line tools without a JVM print what Kafka's own print, and end with their status: the same words to
both, about the same broker. Each of them has names of its own, of one length, which are made equal afterwards."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from importlib import import_module

import pytest
from confluent_kafka import Producer

from kafka_shim.compat.tool_driver import ToolDriver
from kafka_shim.targets import Target, jvm, make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.timeout(300)

# A line of words; `@` is the prefix of the names. The lines of one story run one after the other.
STORIES: dict[str, tuple[str, ...]] = {
    "topics": (
        "topics --create --topic @.one --partitions 3 --config retention.ms=9 --config cleanup.policy=compact",
        "topics --create --topic @.one --partitions 3",
        "topics --create --topic @.one --partitions 3 --if-not-exists",
        "topics --create --topic @-two --replication-factor 1",
        "topics --create --topic @-three --replica-assignment 1,1,1",
        "topics --create --topic @-four --replica-assignment 1:1",
        "topics --create --topic @-four --partitions 0",
        "topics --create --topic @-four --replication-factor 5",
        "topics --create --topic @-four --config no.such=1",
        "topics --create --topic @-four --config retention.ms",
        "topics --create --topic @-four --config retention.ms=soon",
        "topics --create --topic @$four",
        "topics --create",
        "topics --list --topic @.*",
        "topics --list --topic @-two,@-three --exclude-internal",
        "topics --describe --topic @.one",
        "topics --describe --topic @.*",
        "topics --describe --topic @.* --topics-with-overrides",
        "topics --describe --topic @.* --under-replicated-partitions",
        "topics --describe --topic @.* --at-min-isr-partitions",
        "topics --describe --topic @.* --unavailable-partitions",
        "topics --describe --topic @-nowhere",
        "topics --describe --topic @-nowhere --if-exists",
        "topics --describe --topic-id AAAAAAAAAAAAAAAAAAAAAQ",
        "topics --alter --topic @-two --partitions 4",
        "topics --alter --topic @-two --partitions 2",
        "topics --alter --topic @-nowhere --partitions 2",
        "topics --alter --topic @-nowhere --partitions 2 --if-exists",
        "topics --alter --topic @-two",
        "topics --delete --topic @-two",
        "topics --delete --topic @-two",
        "topics --delete --topic @-two --if-exists",
        "topics --list --describe",
        "topics --describe --topic @.one --if-not-exists",
        "topics --no-such-option",
        "topics --version",
        "topics --help",
        "topics --desc --top @-three --excl",
    ),
    "records": (
        "topics --create --topic @-in --partitions 1",
        "< a b\\n\\nc d\\n| console-producer --topic @-in",
        "< k1:v1\\nk2:v2\\nNULL:v3\\nk4:NULL\\n| console-producer --topic @-in --property parse.key=true"
        " --property key.separator=: --property null.marker=NULL",
        "< h1=x;h2=y|k|v\\n| console-producer --topic @-in --reader-property parse.key=true --reader-property"
        " key.separator=| --reader-property parse.headers=true --reader-property headers.delimiter=|"
        " --reader-property headers.separator=; --reader-property headers.key.separator==",
        "< no separator\\n| console-producer --topic @-in --reader-property parse.key=true --sync",
        "< z\\n| console-producer --topic @-in --compression-codec zstd --request-required-acks 1",
        "console-consumer --topic @-in --from-beginning --max-messages 9",
        "console-consumer --topic @-in --from-beginning --timeout-ms 2000",
        "console-consumer --topic @-in --partition 0 --offset 4 --max-messages 3 --property print.key=true",
        "console-consumer --topic @-in --partition 0 --offset earliest --max-messages 8 --formatter-property"
        " print.key=true --formatter-property print.offset=true --formatter-property print.partition=true"
        " --formatter-property print.headers=true --formatter-property key.separator=; --formatter-property"
        " null.literal=NIL --formatter-property headers.separator=+ --formatter-property line.separator=<>"
        " --formatter-property print.epoch=true --formatter-property print.delivery=true",
        "console-consumer --topic @-in --partition 0 --from-beginning --max-messages 2 --formatter-property"
        " print.value=false --formatter-property print.key=true",
        "console-consumer --topic @-in --group @-readers --from-beginning --max-messages 4",
        "console-consumer --topic @-in --group @-readers --max-messages 2",
        "console-consumer --include @-i.* --from-beginning --max-messages 2 --isolation-level read_committed",
        "console-consumer --topic @-in --offset 3",
        "console-consumer --topic @-in --partition 0 --offset soon",
        "console-consumer --topic @-in --partition 0 --group g",
        "console-consumer --topic @-in --include x",
        "console-consumer",
        "console-producer --topic x --sync --property a=b --reader-property c=d",
        "get-offsets --topic @-in",
        "get-offsets --topic @-.*",
        "get-offsets --topic-partitions @-in:0,@-in:5-",
        "get-offsets --topic-partitions @-in:-1 --time -2",
        "get-offsets --topic @-in --time earliest",
        "get-offsets --topic @-in --time 0",
        "get-offsets --topic @-in --time 99999999999999",
        "get-offsets --topic @-in --partitions 0,3 --time max-timestamp",
        "get-offsets --topic @-in --partitions x",
        "get-offsets --topic @-in --time soon",
        "get-offsets --topic @-nowhere",
    ),
    "deleted records and directories": (
        "topics --create --topic @-many --partitions 12",
        "topics --create --topic @-one --partitions 1",
        "< a\\nb\\nc\\n| console-producer --topic @-one",
        "delete-records --offset-json-file @-OFFSETS",
        "get-offsets --topic @-one --time earliest",
        "delete-records --offset-json-file @-TWICE",
        "delete-records --offset-json-file @-NEWER",
        "delete-records --offset-json-file @-NO-TOPIC",
        "delete-records --offset-json-file @-TEXT",
        "delete-records --offset-json-file FILE",
        "delete-records --offset-json-file /no/such/file",
        "delete-records",
        "log-dirs --describe --topic-list held,__transaction_state,@-nowhere",
        "log-dirs --describe --topic-list held --broker-list 1,",
        "log-dirs --describe --topic-list @-nowhere",
        "log-dirs --describe --broker-list 1,7",
        "log-dirs --describe --broker-list x",
        "log-dirs --topic-list @-many",
    ),
    "groups": (
        "topics --create --topic @-read --partitions 3",
        "< a:1\\nb:2\\nc:3\\nd:4\\ne:5\\n| console-producer --topic @-read --reader-property parse.key=true"
        " --reader-property key.separator=:",
        "console-consumer --topic @-read --group @-group --from-beginning --timeout-ms 4000",
        "consumer-groups --describe --group @-group",
        "consumer-groups --describe --group @-group --members",
        "consumer-groups --describe --group @-group --members --verbose",
        "consumer-groups --describe --group @-group --state",
        "consumer-groups --describe --group @-group --state --verbose",
        "consumer-groups --describe --group @-nobody",
        "consumer-groups --list --state empty --type classic",
        "consumer-groups --list --state asleep",
        "consumer-groups --list --type share",
        "consumer-groups --reset-offsets --group @-group --topic @-read --to-earliest",
        "consumer-groups --reset-offsets --group @-group --topic @-read:0,1 --to-offset 1 --dry-run",
        "consumer-groups --reset-offsets --group @-group --all-topics --shift-by -1 --execute",
        "consumer-groups --reset-offsets --group @-group --all-topics --to-current --export",
        "consumer-groups --reset-offsets --group @-group --topic @-read --to-datetime 2020-01-01T00:00:00.000",
        "consumer-groups --reset-offsets --group @-group --topic @-read --to-datetime 2099-01-01T00:00:00.000Z",
        "consumer-groups --reset-offsets --group @-group --topic @-read --by-duration P1D",
        "consumer-groups --reset-offsets --group @-new --topic @-read --shift-by 1",
        "consumer-groups --reset-offsets --group @-new --topic @-read --to-latest --execute",
        "consumer-groups --reset-offsets --group @-new --topic @-read:9 --to-latest",
        "consumer-groups --reset-offsets --group @-new --topic @-read:x --to-latest",
        "consumer-groups --reset-offsets --group @-new --topic @-absent --to-latest",
        "! consumer-groups --reset-offsets --group @-new --to-latest",
        "consumer-groups --reset-offsets --group @-new --topic @-read --to-latest --to-earliest",
        "consumer-groups --reset-offsets --group @-group --group @-new --all-topics --to-earliest --export",
        "consumer-groups --describe --group @-new --offsets --verbose",
        "consumer-groups --describe --group @-group --group @-new",
        "consumer-groups --delete-offsets --group @-new --topic @-read:0",
        "consumer-groups --delete-offsets --group @-new --topic @-read",
        "consumer-groups --delete-offsets --group @-nobody --topic @-read",
        "consumer-groups --delete-offsets --group @-new --topic @-absent",
        "consumer-groups --delete-offsets --group @-new",
        "consumer-groups --delete --group @-new",
        "consumer-groups --delete --group @-nobody",
        "consumer-groups --delete --group @-group --topic x",
        "consumer-groups --describe",
        "consumer-groups --describe --group a --members --state",
        "consumer-groups --list --members",
        "consumer-groups --list --describe",
        "consumer-groups --validate-regex a.*",
        "groups --list --group-type classic --protocol nothing",
        "groups --list --group-type none",
        "groups --list --share --streams",
        "groups",
    ),
    "options": (
        "topics --create --topic @-set --partitions 1",
        "configs --alter --entity-type topics --entity-name @-set --add-config"
        " retention.ms=5,cleanup.policy=[compact,delete]",
        "configs --describe --entity-type topics --entity-name @-set",
        "configs --describe --topic @-set --all",
        "configs --alter --topic @-set --delete-config retention.ms",
        "configs --alter --topic @-set --delete-config cleanup.policy --add-config retention.ms=7",
        "configs --describe --topic @-set",
        "configs --alter --topic @-set --add-config no.such=1",
        "configs --alter --topic @-set --add-config retention.ms=soon",
        "configs --alter --topic @-set --add-config retention.ms",
        "configs --alter --topic @-absent --add-config retention.ms=1",
        "configs --describe --topic @-absent",
        "configs --alter --broker-defaults --add-config log.cleaner.backoff.ms=20000",
        "configs --describe --entity-type brokers --entity-default",
        "configs --describe --broker 1",
        "configs --describe --broker 1 --all",
        "configs --alter --entity-type brokers --entity-default --delete-config log.cleaner.backoff.ms",
        "configs --describe --broker 9",
        "configs --describe --broker one",
        "configs --alter --group @-group --add-config consumer.session.timeout.ms=50000",
        "configs --describe --group @-group",
        "configs --describe --entity-type groups --entity-name @-other",
        "configs --alter --client-metrics @-push --add-config interval.ms=60000",
        "configs --describe --client-metrics @-push",
        "configs --alter --topic @-set",
        "configs --alter --entity-type topics --add-config a=b",
        "configs --describe --entity-type teapots",
        "configs --describe",
        "configs --alter --describe",
    ),
    "clients": (
        "configs --alter --entity-type users --entity-name @-alice --add-config producer_byte_rate=1024,"
        "request_percentage=12.5",
        "configs --describe --entity-type users --entity-name @-alice",
        "configs --describe --user @-alice",
        "configs --alter --user @-alice --client @-app --add-config consumer_byte_rate=12345678",
        "configs --describe --user @-alice --client @-app",
        "configs --describe --entity-type users --entity-name @-alice --entity-type clients",
        "configs --alter --entity-type clients --entity-name @-app --entity-type users --entity-default --add-config"
        " controller_mutation_rate=0.0005",
        "configs --describe --entity-type clients --entity-name @-app --entity-type users --entity-default",
        "configs --alter --client @-app --add-config producer_byte_rate=1e9",
        "configs --describe --client @-app",
        "configs --describe --entity-type clients",
        "configs --alter --client-defaults --add-config controller_mutation_rate=50000",
        "configs --describe --client-defaults",
        "configs --alter --client @-app --delete-config consumer_byte_rate",
        "configs --alter --client @-app --delete-config producer_byte_rate",
        "configs --alter --client @-app --add-config producer_byte_rate=fast",
        "configs --alter --client @-app --add-config retention.ms=5",
        "configs --alter --client @-app --add-config SCRAM-SHA-256=[password=x]",
        "configs --alter --user @-alice --delete-config producer_byte_rate,request_percentage",
        "configs --describe --user @-alice",
        "configs --alter --ip 127.0.0.% --add-config connection_creation_rate=7",
        "configs --describe --entity-type ips --entity-name 127.0.0.%",
        "configs --describe --entity-type ips",
        "configs --alter --ip 127.0.0.% --add-config producer_byte_rate=7",
        "configs --alter --ip 127.0.0.% --delete-config connection_creation_rate",
        "configs --alter --ip-defaults --add-config connection_creation_rate=1000",
        "configs --describe --ip-defaults",
        "configs --alter --ip no.such.host.invalid --add-config connection_creation_rate=7",
        "configs --alter --user @-bob --add-config SCRAM-SHA-256=[iterations=8192,password=hunter2],"
        "SCRAM-SHA-512=[password=hunter2]",
        "configs --describe --user @-bob",
        "configs --alter --user @-bob --add-config SCRAM-SHA-256=[iterations=1,password=x]",
        "configs --alter --user @-bob --add-config SCRAM-SHA-256=[iterations=99999,password=x]",
        "configs --alter --user @-bob --add-config SCRAM-SHA-256=x",
        "configs --alter --user @-bob --add-config SCRAM-SHA-256=[password=x],producer_byte_rate=1",
        "configs --alter --user @-bob --delete-config SCRAM-SHA-256",
        "configs --alter --user @-bob --delete-config SCRAM-SHA-256",
        "configs --describe --user @-bob",
        "configs --describe --user @-nobody",
        "configs --alter --user-defaults --add-config SCRAM-SHA-256=[password=x]",
        "configs --alter --user-defaults --add-config controller_mutation_rate=90000",
        "configs --describe --entity-type users --entity-default",
        "configs --alter --user @-bob --add-config-file FILE",
        "configs --describe --user @-bob",
        "configs --alter --entity-type users --add-config producer_byte_rate=9",
        "configs --describe --entity-type users --entity-type topics",
        "configs --describe --entity-type users --entity-type users",
        "configs --alter --broker-logger 1 --add-config no.such.logger=INFO",
    ),
    "acls": (
        "acls --add --topic @-t --allow-principal User:a --operation Read --operation DESCRIBE",
        "acls --add --topic @-t --allow-principal User:a --operation Read",
        "acls --list --topic @-t",
        "acls --add --topic @-t --deny-principal User:b --deny-host 10.0.0.1 --allow-principal User:c"
        " --allow-host 10.0.0.2 --allow-host 10.0.0.3",
        "acls --add --producer --topic @-p --transactional-id @-x --allow-principal User:@ --idempotent",
        "acls --add --consumer --topic @-p --group @-g --allow-principal User:q",
        "acls --add --producer --consumer --topic @-both --group @-both --allow-principal User:q",
        "acls --add --topic @-pre --resource-pattern-type prefixed --allow-principal User:a --operation Write",
        "acls --add --delegation-token @-d --allow-principal User:a --operation Describe",
        "acls --add --user-principal User:@ --allow-principal User:a --operation CreateTokens",
        "acls --add --cluster --allow-principal User:@ --operation Alter",
        "acls --list --topic @-pre-x --resource-pattern-type match",
        "acls --list --topic @-p --group @-g",
        "acls --list --principal User:p --topic @-p",
        "acls --list --principal User:@ --cluster",
        "acls --list --topic @-nowhere",
        "acls --add --topic @-t --allow-principal User:a --operation Alter --resource-pattern-type any",
        "! acls --add --topic @-t --allow-principal User:a --operation Fly",
        "acls --add --topic @-t --allow-principal User:a --operation ClusterAction",
        "acls --add --topic @-t --allow-principal nobody",
        "acls --add --topic @-t",
        "acls --add --allow-principal User:a",
        "acls --add --topic @-t --resource-pattern-type odd",
        "acls --list --producer",
        "acls --add --list",
        "acls --add --producer --allow-principal User:a",
        "acls --add --consumer --topic t --allow-principal User:a",
        "acls --add --idempotent --topic t --allow-principal User:a",
        "acls --add --producer --topic t --operation Read",
        "acls --remove --principal User:a",
        "acls",
        "acls --remove --topic @-t --allow-principal User:a --operation Read --force",
        "acls --list --topic @-t",
        "acls --remove --topic @-t --force",
        "acls --list --topic @-t",
        "! acls --remove --topic @-p",
        "! acls --remove --topic @-p --allow-principal User:p --operation Write",
        "acls --remove --producer --topic @-p --allow-principal User:p --force",
        "acls --list --topic @-p",
        "acls --remove --cluster --allow-principal User:@ --operation Alter --force",
    ),
    "features": (
        "features describe",
        "features describe --node-id 1",
        "features describe --node-id -1",
        "features version-mapping",
        "features version-mapping --release-version 3.9",
        "features version-mapping --release-version 4.1-IV0",
        "features version-mapping --release-version 2.9",
        "features feature-dependencies --feature eligible.leader.replicas.version=1 --feature metadata.version=20",
        "features feature-dependencies --feature metadata.version=99",
        "features feature-dependencies --feature no.such=1",
        "features feature-dependencies --feature share.version=9",
        "features feature-dependencies --feature share.version",
        "features feature-dependencies",
        "features upgrade --feature share.version=1 --dry-run",
        "features upgrade --feature share.version=1",
        "features upgrade --feature share.version=9",
        "features upgrade --feature share.version=9 --feature group.version=1 --dry-run",
        "features upgrade --feature share.version=0",
        "features upgrade --feature share.version=x",
        "features upgrade --feature no.such=1",
        "features upgrade --metadata 4.3-IV0",
        "features upgrade --metadata 9.9",
        "features upgrade --release-version 4.3",
        "features upgrade --release-version 4.3 --feature share.version=1",
        "features upgrade",
        "features downgrade --feature share.version=0 --dry-run",
        "features downgrade --metadata 3.3-IV3 --dry-run",
        "features downgrade --metadata 4.0-IV0 --unsafe --dry-run",
        "features disable --feature share.version --dry-run",
        "features disable --feature share.version --feature share.version",
        "features disable",
        "features nonsense",
        "features",
    ),
    "quorum": (
        "metadata-quorum describe --status",
        "metadata-quorum describe --replication",
        "metadata-quorum describe --replication --human-readable",
        "metadata-quorum describe --status --human-readable",
        "metadata-quorum describe --status --replication",
        "metadata-quorum describe",
        "metadata-quorum add-controller",
        "metadata-quorum --command-config /no/such/file describe --status",
        "metadata-quorum --command-config CONTROLLER add-controller --dry-run",
        "metadata-quorum --command-config FILE add-controller --dry-run",
        "metadata-quorum remove-controller -i 7 -d AAAAAAAAAAAAAAAAAAAAAQ --dry-run",
        "metadata-quorum remove-controller -i 7 -d AAAAAAAAAAAAAAAAAAAAAQ",
        "metadata-quorum remove-controller -i -7 -d AAAAAAAAAAAAAAAAAAAAAQ --dry-run",
        "metadata-quorum remove-controller -i 7 -d short --dry-run",
        "metadata-quorum",
    ),
    "transactions": (
        "transactions list",
        "transactions list --duration-filter 999999999",
        "transactions list --transactional-id-pattern open-.*",
        "transactions list --transactional-id-pattern (",
        "transactions describe --transactional-id open-one",
        "transactions describe --transactional-id done-one",
        "transactions describe --transactional-id no-such",
        "transactions describe-producers --topic held --partition 0",
        "transactions describe-producers --topic held --partition 0 --broker-id 1",
        "transactions describe-producers --topic held --partition x",
        "transactions find-hanging --topic held",
        "transactions find-hanging --topic held --partition 0 --max-transaction-timeout -1",
        "transactions find-hanging --broker-id 1",
        "transactions find-hanging",
        "transactions find-hanging --partition 0 --broker-id 1",
        "transactions abort --topic held --partition 0",
        "transactions abort --topic held --partition 0 --start-offset 99",
        "transactions abort --topic held --partition 0 --producer-id 5",
        "transactions abort --topic held --partition 0 --producer-id 5 --producer-epoch 1",
        "transactions forceTerminateTransaction",
        "transactions list --version",
    ),
    "cluster": (
        "broker-api-versions",
        "cluster cluster-id",
        "cluster list-endpoints",
        "cluster list-endpoints --include-fenced-brokers",
        "cluster unregister --id 7",
        "cluster cluster-id --config FILE",
        "cluster cluster-id --config FILE --command-config FILE",
        "! cluster nonsense",
    ),
}
# Files for delete-records.
DELETIONS = {
    "OFFSETS": '{"partitions": [{"topic": "@-one", "partition": 0, "offset": 2}, {"topic": "@-many", "partition": 0, '
    '"offset": 99}, {"topic": "@-many", "partition": 11, "offset": -1}], "version": 1} and more',
    "TWICE": '{"partitions": [{"topic": "@-many", "partition": 3, "offset": 0}, {"topic": "@-many", "partition": 3, '
    '"offset": 1}]}',
    "NEWER": '{"partitions": [], "version": 2}',
    "NO-TOPIC": '{"partitions": [{"partition": 3, "offset": 0}]}',
    "TEXT": '{"partitions": [{"topic": "@-many", "partition": "3", "offset": 0}]}',
}
# Tools whose words of connection stand before the command.
WITH_COMMANDS = ("features", "metadata-quorum", "transactions")
WAYS = ("ourz", "jvmz")
# The last part of the address that each has for itself.
ADDRESSES = {"ourz": "8", "jvmz": "9"}
# What stands in a text whose lines are in the order of a hash map there.
UNSORTED = ("partition: ", "Partition: ", "Configs: ", "NEW-OFFSET", "@-read,", " Classic ", " ACLs ", " are ")


class Runner:
    """Runs a line of words by both, and gives the status and what was printed on stdout."""

    def __init__(self, target: Target, driver: ToolDriver, files: Mapping[str, Path]) -> None:
        self.target = target
        self.driver = driver
        # What a word that stands for a file stands for.
        self.files = files

    def ours(self, line: str) -> tuple[int, str]:
        stdin, tool, words = self.words(line, WAYS[0])
        main = import_module(f"kafka_shim.tools.{tool.replace('-', '_')}").main
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(io.StringIO()) as errors:
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin or b"")))
            patch.setattr("sys.stdout", out)
            patch.setattr("signal.signal", lambda *_: None)
            try:
                status = main(words)
            except SystemExit as ended:
                status = ended.code if isinstance(ended.code, int) else 0
        printed = out.buffer.getvalue().decode()
        print(line, "->", status, printed, errors.getvalue()[:300])
        return status, self.normal(printed, WAYS[0])

    def theirs(self, line: str) -> tuple[int, str]:
        stdin, tool, words = self.words(line, WAYS[1])
        name = f"kafka-{tool}"
        if stdin is None and not line.startswith("! "):
            status, printed = self.driver.result(name, *words)
        else:
            done = jvm.run(jvm.TOOLS[name], *words, stdin=stdin or b"", check=False)
            status, printed = done.returncode, done.stdout.decode()
        return status, self.normal(printed, WAYS[1])

    def words(self, line: str, way: str) -> tuple[bytes | None, str, list[str]]:
        stdin = None
        if line.startswith("< "):
            text, _, line = line[2:].rpartition("| console")
            stdin, line = text.replace("\\n", "\n").encode(), f"console{line}"
        # In a JVM of its own, where the tool would catch what its exit throws in the shared one.
        tool, *words = line.removeprefix("! ").replace("@", way).replace("%", ADDRESSES[way]).split()
        words = [str(self.files.get(word, word)) for word in words]
        if words and words[0] not in ("--help", "--version"):
            address = ["--bootstrap-server", self.target.bootstrap]
            words = [*address, *words] if tool in WITH_COMMANDS else [*words, *address]
        return stdin, tool, words

    def normal(self, text: str, way: str) -> str:
        others = [mark for other in WAYS if other != way for mark in (other, f"127.0.0.{ADDRESSES[other]}")]
        lines = text.splitlines(keepends=True)
        text = "".join(line for line in lines if not any(other in line for other in others)).replace(way, "@")
        text = re.sub(r"console-consumer-\d+ *", "RANDOM ", text)
        text = re.sub(r"TopicId: \S+", "TopicId: ID", text)
        text = re.sub(r"\d+ ms ago *", "AGE ", text)
        text = re.sub(r"\b1\d{12}\b *(\t\d+ *)?", "TIME ", text)
        text = text.replace(f"127.0.0.{ADDRESSES[way]}", "127.0.0.%").replace("\n \t", "\n\t")
        # What ends the tool is caught by the tool in the shared JVM; without a terminal it has nobody to ask.
        text = re.sub(r"Error while executing ACL command: null\n.*", "", text, flags=re.DOTALL)
        text = re.sub(r"command: (the standard input has ended|Cannot invoke).*", "command: NOBODY", text)
        # A stack trace follows there.
        text = re.sub(r"(Error while executing ACL command: [^\n]*\n).*", r"\1", text, flags=re.DOTALL)
        # Options, topics, quotas and ACLs stand in the order of hash maps there.
        text = re.sub(r" are (.*)", lambda found: f" are {', '.join(sorted(found[1].split(', ')))}", text)
        text = re.sub(r"Configs: (\S+)", lambda found: "Configs: " + ",".join(sorted(found[1].split(","))), text)
        is_unsorted = any(mark in text for mark in UNSORTED)
        return "".join(sorted(text.splitlines(keepends=True))) if is_unsorted else text


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """A broker with an authorizer that lets its one client do all, an open and an ended transaction."""
    folder = tmp_path_factory.mktemp("files")
    files = {"FILE": folder / "some.properties", "CONTROLLER": folder / "controller.properties"}
    files["FILE"].write_text("producer_byte_rate=77\n")
    files["CONTROLLER"].write_text(
        f"process.roles=controller\nnode.id=7\nlog.dirs={folder}\ncontroller.listener.names=CONTROLLER\n"
        "listeners=CONTROLLER://[::1]:9093\n"
    )
    for way in WAYS:
        for name, text in DELETIONS.items():
            files[f"{way}-{name}"] = folder / f"{way}-{name}"
            files[f"{way}-{name}"].write_text(text.replace("@", way))
    (folder / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=7\ndirectory.id=MkU3OEVBNTcwNTJENDM2Qk\n")
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with make("shim", settings=settings) as target, ToolDriver() as driver:
        producers = [transactional_producer(target, name) for name in ("open-one", "done-one")]
        for producer in producers:
            producer.begin_transaction()
            producer.produce("held", b"v", partition=0)
            producer.flush(30)
        producers[1].commit_transaction(30)
        yield Runner(target, driver, files)
        producers[0].abort_transaction(30)
        producers.clear()
        del producer


def transactional_producer(target: Target, transactional_id: str) -> Producer:
    producer = Producer(
        {"bootstrap.servers": target.bootstrap, "transactional.id": transactional_id, "transaction.timeout.ms": 600_000}
    )
    producer.init_transactions(30)
    return producer


@pytest.mark.parametrize("story", STORIES)
def test_a_line_of_words_gives_the_same(runner: Runner, story: str) -> None:
    differences = []
    for line in STORIES[story]:
        ours, theirs = runner.ours(line), runner.theirs(line)
        if ours != theirs:
            differences.append(f"{line}\n  ours:   {ours}\n  Kafka's: {theirs}")
    assert not differences, "\n".join(differences)
