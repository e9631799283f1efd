"""Every option of Kafka's either does something that a test shows, or says that it does nothing, or is refused.

`option_registry` says how tests name the options. What it counts is proved by `python scripts/options.py prove`: every
test fails without the option that it names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_shim.config import (
    BROKER_OPTIONS,
    SYNONYMS,
    BrokerDefaults,
    TopicConfig,
    effects,
)
from kafka_shim.config.table import UNIMPLEMENTED_SECURITY, UNIMPLEMENTED_STORAGE
from kafka_shim.tests.config.option_registry import (
    TABLES,
    VARIABLE,
    marked_tests,
    reads,
    states,
    with_effect,
)

ROOT = Path(__file__).resolve().parents[3]
IDLE = {
    "": effects.BROKER_IDLE,
    "topic:": effects.TOPIC_IDLE,
    "group:": effects.GROUP_IDLE,
    "client-metrics:": effects.CLIENT_METRICS_IDLE,
}
# Options that code outside of shim/config reads under another name.
READ_AS = {
    # `parse.py` sets these attributes of the configuration.
    "broker.id": "node_id",
    "log.dir": "log_dirs",
    # Replaces the texts of other options before anybody reads them.
    "config.providers": "given",
    # config_checks.py reads f"group.{option}", to compare a session's timeout with its interval.
    "group.share.heartbeat.interval.ms": "group.",
    "group.share.session.timeout.ms": "group.",
    "group.streams.heartbeat.interval.ms": "group.",
    "group.streams.session.timeout.ms": "group.",
    # The stores of TLS are read under their kind: f"ssl.{which}.password".
    "ssl.keystore.password": ".password",
    "ssl.truststore.password": ".password",
    # A size for Kafka's own tests.
    "topic:internal.segment.bytes": "segment_bytes",
}


def is_read(label: str, attributes: set[str], texts: set[str]) -> bool:
    level, _, name = label.rpartition(":")
    wanted = READ_AS.get(label, name.replace(".", "_"))
    if level == "topic":
        # The policy is read as two flags.
        return wanted in attributes or (name == "cleanup.policy" and {"compact", "delete"} & attributes != set())
    if not level and wanted not in attributes:
        # The default of a topic's option is read where the topic's is.
        topic = next((topic for topic, names in SYNONYMS.items() if name in [one for one, _ in names]), None)
        if topic is not None:
            return is_read(f"topic:{topic}", attributes, texts)
    return wanted in attributes or wanted in texts or name in texts


def test_each_option_with_an_effect_is_read_by_code_outside_the_configuration() -> None:
    attributes, texts = reads()
    assert sorted(label for label in with_effect() if not is_read(label, attributes, texts)) == []


def test_each_option_without_effect_is_read_by_no_code() -> None:
    attributes, _ = reads()
    broker, topic = (
        {name.replace(".", "_") for name in _names(groups)} for groups in (effects.BROKER_IDLE, effects.TOPIC_IDLE)
    )
    assert sorted(broker & attributes) == []
    assert broker.isdisjoint(BrokerDefaults.__annotations__)
    assert topic.isdisjoint(TopicConfig.__slots__)


def _names(reasons: dict[str, tuple[str, ...]]) -> list[str]:
    return [name for names in reasons.values() for name in names]


def test_each_option_has_one_state() -> None:
    """A name that the lists have and Kafka does not, or that two lists have, would say nothing."""
    for level, reasons in IDLE.items():
        names = _names(reasons)
        quotas = {
            "follower.replication.throttled.rate",
            "leader.replication.throttled.rate",
            "replica.alter.log.dirs.io.max.bytes.per.second",
        }
        assert len(names) == len(set(names))
        assert set(names) <= TABLES[level].keys() | (quotas if not level else set())
    idle = set(_names(effects.BROKER_IDLE))
    refused = [set(effects.REFUSED), set(UNIMPLEMENTED_SECURITY), set(UNIMPLEMENTED_STORAGE)]
    assert sum(map(len, [idle, *refused])) == len(idle.union(*refused))
    assert set(effects.REFUSED) <= BROKER_OPTIONS.keys()


def test_each_option_with_an_effect_has_a_test_that_shows_it_and_no_other_has_one() -> None:
    tested = marked_tests()
    assert sorted(with_effect() - tested.keys()) == []
    assert sorted(tested.keys() - with_effect()) == []


def test_each_option_with_an_effect_has_a_sentence() -> None:
    for label in with_effect():
        level, _, name = label.rpartition(":")
        if name == "internal.segment.bytes" or (not level and name not in BrokerDefaults.__annotations__):
            continue
        table = TABLES[f"{level}:" if level else ""]
        assert table[name].doc, label


def test_the_page_of_options_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "options.py"), "check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "test"),
    [
        ("log.initial.task.delay.ms", "test_retention_begins_after_the_first_delay_and_comes_again_at_its_interval"),
        ("log.retention.hours", "test_option_of_the_broker_is_in_force_for_topics_without_one"),
        ("topic:segment.ms", "test_segments_end_by_size_and_time"),
    ],
)
def test_test_of_an_effect_fails_without_its_option(tmp_path: Path, label: str, test: str) -> None:
    """A sample; `scripts/options.py prove` does it with all."""
    path = Path(__file__).with_name("test_effects_on_logs.py")
    # Without a directory of its own it removes, as it ends, what earlier runs left: 300,000 files take seconds.
    scratch = f"--basetemp={tmp_path / 'inner'}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", scratch, f"{path}::{test}"]
    results = []
    for without in ("", label):
        environment = {**os.environ, VARIABLE: without}
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        results.append(done.returncode)
    assert results == [0, 1]


def test_states_are_of_every_option_of_every_table() -> None:
    found = states()
    assert len(found) == sum(len(table) for table in TABLES.values()) > 400
    assert sum(state == "effect" for state in found.values()) == len(with_effect()) > 140
