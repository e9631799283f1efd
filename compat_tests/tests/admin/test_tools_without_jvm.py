"""Kafka's command-line tools without a JVM print what Kafka's own print, and end with their status: the same words to
both, about the same broker. Each of them has names of its own, of one length, which are made equal afterwards."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from importlib import import_module

import pytest

from kafka_shim.compat.tool_driver import ToolDriver
from kafka_shim.targets import Target, jvm

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
    "cluster": ("broker-api-versions",),
}
WAYS = ("ourz", "jvmz")


class Runner:
    """Runs a line of words by both, and gives the status and what was printed on stdout."""

    def __init__(self, target: Target, driver: ToolDriver) -> None:
        self.target = target
        self.driver = driver

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
        tool, *words = line.removeprefix("! ").replace("@", way).split()
        if words and words[0] not in ("--help", "--version"):
            words += ["--bootstrap-server", self.target.bootstrap]
        return stdin, tool, words

    def normal(self, text: str, way: str) -> str:
        others = [other for other in WAYS if other != way]
        lines = text.splitlines(keepends=True)
        text = "".join(line for line in lines if not any(other in line for other in others)).replace(way, "@")
        text = re.sub(r"console-consumer-\d+ *", "RANDOM ", text)
        text = re.sub(r"TopicId: \S+", "TopicId: ID", text)
        # Options and topics stand in the order of hash maps there.
        text = re.sub(r"Configs: (\S+)", lambda found: "Configs: " + ",".join(sorted(found[1].split(","))), text)
        is_unsorted = any(mark in text for mark in ("Partition: ", "Configs: ", "NEW-OFFSET", "@-read,", " Classic "))
        return "".join(sorted(text.splitlines(keepends=True))) if is_unsorted else text


@pytest.fixture(scope="module")
def runner(shim: Target) -> Iterator[Runner]:
    with ToolDriver() as driver:
        yield Runner(shim, driver)


@pytest.mark.parametrize("story", STORIES)
def test_a_line_of_words_gives_the_same(runner: Runner, story: str) -> None:
    differences = []
    for line in STORIES[story]:
        ours, theirs = runner.ours(line), runner.theirs(line)
        if ours != theirs:
            differences.append(f"{line}\n  ours:   {ours}\n  Kafka's: {theirs}")
    assert not differences, "\n".join(differences)
