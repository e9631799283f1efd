"""`produce`, `consume`, `cluster` and `top`."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from kafka_shim.cli import main
from kafka_shim.client.consumer_membership import ConsumerMember
from kafka_shim.client.lines import Lines
from kafka_shim.client.offsets import committed_offsets
from kafka_shim.client.reading import read_all
from kafka_shim.client.requests import NAMES, make
from kafka_shim.client.writing import Producer
from kafka_shim.commands.consume import Reader
from kafka_shim.commands.times import read_duration, read_when, shown_duration, shown_time
from kafka_shim.commands.top import as_json, compare
from kafka_shim.embedded import Broker
from kafka_shim.wire_client import WireClientError


@pytest.fixture
def run(broker, capsysbinary, monkeypatch):
    """Run a command against `broker` with an input: (status, stdout, stderr)."""
    monkeypatch.setenv("KAFKA_SHIM_BOOTSTRAP", broker.bootstrap_servers)

    def call(*words, given=b""):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given), isatty=lambda: False))
        status = main(list(words))
        out, err = capsysbinary.readouterr()
        return status, out.decode(), err.decode()

    return call


def values(broker, topic):
    return [(one.key, one.value) for one in broker.consume(topic)]


def test_lines_become_records(run, broker):
    assert run("produce", "t", "-p", "0", given=b"one\r\ntwo") == (0, "", "2 records written: t-0 from offset 0\n")
    assert values(broker, "t") == [(None, b"one"), (None, b"two")]
    words = ["--key-separator", "=>", "--null-value", "NULL", "-H", "a=1", "-H", "b=", "--compression", "zstd"]
    assert run("produce", "keyed", *words, given=b"k=>v\nk=>NULL\n")[0] == 0
    found = broker.consume("keyed")
    assert [(one.key, one.value, one.headers) for one in found] == [
        (b"k", b"v", (("a", b"1"), ("b", b""))),
        (b"k", None, (("a", b"1"), ("b", b""))),
    ]
    status, out, _ = run("produce", "t", "--json", "--acks", "0", "--key", "k", given=b"x\n")
    (row,) = json.loads(out)
    assert (status, row["count"], row["firstOffset"]) == (0, 1, None)
    assert run("produce", "t", "-p", "0", "--acks", "0", given=b"x")[2] == "1 record written: t-0 from offset -\n"


class Interrupted(io.BytesIO):
    """Lines of a keyboard at which Ctrl-C is pressed where the input would end."""

    def isatty(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        if found or size == 0:
            return found
        raise KeyboardInterrupt


def test_ctrl_c_ends_what_is_typed_and_says_what_is_written(broker, capsys, monkeypatch):
    typed = SimpleNamespace(buffer=Interrupted(b"one\ntwo\n"), isatty=lambda: True)
    monkeypatch.setattr(sys, "stdin", typed)
    words = ["produce", "t", "--bootstrap-server", broker.bootstrap_servers, "-p", "0"]
    assert main(words) == 130
    assert "2 records written: t-0 from offset 0\n" in capsys.readouterr().err
    assert values(broker, "t") == [(None, b"one"), (None, b"two")]

    typed.buffer = Interrupted(b"three\n")
    assert main([*words, "--transactional-id", "billing"]) == 130
    assert "the transaction is aborted\n" in capsys.readouterr().err
    assert len(values(broker, "t")) == 2


def test_what_waits_is_written_when_no_line_comes(broker, monkeypatch):
    """A slow pipe's lines waited for its end."""
    broker.create_topic("t")
    reader, writer = os.pipe()
    monkeypatch.setattr("kafka_shim.commands.produce.PAUSE_S", 0.01)
    with os.fdopen(reader, "rb") as source, os.fdopen(writer, "wb", buffering=0) as sink:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=source, isatty=lambda: False))
        sink.write(b"one\n")

        def end_once_written():
            try:
                broker.consume("t", 1)
            finally:
                sink.close()

        ending = threading.Thread(target=end_once_written)
        ending.start()
        assert main(["produce", "t", "--bootstrap-server", broker.bootstrap_servers]) == 0
        ending.join()
    assert values(broker, "t") == [(None, b"one")]


