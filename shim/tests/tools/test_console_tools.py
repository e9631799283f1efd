"""The console producer and consumer as processes: what becomes of them when the broker does something."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import termios
import time
from contextlib import contextmanager

import pytest

from kafka_shim import Broker
from kafka_shim.client.classic_membership import ClassicMember
from kafka_shim.client.cluster import GROUP, TRANSACTION, Cluster
from kafka_shim.client.groups import describe_group, list_groups
from kafka_shim.client.offsets import commit_offsets, committed_offsets
from kafka_shim.client.requests import NAMES, make
from kafka_shim.targets.waiting import wait_until
from kafka_shim.tests.txn.raw import Client
from kafka_shim.tools.console_producer import Sticky

PATIENCE_S = 60


@pytest.fixture
def broker():
    """Its clock runs: a tool waits for records as long as the broker holds its fetch."""
    with Broker() as running:
        yield running


@contextmanager
def tool(name, broker, *words):
    """A running tool, its streams pipes."""
    line = [sys.executable, "-m", f"kafka_shim.tools.{name}", "--bootstrap-server", broker.bootstrap_servers, *words]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process):
    """(status, stdout, stderr) of a tool that ends."""
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out.decode(), err.decode()


def said_after(process, text):
    """As `said`, of a tool that reads `text` before."""
    out, err = process.communicate(text, timeout=PATIENCE_S)
    return process.returncode, out.decode(), err.decode()


def write(process, text):
    process.stdin.write(text)
    process.stdin.flush()


def await_values(broker, topic, *values):
    wait_until(lambda: [one.text for one in broker.consume(topic)] == list(values), f"{topic} has {values}")


@pytest.mark.parametrize("group", [(), ("--group", "g")])
def test_a_consumer_goes_on_when_the_broker_is_started_again(broker, group):
    """It ended, with 1 and without a word if it was a member of a group."""
    broker.create_topic("t")
    broker.produce("t", "before")
    words = ("--topic", "t", "--from-beginning", "--max-messages", "2", *group)
    with tool("console_consumer", broker, *words) as consumer:
        assert consumer.stdout.readline() == b"before\n"
        broker.restart()
        broker.produce("t", "after")
        assert said(consumer) == (0, "after\n", "Processed a total of 2 messages\n")


@pytest.mark.parametrize("name", ["console_consumer", "console_producer"])
def test_a_tool_runs_with_closed_streams(broker, name):
    """As one that a daemon starts: what it reads is empty, and what it prints is nothing."""
    broker.create_topic("t")
    broker.produce("t", "a")
    words = ["--topic", "t", "--bootstrap-server", broker.bootstrap_servers]
    words += ["--from-beginning", "--max-messages", "1"] if name == "console_consumer" else []
    closing = ["sh", "-c", 'exec "$@" <&- >&-', "sh", sys.executable, "-m", f"kafka_shim.tools.{name}", *words]
    done = subprocess.run(closing, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


@pytest.mark.parametrize(("most", "printed"), [("-2", ""), ("0", ""), ("1", "a\n")])
def test_a_consumer_prints_no_more_than_it_is_asked_for(broker, most, printed):
    """Every negative number was no limit, as -1 is."""
    broker.create_topic("t")
    broker.produce("t", "a", "b")
    words = ("--topic", "t", "--from-beginning", "--max-messages", most)
    with tool("console_consumer", broker, *words) as consumer:
        assert said(consumer)[:2] == (0, printed)


def test_a_consumer_says_how_it_ended_when_the_broker_is_gone(broker):
    broker.create_topic("t")
    broker.produce("t", "a")
    with tool("console_consumer", broker, "--topic", "t", "--from-beginning", "--group", "g") as consumer:
        assert consumer.stdout.readline() == b"a\n"
        broker.stop()
        consumer.terminate()
        status, _, err = said(consumer)
    assert (status, err.splitlines()[-1]) == (0, "Processed a total of 1 messages")


def test_a_consumer_waits_for_slow_members_only_as_long_as_for_messages(broker):
    broker.create_topic("t")
    with broker.cluster() as cluster:
        slow = ClassicMember(cluster, "g", lambda: ["t"])
        slow.positions()
        with tool("console_consumer", broker, "--topic", "t", "--group", "g", "--timeout-ms", "1000") as consumer:
            status, out, err = said(consumer)
        assert (status, out, err.splitlines()[-1]) == (0, "", "Processed a total of 0 messages")
        assert len(describe_group(cluster, "g").members) == 1


@pytest.mark.parametrize("acks", ["all", "1"])
def test_a_producer_writes_on_when_the_broker_is_started_again(broker, acks):
    """Every later line was lost, and the status was 0."""
    broker.create_topic("t")
    with tool("console_producer", broker, "--topic", "t", "--sync", "--request-required-acks", acks) as producer:
        write(producer, b"before\n")
        await_values(broker, "t", "before")
        broker.restart()
        assert said_after(producer, b"after\nand more\n") == (0, "", "")
    await_values(broker, "t", "before", "after", "and more")


def test_a_refused_record_ends_a_producer_that_waits_for_each(broker):
    broker.create_topic("t", max_message_bytes=100)
    with tool("console_producer", broker, "--topic", "t", "--sync") as producer:
        status, _, err = said_after(producer, b"first\n" + b"x" * 500 + b"\nlast\n")
    assert (status, err) == (1, "MESSAGE_TOO_LARGE\n")
    await_values(broker, "t", "first")
    with tool("console_producer", broker, "--topic", "t") as producer:
        assert said_after(producer, b"x" * 500 + b"\n")[0] == 0  # Kafka's logs it and goes on


def test_what_waits_is_sent_when_no_line_comes(broker):
    """The lines waited for the end of the input."""
    broker.create_topic("t")
    with tool("console_producer", broker, "--topic", "t") as producer:
        write(producer, b"a\rb\r\n")
        await_values(broker, "t", "a", "b")
        assert said_after(producer, b"c") == (0, "", "")
    await_values(broker, "t", "a", "b", "c")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_waits_is_sent_at_a_signal(broker, number):
    broker.create_topic("t")
    with tool("console_producer", broker, "--topic", "t", "--timeout", "600000") as producer:
        write(producer, b"a\nb\n")
        wait_until(lambda: unread_bytes(producer.stdin) == 0, "the lines are read")
        producer.send_signal(number)
        wait_until(lambda: producer.poll() is not None, "it ends")
        assert said(producer) == (128 + number, "", "")
    await_values(broker, "t", "a", "b")


@pytest.fixture
def ignored():
    """Signals that processes ignore which are started now, as those of a script with `trap '' INT TERM`."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    yield numbers
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_tools_go_on_where_their_parent_ignores_a_signal(broker, ignored):
    broker.create_topic("t")
    words = ("--from-beginning", "--max-messages", "2")
    with (
        tool("console_producer", broker, "--topic", "t", "--timeout", "50") as producer,
        tool("console_consumer", broker, "--topic", "t", *words) as consumer,
    ):
        write(producer, b"a\n")
        assert consumer.stdout.readline() == b"a\n"
        for number in ignored:
            producer.send_signal(number)
            consumer.send_signal(number)
        write(producer, b"b\n")
        assert said(consumer) == (0, "b\n", "Processed a total of 2 messages\n")
        assert said(producer)[0] == 0


