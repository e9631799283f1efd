from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

OPTIONS = """
import pytest

def test_plain(kafka_shim):
    kafka_shim.produce("t", "a")
    with kafka_shim.cluster() as cluster:
        assert cluster.partitions("t") == [0]

@pytest.mark.kafka_shim(num_partitions=4, clock="virtual")
class TestOptions:
    def test_of_the_class(self, kafka_shim):
        kafka_shim.clock.advance("1d")
        kafka_shim.produce("t", "a")
        with kafka_shim.cluster() as cluster:
            assert cluster.partitions("t") == [0, 1, 2, 3]

    @pytest.mark.kafka_shim(num_partitions=2)
    def test_nearest_marker_wins(self, kafka_shim):
        kafka_shim.produce("t", "a")
        with kafka_shim.cluster() as cluster:
            assert cluster.partitions("t") == [0, 1]
"""

SCOPES = """
import pytest

SEEN = {}

@pytest.fixture(scope="session")
def kafka_shim_options():
    return {"auto_create_topics_enable": False}

def seen(name, broker):
    SEEN.setdefault(name, []).append(broker.cluster_id)
    return SEEN[name]

class TestOne:
    @pytest.mark.parametrize("number", [1, 2])
    def test_shared(self, kafka_shim, kafka_shim_class, kafka_shim_module, kafka_shim_session, number):
        assert len(set(seen("function", kafka_shim))) == number
        assert len(set(seen("class", kafka_shim_class))) == 1
        assert len(set(seen("module", kafka_shim_module))) == 1
        assert len(set(seen("session", kafka_shim_session))) == 1

class TestTwo:
    def test_shared(self, kafka_shim_class, kafka_shim_module, kafka_shim_session):
        assert len(set(seen("class", kafka_shim_class))) == 2
        assert len(set(seen("module", kafka_shim_module))) == 1
        assert len(set(seen("session", kafka_shim_session))) == 1

def test_options_are_for_all(kafka_shim_session, kafka_shim_factory):
    for broker in (kafka_shim_factory(),):
        with pytest.raises(Exception, match="UNKNOWN_TOPIC_OR_PARTITION"):
            broker.produce("t", "a")

def test_factory(kafka_shim_factory):
    one, two = kafka_shim_factory(), kafka_shim_factory(auto_create_topics_enable=True)
    two.produce("t", "a")
    assert (one.topics(), two.topics()) == ([], ["t"])
"""

TOPICS = """
import pytest

pytestmark = pytest.mark.kafka_topics("everywhere")

@pytest.mark.kafka_topics("orders", "payments", partitions=3, cleanup_policy="compact")
def test_marked(kafka_shim):
    assert kafka_shim.topics() == ["everywhere", "orders", "payments"]
    with kafka_shim.cluster() as cluster:
        assert cluster.partitions("orders") == [0, 1, 2]

@pytest.mark.kafka_topics("first")
def test_shared(kafka_shim_module):
    assert kafka_shim_module.topics() == ["everywhere", "first"]
    kafka_shim_module.reset()

@pytest.mark.kafka_topics("second")
def test_shared_again(kafka_shim_module):
    assert kafka_shim_module.topics() == ["everywhere", "second"]
"""

WRONG_MARKS = """
import pytest

@pytest.mark.kafka_topics("t")
def test_without_broker():
    pass

@pytest.mark.kafka_topics()
def test_without_names(kafka_shim):
    pass

@pytest.mark.kafka_topics(["t", "u"])
def test_names_in_a_list(kafka_shim):
    pass

@pytest.mark.kafka_shim({"num_partitions": 3})
def test_options_in_a_dict(kafka_shim):
    pass

@pytest.mark.kafka_topics("t", partitions=3)
def test_shared(kafka_shim_module):
    pass

@pytest.mark.kafka_topics("t", partitions=2)
def test_with_other_partitions(kafka_shim_module):
    pass
"""