def test_a_transaction_of_a_slow_pipe_does_not_time_out(broker, monkeypatch):
    """What waited was sent after a pause: the transaction was open from then on, and aborted before the next line."""
    broker.create_topic("t")
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as source, os.fdopen(writer, "wb", buffering=0) as sink:

        class Slow(Lines):
            def __iter__(self):
                for line in super().__iter__():
                    yield line
                    if line is None and not sink.closed:
                        broker.clock.advance("75s")
                        sink.write(b"two\n")
                        sink.close()

        monkeypatch.setattr("kafka_shim.commands.produce.Lines", Slow)
        monkeypatch.setattr("kafka_shim.commands.produce.PAUSE_S", 0.01)
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=source, isatty=lambda: False))
        sink.write(b"one\n")
        words = ("--bootstrap-server", broker.bootstrap_servers, "-p", "0", "--transactional-id", "x")
        assert main(["produce", "t", *words]) == 0
    assert values(broker, "t") == [(None, b"one"), (None, b"two")]


def test_nothing_that_listens_is_told_before_the_first_line_is_read(run):
    status, out, err = run("produce", "t", "--bootstrap-server", "127.0.0.1:1", given=b"")
    assert (status, out) == (1, "")
    assert err.startswith("error: cannot connect to 127.0.0.1:1")


def test_records_go_out_and_come_back_as_json(run, broker):
    broker.create_topic("t", 2)
    broker.produce("t", b"\xff", None, "x", key="k", headers={"h": b"\xfe", "i": "j"}, partition=1, timestamp_ms=1000)
    status, out, _ = run("consume", "t", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert lines[0] == {
        "topic": "t",
        "partition": 1,
        "offset": 0,
        "timestamp": 1000,
        "time": "1970-01-01T00:00:01.000Z",
        "key": "k",
        "value": {"base64": "/w=="},
        "headers": [["h", {"base64": "/g=="}], ["i", "j"]],
    }
    assert run("produce", "copy", "--json-lines", given=out.encode())[0] == 0
    copied = broker.consume("copy")
    assert [(one.partition, one.timestamp_ms, one.key, one.value, one.headers) for one in copied] == [
        (one.partition, one.timestamp_ms, one.key, one.value, one.headers) for one in broker.consume("t")
    ]


@pytest.mark.parametrize(
    ("words", "given", "told"),
    [
        (["--key-separator", ":"], b"a:b\nc\n", "line 2 has no key separator"),
        (["--json-lines"], b"{}\n\n[]\n", "line 3 is not an object"),
        (["--json-lines"], b"{\n", "line 1 is not JSON"),
        (["--json-lines"], b"[" * 100_000 + b"\n", "line 1 is nested too deeply"),
        (["--json-lines"], b'{"partition": "x"}\n', "line 1: invalid literal"),
        (["--json-lines"], b'{"partition": 1e999}\n', "line 1: partition is a whole number"),
        (["--json-lines"], b'{"partition": true}\n', "line 1: partition is a whole number"),
        (["--json-lines"], b'{"timestamp": 9223372036854775808}\n', "line 1: timestamp is a whole number"),
        (["--json-lines"], b'{"headers": {"\\ud800": "x"}}\n', "line 1: 'utf-8' codec can't encode"),
        (["--json-lines"], b'{"headers": ["ab"]}\n', "line 1: headers is an object, or a list of [name, value]"),
        (["--json-lines"], b'{"headers": "ab"}\n', "line 1: headers is an object, or a list of [name, value]"),
        (["--json-lines"], b'{"headers": [[null, "x"]]}\n', "line 1: the name of a header is a text, not null"),
        (["--json-lines", "--key", "k"], b"", "exclude each other"),
        (["--transactional-id", "x", "--acks", "1"], b"", "needs --acks all"),
        (["--key-separator", ""], b"", "is empty"),
        (["-H", "h"], b"", "is not NAME=VALUE"),
    ],
)
def test_wrong_input_is_told_with_its_line(run, words, given, told):
    status, _, err = run("produce", "t", *words, given=given)
    assert (status, told in err) == (2, True), err


def test_the_lines_before_a_wrong_one_are_written(run, broker):
    """What could not be written was found with those of its batch, which were lost."""
    given = b'{"value": "a", "timestamp": -1}\n{"value": "b", "timestamp": 18446744073709551616}\n'
    told = f"error: line 2: timestamp is a whole number from -1 to {2**63 - 1}, not {2**64}\n"
    status, out, err = run("produce", "t", "--json-lines", given=given)
    assert (status, out, err) == (2, "", "1 record written: t-0 from offset 0\n" + told)
    assert values(broker, "t") == [(None, b"a")]
    status, out, err = run("produce", "t", "--json-lines", "--json", given=given)
    assert (status, out, err) == (2, "", "1 record written: t-0 from offset 1\n" + told)
    assert run("produce", "t", "--json-lines", "--transactional-id", "x", given=given)[::2] == (2, told)
    for refused in (b'{"value": "b", "partition": 99}', b'{"value": "%s"}' % (b"b" * 2_000_000)):
        status, _, err = run("produce", "t", "--json-lines", given=b'{"value": "a"}\n' + refused + b"\n")
        assert (status, err.startswith("1 record written: t-0 from offset ")) == (1, True), err
    given = b'{"value": "a"}\n{"value": "b", "partition": 99}\nnot JSON\n'
    status, _, err = run("produce", "t", "--json-lines", given=given)
    refused, summary, told = err.splitlines()
    assert (status, "t-99" in refused, told[:22]) == (2, True, "error: line 3 is not J"), err
    assert summary.startswith("1 record written: t-0 from offset ")


def test_lines_of_a_file_are_written_together_also_from_a_terminal(broker, monkeypatch, tmp_path):
    """Each was a request, as if somebody typed it."""
    broker.create_topic("t")
    broker.faults.arm("log.after_append", lambda **_: None, where={"topic": "t"})
    path = tmp_path / "lines"
    path.write_bytes(b"line\n" * 1000)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(), isatty=lambda: True))
    assert main(["produce", "t", "--file", str(path), "--bootstrap-server", broker.bootstrap_servers]) == 0
    assert len(values(broker, "t")) == 1000
    assert broker.faults.reached("log.after_append") == 1