def test_the_partitions_are_known_while_the_broker_is_gone(broker):
    """Their look-up ended the tool after its time, and with it the records that waited for their batch's time."""
    broker.create_topic("t", 2)
    with Cluster(broker.bootstrap_servers) as cluster:
        sticky = Sticky(cluster, "t", 1)
        assert sticky.partition(1) in (0, 1)
        cluster.timeout_s = 0.1
        broker.stop()
        assert {sticky.partition(1) for _ in range(50)} == {0, 1}


def unread_bytes(pipe):
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def consume(broker, *words):
    """What a consumer of topic t that ends says."""
    with tool("console_consumer", broker, "--topic", "t", *words) as consumer:
        return said(consumer)


def test_a_consumer_commits_nothing_where_it_is_not_to(broker):
    broker.create_topic("t")
    broker.produce("t", "a")
    words = ("--group", "g", "--from-beginning", "--max-messages", "1")
    assert consume(broker, *words, "--command-property", "enable.auto.commit=false")[:2] == (0, "a\n")
    with broker.cluster() as cluster:
        assert committed_offsets(cluster, "g") == {}
    assert consume(broker, *words)[:2] == (0, "a\n")
    with broker.cluster() as cluster:
        assert committed_offsets(cluster, "g") == {("t", 0): 1}


