"""What has one home in the broker is nowhere else: time, chance, threads, and facts that more than one part needs."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

import kafka_shim.internal_topics
from kafka_shim.tests.test_layering import SHIM, modules

# What another file may do, and why.
CLOCKS = {
    "clock.py": "the home",
    "server.py": "says how long the machine needed for a start",
    "wiretap/capture.py": "notes when frames passed on this machine",
    "storage/compaction.py": "says how long the machine needed for a round",
    "workers.py": "a thread waits for memory: every other wait needs some",
    "storage/flusher.py": "measures how long the machine needs for an fsync",
    "storage/batch_checks.py": "measures how long a thread was busy with a request, as request quotas count",
    "quota/request_throttle.py": "measures how long the machine was busy with a request, as request quotas count",
    "monitoring/request_times.py": "measures what clients wait for, on this machine",
    "monitoring/monitor.py": "measures how late this machine's loop is",
    "security/sasl/key_endpoint.py": "ends the reading of keys that takes too long, on this machine",
    "http/bugs.py": "bounds the lines of threads of HTTP, whether the loop turns or not",
    "http/server.py": "ends requests of HTTP that take too long, whether the loop turns or not",
    "console/cluster.py": "how long an answer took says how long it will do",
    "console/records.py": "a search ends after a time",
    "console/schemas.py": "does not ask a registry that is gone again and again",
    "console/sessions.py": "sessions of people end by this machine's time",
    "embedded_client.py": "waits for records, whether the broker's clock stands still or not",
    "embedded_security.py": "tokens that it makes for clients of this machine are valid by its clock",
    "client/classic_membership.py": "a client of its own process",
    "tools/console_consumer.py": "a tool of its own process",
    "tools/console_producer.py": "a tool of its own process",
    "tools/reset_offsets.py": "a tool of its own process",
    "tools/reset_policy.py": "a tool of its own process",
    "tools/metadata_quorum.py": "a tool of its own process",
    "tools/transactions.py": "a tool of its own process",
    "client/cluster.py": "a client of its own process",
    "client/consumer_membership.py": "a client of its own process",
    "client/overview.py": "a client of its own process",
    "client/writing.py": "a client of its own process",
    "commands/consume.py": "a tool of its own process",
    "commands/formatting.py": "a tool of its own process",
    "commands/times.py": "a tool of its own process",
    "commands/top.py": "a tool of its own process",
    "commands/transactions.py": "a tool of its own process",
}
CHANCE = {
    "randomness.py": "the home",
    "client/consumer_membership.py": "the id of a member, of a client of its own process",
    "storage/compaction.py": "the key of a hash in memory: nothing that it writes depends on it",
    "memory_dir.py": "the name of a directory, which no other broker may have, of another seed or not",
}
THREADS = {
    "workers.py": "tells the clock of its work",
    "storage/flusher.py": "tells the clock of its work",
    "storage/cleaner.py": "tells the clock of its work",
    "metadata/snapshots.py": "tells the clock of its work",
    "commands/streams.py": "a tool of its own process",
    "tls_handshakes.py": "tells the clock of its work",
    "embedded_control.py": "makes the thread that runs the loop of the broker itself",
    "embedded_process.py": "reads the stderr of a child process, beside no broker",
    "http/server.py": "answers HTTP also while the loop does not turn; the loop alone reads the broker",
}
TIMERS = {
    "clock.py": "the home",
    "scheduler.py": "periodic and sliced work, by name",
    "turns.py": "one share of long requests on each turn of the loop",
    "waiters.py": "a request that waits",
    "group/timers.py": "sessions, by the thousand",
    "acceptor.py": "waits for the kernel, which no virtual clock moves",
    "group/loader.py": "reading what is stored: its pace depends on who waits",
    "group/member_turns.py": "the next turn of the loop, asked for by each request that comes alone",
    "txn/retries.py": "retries of single transactions",
}


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


def dotted(function: ast.expr) -> str:
    """The text of what is called, without `ast.unparse`, which costs most of these tests' time."""
    match function:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=owner, attr=name):
            return f"{dotted(owner)}.{name}"
    return ast.unparse(function)


@functools.cache
def calls(path: Path) -> tuple[tuple[str, int], ...]:
    """Name and line of each call."""
    return tuple((dotted(node.func), node.lineno) for node in nodes(path) if isinstance(node, ast.Call))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno


def check(found: dict[str, list[int]], allowed: dict[str, str], home: str) -> None:
    assert {name: lines for name, lines in found.items() if name not in allowed} == {}, f"belongs to {home}"
    assert set(allowed) <= set(found), "allowed and no longer needed"


def where(wanted, things) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for path in modules():
        lines = [line for name, line in things(path) if wanted(name)]
        if lines:
            found[str(path.relative_to(SHIM))] = lines
    return found


def test_only_the_clock_reads_the_machines_time():
    check(where(lambda name: name == "time", imports), CLOCKS, "clock.py")


def test_chance_comes_through_the_clock():
    check(
        where(
            lambda name: (
                name.endswith(("urandom", "uuid4", "uuid1", "getrandbits")) or name in ("Random", "SystemRandom")
            ),
            calls,
        ),
        CHANCE,
        "clock.random",
    )


def test_threads_are_known_to_the_clock():
    names = ("to_thread", "run_in_executor", "ThreadPoolExecutor")
    found = where(lambda name: name in names or name.endswith(("Thread", ".to_thread", ".run_in_executor")), calls)
    check(found, THREADS, "a thread that calls clock.begin_work and end_work")


def test_timers_are_set_in_few_places():
    check(where(lambda name: name.endswith(".call_later"), calls), TIMERS, "scheduler.Scheduler")


@pytest.mark.parametrize("name", ["GROUP_METADATA_TOPIC", "TRANSACTION_STATE_TOPIC", "CLUSTER_METADATA_TOPIC"])
def test_internal_topics_are_named_once(name: str):
    topic = getattr(kafka_shim.internal_topics, name)
    holders = [
        str(path.relative_to(SHIM))
        for path in modules()
        for node in nodes(path)
        if isinstance(node, ast.Constant) and node.value == topic
    ]
    assert holders == ["internal_topics.py"]


# Files of more than 400 lines, and why.
LONG = {
    "config/generated_rows.py": "Kafka's options, one a line, written by kafka_shim.config.transcribe",
}


def test_a_file_is_about_one_noun_and_fits_into_a_few_screens() -> None:
    lines = {path.relative_to(SHIM).as_posix(): len(path.read_text().splitlines()) for path in modules()}
    long = {name: count for name, count in lines.items() if count > 400}
    assert {name: count for name, count in long.items() if name not in LONG} == {}, "split it by noun"