def test_a_transaction_is_all_or_nothing(run, broker):
    words = ["t", "--transactional-id", "x", "--key-separator", ":"]
    assert run("produce", *words, given=b"a:1\n")[0] == 0
    assert run("produce", *words, given=b"a:2\nwrong\n")[0] == 2
    assert values(broker, "t") == [(b"a", b"1")]
    # Without a transaction, what stands before the mistake is written.
    assert run("produce", "t", "--key-separator", ":", given=b"a:3\nwrong\n")[0] == 2
    assert values(broker, "t") == [(b"a", b"1"), (b"a", b"3")]


def test_errors_say_what_to_do(run, capsysbinary):
    assert run("produce", "t", "-p", "9", given=b"x")[2].startswith(
        "error: t-9: UNKNOWN_TOPIC_OR_PARTITION (kafka-shim "
    )
    status, _, err = run("consume", "nowhere")
    assert (status, err) == (
        1,
        "error: nowhere: UNKNOWN_TOPIC_OR_PARTITION (kafka-shim topics list shows what is there)\n",
    )
    status, _, err = run("consume", "t", "--bootstrap-server", "127.0.0.1:x")
    assert (status, err.endswith(": not an address: '127.0.0.1:x': give HOST:PORT\n")) == (2, True)
    status, _, err = run("consume", "t", "--bootstrap-server", "127.0.0.1:99999")
    assert (status, err.endswith(": '127.0.0.1:99999': a port is a number from 0 to 65535\n")) == (2, True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "0123456789"),
        (["-n", "3"], "012"),
        (["--from", "7"], "789"),
        (["--from", "-2"], "89"),
        (["--from", "-99", "-n", "1"], "0"),
        (["--from", "end"], ""),
        (["--from", "1970-01-01T00:00:05.5"], "6789"),
        (["--from", "1m"], ""),
    ],
)
def test_reading_begins_and_ends_where_it_is_said(run, broker, words, expected):
    broker.create_topic("t")
    for number in range(10):
        broker.produce("t", str(number), timestamp_ms=1000 * number)
    assert run("consume", "t", *words)[:2] == (0, "".join(f"{one}\n" for one in expected))


def test_keys_and_partitions_are_chosen(run, broker):
    broker.create_topic("t", 2)
    broker.produce("t", "a", None, key="k", partition=0)
    broker.produce("t", "b", partition=1)
    assert run("consume", "t", "-p", "0", "--key-separator", ":")[1] == "k:a\nk:null\n"
    assert run("consume", "t", "-p", "1", "--key-separator", ":")[1] == "null:b\n"
    status, _, err = run("consume", "t", "-p", "0", "--from", "99", "--follow")
    assert (status, "OFFSET_OUT_OF_RANGE: t-0 begins at 0; give another --from" in err) == (1, True), err
    for words in (["--group", "g", "-p", "0"], ["--json", "--key-separator", ":"], ["--from", "soon"]):
        assert run("consume", "t", *words)[0] == 2