@pytest.mark.parametrize(
    "words",
    [
        ("--isolation-level", "committed"),
        ("--command-property", "isolation.level=READ_COMMITTED"),
        ("--command-property", "enable.auto.commit=no"),
        ("--command-property", "auto.offset.reset=Earliest"),
        ("--command-property", "auto.offset.reset=by_duration:-PT1H"),
        ("--command-property", "auto.offset.reset=by_duration:1h"),
    ],
)
def test_a_consumer_refuses_values_of_its_properties_that_are_none(broker, words):
    """They were taken as the defaults."""
    broker.create_topic("t")
    status, _, err = consume(broker, *words)
    assert (status, err.partition(" ")[0]) == (1, "Invalid")


def test_topics_of_a_pattern_are_those_of_clients(broker):
    """It printed the records of __consumer_offsets and __transaction_state too."""
    for name in ("orders", "other"):
        broker.produce(name, name)
    with broker.cluster() as cluster:
        commit_offsets(cluster, "g", {("orders", 0): 1})
    words = ("--from-beginning", "--timeout-ms", "1000")
    with tool("console_consumer", broker, "--include", "orders|__.*", *words) as consumer:
        assert said(consumer)[:2] == (0, "orders\n")
    with tool("console_consumer", broker, "--include", "*") as consumer:
        status, out, err = said(consumer)
    assert (status, out) == (1, "")
    assert err.startswith("* is an invalid regular expression: nothing to repeat")


def test_where_a_consumer_without_an_offset_begins(broker):
    broker.create_topic("t")
    broker.produce("t", "old", timestamp_ms=1)
    broker.produce("t", "new", timestamp_ms=time.time_ns() // 1_000_000)
    for group in ((), ("--group", "g")):
        status, out, err = consume(broker, *group, "--command-property", "auto.offset.reset=none")
        assert (status, out) == (0, "")
        assert "Undefined offset with no reset policy for partitions: [t-0]\n" in err
    reset = "auto.offset.reset=by_duration:PT1H"
    assert consume(broker, "--command-property", reset, "--max-messages", "1")[:2] == (0, "new\n")
    reset = "auto.offset.reset=by_duration:PT0S"
    assert consume(broker, "--command-property", reset, "--timeout-ms", "1000")[:2] == (0, "")


def test_a_member_waits_for_offsets_of_a_transaction(broker, client):
    """It would read again what the transaction is about to commit."""
    broker.create_topic("t")
    broker.produce("t", "a", "b")
    transaction = Client(client, "g")
    for kind in (GROUP, TRANSACTION):
        client.request(make("FindCoordinator", key_type=kind, coordinator_keys=["g"]))
    assert [transaction.init(), transaction.add_offsets(), transaction.commit_offsets(3, offset=1)] == [0, 0, 0]
    with tool("console_consumer", broker, "--topic", "t", "--group", "g", "--max-messages", "1") as consumer:
        with broker.cluster() as cluster:
            wait_until(lambda: "g" in {one.group_id for one in list_groups(cluster, ["Stable"])}, "it is a member")
        assert transaction.end() == 0
        assert said(consumer)[:2] == (0, "b\n")


def test_a_member_that_waits_for_offsets_disturbs_no_other(broker, client):
    """It joined again at each try, which made the whole group rebalance."""
    broker.create_topic("t")
    transaction = Client(client, "g")
    for kind in (GROUP, TRANSACTION):
        client.request(make("FindCoordinator", key_type=kind, coordinator_keys=["g"]))
    assert [transaction.init(), transaction.add_offsets(), transaction.commit_offsets(3, offset=1)] == [0, 0, 0]
    joins = []
    with broker.cluster() as cluster:
        member = ClassicMember(cluster, "g", lambda: ["t"])
        assert member.positions() == {}
        broker.faults.arm("response.ready", lambda **facts: joins.append(facts), where={"api_key": NAMES["JoinGroup"]})
        assert [member.positions(), member.positions()] == [{}, {}]
        assert joins == []
        assert transaction.end() == 0
        assert member.positions() == {("t", 0): 1}
        member.close()


@pytest.mark.parametrize("api", ["OffsetFetch", "ListOffsets"])
def test_a_member_that_loses_its_connection_once_it_has_its_partitions_reads_them(broker, api):
    """It took them for read, and read nothing for good."""
    broker.create_topic("t")
    broker.produce("t", "a")
    broker.faults.arm("response.ready", "drop", nth=1, where={"api_key": NAMES[api]})
    words = ("--group", "g", "--from-beginning")
    with tool("console_consumer", broker, "--topic", "t", "--max-messages", "1", *words) as consumer:
        assert said(consumer) == (0, "a\n", "Processed a total of 1 messages\n")