SHARED_MARKS = """
import pytest

@pytest.fixture
def broker(kafka_shim_module):
    return kafka_shim_module

@pytest.mark.kafka_shim(num_partitions=3)
def test_of_the_module(broker):
    pass

@pytest.mark.kafka_shim(num_partitions=3)
class TestMarked:
    def test_of_the_session(self, kafka_shim_session):
        pass

    @pytest.mark.kafka_shim(clock="virtual")
    def test_of_the_class(self, kafka_shim_class):
        pass

    def test_is_met(self, kafka_shim_class):
        kafka_shim_class.produce("t", "a")
        with kafka_shim_class.cluster() as cluster:
            assert len(cluster.partitions("t")) == 3

    def test_is_of_another_broker(self, kafka_shim, kafka_shim_module):
        pass
"""

MET_MARKS = """
import pytest

@pytest.fixture(scope="session")
def kafka_shim_options():
    return {"num_partitions": 2}

def partitions(broker):
    broker.produce("t", "a")
    with broker.cluster() as cluster:
        return len(cluster.partitions("t"))

@pytest.mark.kafka_shim(num_partitions=3)
def test_without_a_class(kafka_shim_class):
    assert partitions(kafka_shim_class) == 3

@pytest.mark.kafka_shim(num_partitions=3)
class TestMarked:
    def test_beside_a_wider_broker(self, kafka_shim_class, kafka_shim_session):
        assert partitions(kafka_shim_class) == 3

@pytest.mark.kafka_shim(num_partitions=2)
def test_has_it_by_its_options(kafka_shim_session):
    assert partitions(kafka_shim_session) == 2
"""


def run(folder: Path, suite: str, *more: str, plugins: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run a suite with the plugin alone."""
    (folder / "test_suite.py").write_text(suite)
    names = [word for plugin in ("kafka_shim.pytest_plugin", *plugins) for word in ("-p", plugin)]
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", *names, "--strict-markers", "-p", "no:cacheprovider"]
    command.append(f"--basetemp={folder / 'inner'}")
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    root = Path(__file__).resolve().parents[2]
    return subprocess.run(
        [*command, *more, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
        timeout=60,
        env=environment,
    )


@pytest.mark.parametrize(
    ("suite", "count"),
    [(OPTIONS, 3), pytest.param(SCOPES, 5, marks=pytest.mark.slow), (TOPICS, 3), (MET_MARKS, 3)],
    ids=["options", "scopes", "topics", "met marks"],
)
def test_suites_pass(tmp_path: Path, suite: str, count: int):
    done = run(tmp_path, suite)
    assert f"{count} passed" in done.stdout, done.stdout + done.stderr


def test_marks_that_cannot_be_met_are_told(tmp_path: Path):
    done = run(tmp_path, WRONG_MARKS)
    assert "needs one of the fixtures kafka_shim, kafka_shim_class" in done.stdout
    told = [line for line in done.stdout.splitlines() if line.startswith("E ")]  # the summary cuts lines, or does not
    assert sum("UsageError: the mark kafka_topics names topics: kafka_topics(" in line for line in told) == 2
    assert "the mark kafka_shim takes arguments with names alone" in done.stdout
    assert "topic t has 3 partitions, not 2" in done.stdout
    assert "1 passed" in done.stdout


def test_a_mark_that_a_shared_broker_does_not_have_fails_its_test(tmp_path: Path):
    """It would run without its options, and nobody would notice."""
    done = run(tmp_path, SHARED_MARKS)
    for line in (
        "the mark kafka_shim of a test does nothing for kafka_shim_module: mark the module, or take kafka_shim",
        "the mark kafka_shim of a test does nothing for kafka_shim_class: mark the class, or take kafka_shim",
        "the mark kafka_shim of a test does nothing for kafka_shim_session: kafka_shim_options has theirs, or take",
    ):
        assert line in done.stdout, done.stdout
    assert "3 failed, 2 passed" in done.stdout


@pytest.mark.slow
def test_workers_have_brokers_of_their_own(tmp_path: Path):
    suite = SCOPES + "\n\n@pytest.mark.parametrize('number', range(6))\ndef test_many(kafka_shim_session, number):\n"
    suite += "    kafka_shim_session.ensure_topic(f'only-{number}')\n"
    done = run(tmp_path, suite, "-n", "2", "--dist", "loadscope", plugins=("xdist",))
    assert "11 passed" in done.stdout, done.stdout + done.stderr


def test_the_plugin_loads_nothing_of_the_broker():
    code = (
        "import sys, kafka_shim.pytest_plugin; print([name for name in sys.modules if name.startswith('kafka_shim.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['kafka_shim.pytest_plugin']"