def test_only_committed_records_are_read_when_that_is_asked(run, broker):
    with broker.cluster() as cluster:
        producer = Producer(cluster, transactional_id="x")
        for value, end in ((b"kept", producer.commit), (b"dropped", producer.abort)):
            producer.begin()
            producer.send("t", value, partition=0)
            producer.flush()
            end()
        producer.begin()
        producer.send("t", b"open", partition=0)
        producer.flush()
        assert run("consume", "t", "--read-committed")[1] == "kept\n"
        assert run("consume", "t")[1] == "kept\ndropped\nopen\n"


def test_following_waits_for_more(run, broker):
    broker.produce("t", "a", partition=0)
    timer = threading.Timer(0.2, lambda: broker.produce("t", "b", partition=0))
    timer.start()
    assert run("consume", "t", "--follow", "-n", "2")[1] == "a\nb\n"
    timer.join()


def test_a_group_goes_on_where_it_was(run, monkeypatch, kafka_shim_factory):
    # An assignment waits on the clock, which must go on.
    broker = kafka_shim_factory(num_partitions=2)
    monkeypatch.setenv("KAFKA_SHIM_BOOTSTRAP", broker.bootstrap_servers)
    broker.create_topic("t", 2)
    broker.produce("t", *"abcdef")
    first = run("consume", "t", "--group", "g", "-n", "4")
    assert (first[0], len(first[1].split())) == (0, 4)
    rest = run("consume", "t", "--group", "g")
    assert rest[0] == 0
    assert sorted(first[1].split() + rest[1].split()) == list("abcdef")
    assert run("consume", "t", "--group", "g")[1] == ""
    status, out, _ = run("groups", "describe", "g", "--state", "--json")
    assert (status, json.loads(out)[0]["state"], json.loads(out)[0]["members"]) == (0, "Empty", 0)


def test_a_group_whose_offset_is_no_longer_in_the_log_reads_on(run, monkeypatch, kafka_shim_factory):
    """It failed each time, and told to give a --from, which is not for what is committed."""
    broker = kafka_shim_factory()
    monkeypatch.setenv("KAFKA_SHIM_BOOTSTRAP", broker.bootstrap_servers)
    broker.produce("t", *"abcdef")
    assert run("consume", "t", "--group", "g", "-n", "1")[1] == "a\n"
    with broker.cluster() as cluster:
        parts = [{"partition_index": 0, "offset": 4}]
        request = make("DeleteRecords", topics=[{"name": "t", "partitions": parts}], timeout_ms=10_000)
        assert cluster.any().request(request).topics[0].partitions[0].error_code == 0
    warning = "warning: t-0 has no offset 1, which is committed: it is read from offset 4 on\n"
    assert run("consume", "t", "--group", "g", "--from", "0") == (0, "e\nf\n", warning)
    assert run("consume", "t", "--group", "g") == (0, "", "")


def test_a_group_commits_only_what_was_printed(run, monkeypatch, kafka_shim_factory):
    broker = kafka_shim_factory(num_partitions=1)
    monkeypatch.setenv("KAFKA_SHIM_BOOTSTRAP", broker.bootstrap_servers)
    broker.produce("t", "a")
    ends_of = Reader._end_offsets

    def then_more_comes(self, parts):
        found = ends_of(self, parts)
        if found:
            broker.produce("t", "b")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Reader, "_end_offsets", then_more_comes)
        assert run("consume", "t", "--group", "g")[:2] == (0, "a\n")
    assert run("consume", "t", "--group", "g")[:2] == (0, "b\n")


def test_a_group_whose_reader_paused_for_longer_than_its_session_reads_on(run, monkeypatch, kafka_shim_factory):
    """As behind `less`: it ended with UNKNOWN_MEMBER_ID."""
    broker = kafka_shim_factory(num_partitions=1)
    monkeypatch.setenv("KAFKA_SHIM_BOOTSTRAP", broker.bootstrap_servers)
    broker.produce("t", "a", "b")
    commit = ConsumerMember.commit
    pauses = [None]

    def after_a_pause(member, offsets):
        if pauses:
            pauses.pop()
            with broker.cluster() as cluster:
                gone = make("ConsumerGroupHeartbeat", group_id="g", member_id=member._member_id, member_epoch=-1)
                assert cluster.coordinator("g").request(gone).error_code == 0
        commit(member, offsets)

    monkeypatch.setattr(ConsumerMember, "commit", after_a_pause)
    assert run("consume", "t", "--group", "g") == (0, "a\nb\na\nb\n", "")
    assert run("consume", "t", "--group", "g") == (0, "", "")


# --- cluster and top


def test_the_cluster_is_shown(run, broker):
    (node,) = json.loads(run("cluster", "nodes", "--json")[1])
    assert (node["clusterId"], node["port"], node["fenced"]) == (broker.cluster_id, broker.port, False)
    features = {one["feature"]: one["level"] for one in json.loads(run("cluster", "features", "--json")[1])}
    assert features["transaction.version"] == 2
    (listeners,) = json.loads(run("cluster", "listeners", "--json")[1])
    assert listeners["listeners"].startswith("PLAINTEXT://")
    assert run("cluster", "health")[:2] == (0, "healthy: 1 broker, 0 topics, 0 partitions\n")
    assert json.loads(run("cluster", "health", "--json")[1])[0]["healthy"] is True


def test_top_looks_at_what_happens(run, broker):
    broker.produce("t", "a", "b", "c", "d", partition=0)
    run("consume", "t", "--group", "g", "-n", "1")
    with broker.cluster() as cluster:
        producer = Producer(cluster, transactional_id="x")
        producer.begin()
        producer.send("t", b"open", partition=0)
        producer.flush()
        status, out, _ = run("top", "--once", "--json", "--refresh", "0.5")
        found = json.loads(out)
        assert status == 0
        (topic,) = [one for one in found["topics"] if one["topic"] == "t"]
        assert (topic["partitions"], topic["offsetsHeld"], topic["perSecond"]) == (2, 5, 0.0)
        assert [(one["group"], one["type"], one["state"]) for one in found["groups"]] == [("g", "consumer", "Empty")]
        # Of five offsets one was read; nothing is committed of the other partition.
        assert found["groups"][0]["lag"] == 4
        (open_one,) = found["transactions"]
        assert (open_one["transactionalId"], open_one["partitions"]) == ("x", ["t-0"])
        status, out, _ = run("top", "--once", "--refresh", "0.5", "--rows", "1")
        assert status == 0
        assert "TRANSACTION" in out
        assert "not shown:" in out
    assert run("top", "--json")[0] == 2


def test_top_without_a_terminal_says_why_it_shows_nothing(run, monkeypatch):
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafka_shim.commands.top.time.sleep", interrupted)
    status, _, err = run("top")
    assert (status, err) == (0, "warning: the screen needs a terminal, and the output is none: --once prints it\n")


def test_rates_are_of_the_time_between_two_looks(broker):
    from kafka_shim.client.overview import look

    broker.create_topic("t")
    with broker.cluster() as cluster:
        before = look(cluster)
        broker.produce("t", *"abcd")
        broker.produce("new", "x")
        after = look(cluster)
    after.taken_s = before.taken_s + 2
    view = compare(before, after)
    assert [(one.name, one.rate) for one in view.topics] == [("t", 2.0), ("new", None)]
    assert as_json(view)["topics"][0]["perSecond"] == 2.0


def test_the_starts_of_partitions_are_kept_for_a_while(broker):
    from kafka_shim.client import overview

    for name in ("t", "again"):
        broker.create_topic(name)
        broker.produce(name, *"abcd")
    with broker.cluster() as cluster:
        first = overview.look(cluster)
        removed = [{"name": name, "partitions": [{"partition_index": 0, "offset": 3}]} for name in ("t", "again")]
        for topic in cluster.any().request(make("DeleteRecords", topics=removed, timeout_ms=30_000)).topics:
            assert topic.partitions[0].error_code == 0
        broker.delete_topic("again")
        broker.create_topic("again")
        broker.create_topic("new")
        asked = broker.state.metrics.requests[NAMES["ListOffsets"]]
        second = overview.look(cluster, first)
        assert broker.state.metrics.requests[NAMES["ListOffsets"]] == asked + 2, (
            "the ends, and the start of what is new"
        )
        assert second.starts == {("t", 0): 0, ("again", 0): 0, ("new", 0): 0}
        first.starts_taken_s -= overview.STARTS_KEPT_S
        assert overview.look(cluster, first).starts == {("t", 0): 3, ("again", 0): 0, ("new", 0): 0}


def test_times_are_shown_as_times():
    assert shown_time(1_769_860_800_123) == "2026-01-31T12:00:00.123Z"
    assert (shown_time(-1), shown_time(1 << 62)) == ("-", str(1 << 62))
    shown = [shown_duration(one) for one in (250, 12_500, 180_000, 7_500_000, 349_200_000, 86_400_000)]
    assert shown == ["250 ms", "12.5 s", "3 min", "2 h 5 min", "4 d 1 h", "1 d"]
    assert [read_duration(one) for one in ("P1DT2H3M4.5S", "pt1h", "-PT1S", "5m")] == [
        93_784_500,
        3_600_000,
        -1000,
        300_000,
    ]
    assert [read_duration(one) for one in ("1.001s", f"{10**400}d")] == [1001, 86_400_000 * 10**400]
    assert read_when("1000") == 1000
    assert read_when("1970-01-01T00:00:01Z") == 1000
    # As a number of seconds with a fraction it is a bit less.
    assert read_when("2026-01-31T12:00:00.001Z") == 1_769_860_800_001


def test_every_command_of_records_has_examples_and_statuses(run):
    for noun in ("produce", "consume", "cluster", "top", "groups"):
        out = run(noun, "--help")[1]
        assert "Examples:" in out
        assert "Exit status:" in out
    assert "KAFKA_SHIM_BOOTSTRAP" in run("consume", "--help")[1]


def test_reading_all_needs_a_partition(broker):
    with broker.cluster() as cluster, pytest.raises(WireClientError):
        read_all(cluster, [("nowhere", 0)])


def test_following_ends_with_the_reader_of_its_output():
    """As behind `| head -1`, also where no other record comes."""
    with Broker() as broker:
        broker.produce("t", "a")
        line = [sys.executable, "-m", "kafka_shim", "consume", "t", "--follow", "--bootstrap", broker.bootstrap_servers]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"a\n"
            child.stdout.close()
            assert child.wait(60) == 1


@pytest.mark.parametrize("words", [[], ["--group", "g"]])
def test_following_goes_on_when_its_broker_is_back(words):
    """As kafka-console-consumer does."""
    with Broker() as broker:
        broker.produce("t", "a")
        line = [sys.executable, "-m", "kafka_shim", "consume", "t", "--follow", "-n", "3", *words]
        line += ["--bootstrap", broker.bootstrap_servers]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            for text in (b"a\n", b"b\n"):
                assert child.stdout.readline() == text
                broker.restart()
                broker.produce("t", "b")
            assert child.stdout.readline() == b"b\n"
            assert child.wait(60) == 0
            said = child.stderr.read().decode()
        assert said.count("it goes on when the broker is back") in (1, 2), said
        if words:
            with broker.cluster() as cluster:
                assert committed_offsets(cluster, "g") == {("t", 0): 3}


@pytest.mark.parametrize("words", [[], ["--group", "g"]])
def test_ctrl_c_ends_following_while_its_broker_is_away(words):
    with Broker() as broker:
        broker.produce("t", "a")
        line = [sys.executable, "-m", "kafka_shim", "consume", "t", "--follow", *words]
        line += ["--bootstrap", broker.bootstrap_servers]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            assert child.stdout.readline() == b"a\n"
            broker.stop()
            assert b"it goes on when the broker is back" in child.stderr.readline()
            child.send_signal(signal.SIGINT)
            assert (child.wait(60), child.stderr.read()) == (0, b"")


def test_a_topic_that_is_deleted_during_a_look_is_left_out(broker, monkeypatch):
    """`top` ended with the error, in the middle of a session."""
    from kafka_shim.client import overview

    broker.create_topic("gone")
    broker.create_topic("kept")
    with broker.cluster() as cluster:
        metadata = cluster.metadata

        def then_deleted(*topics):
            monkeypatch.setattr(cluster, "metadata", metadata)
            answer = metadata(*topics)
            broker.delete_topic("gone")
            return answer

        monkeypatch.setattr(cluster, "metadata", then_deleted)
        found = overview.look(cluster)
    assert (list(found.ends), list(found.starts)) == ([("kept", 0)], [("kept", 0)])
