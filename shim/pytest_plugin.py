"""Fixtures with a broker for each test, class, module or session, in memory, on a free port; nothing to install but the
package itself.

    def test_round_trip(kafka_shim):
        kafka_shim.produce("orders", "one")
        assert [record.text for record in kafka_shim.consume("orders")] == ["one"]

    @pytest.mark.kafka_topics("orders", "payments", partitions=3)
    @pytest.mark.kafka_shim(clock="virtual")
    def test_with_options(kafka_shim): ...

`kafka_shim_class`, `kafka_shim_module` and `kafka_shim_session` are shared; their `reset()` takes milliseconds.
`kafka_shim_factory(**options)` starts more. The arguments of the marker `kafka_shim` are those of `kafka_shim.Broker`;
for shared brokers the fixture `kafka_shim_options` may be overridden. Nothing of the broker is imported before a test
asks.
"""

from __future__ import annotations

from contextlib import ExitStack
from weakref import WeakKeyDictionary

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from kafka_shim.embedded import Broker

    # The fixtures are functions to mypy, which runs without pytest's plugin.
    Options = Mapping[str, Any]

# The fixture of a test's own broker, and the shared ones.
OWN = "kafka_shim"
SHARED = ("kafka_shim_class", "kafka_shim_module", "kafka_shim_session")
FIXTURES = (OWN, *SHARED)
# The marks and the options that each running broker of these fixtures was started with.
_started: WeakKeyDictionary[Broker, tuple[list[pytest.Mark], Options]] = WeakKeyDictionary()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "kafka_shim(**options): arguments of the broker behind the fixture kafka_shim")
    config.addinivalue_line(
        "markers",
        "kafka_topics(*names, partitions=1, **options): topics that the test's broker has when the test starts",
    )


@pytest.fixture(scope="session")
def kafka_shim_options() -> Options:
    """Arguments of every broker of these fixtures; override it, with scope="session", in a conftest.py."""
    return {}


@pytest.fixture
def kafka_shim(request: pytest.FixtureRequest, kafka_shim_options: Options) -> Iterator[Broker]:
    """A running `kafka_shim.Broker` of this test, which is stopped after it."""
    yield from _broker(request, kafka_shim_options)


@pytest.fixture(scope="class")
def kafka_shim_class(request: pytest.FixtureRequest, kafka_shim_options: Options) -> Iterator[Broker]:
    """A running `kafka_shim.Broker` that the tests of a class share."""
    yield from _broker(request, kafka_shim_options)


@pytest.fixture(scope="module")
def kafka_shim_module(request: pytest.FixtureRequest, kafka_shim_options: Options) -> Iterator[Broker]:
    """A running `kafka_shim.Broker` that the tests of a module share."""
    yield from _broker(request, kafka_shim_options)


@pytest.fixture(scope="session")
def kafka_shim_session(request: pytest.FixtureRequest, kafka_shim_options: Options) -> Iterator[Broker]:
    """A running `kafka_shim.Broker` that all tests share; with pytest-xdist, those of one worker."""
    yield from _broker(request, kafka_shim_options)


@pytest.fixture
def kafka_shim_factory(kafka_shim_options: Options) -> Iterator[Callable[..., Broker]]:
    """Starts brokers: `kafka_shim_factory(**options)` returns a running `kafka_shim.Broker`. Each has its own cluster,
    and is stopped after the test."""
    from kafka_shim.embedded import Broker

    with ExitStack() as brokers:
        yield lambda **options: brokers.enter_context(Broker(**{**kafka_shim_options, **options}))


def _broker(request: pytest.FixtureRequest, given: Options) -> Iterator[Broker]:
    from kafka_shim.embedded import Broker

    options = dict(given)
    marks = list(request.node.iter_markers(OWN))
    for marker in reversed(marks):
        if marker.args:
            raise pytest.UsageError(
                "the mark kafka_shim takes arguments with names alone: kafka_shim(num_partitions=3)"
            )
        options.update(marker.kwargs)
    with Broker(**options) as broker:
        _started[broker] = marks, options
        _make_topics(request.node, broker)
        yield broker


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """A shared broker gets the topics of the test that is about to run; its options it cannot get."""
    arguments = getattr(item, "funcargs", {})
    if OWN not in arguments:
        _require_met(item, {name: arguments[name] for name in SHARED if name in arguments})
    if item.get_closest_marker("kafka_topics") is None:
        return
    brokers = [arguments[name] for name in FIXTURES if name in arguments]
    if not brokers and "kafka_shim_factory" not in getattr(item, "fixturenames", ()):
        pytest.fail(f"the mark kafka_topics needs one of the fixtures {', '.join(FIXTURES)}", pytrace=False)
    for broker in brokers:
        _make_topics(item, broker)


def _require_met(item: pytest.Item, shared: Mapping[str, Broker]) -> None:
    """Fail a test with a mark that none of its shared brokers, which were started for others too, has."""
    # A fixture with the name of one of these may return a broker of its own, and take the marks itself.
    known = [_started[broker] for broker in shared.values() if broker in _started]
    if not known or len(known) < len(shared):
        return
    name = next(iter(shared))
    whose = name.rpartition("_")[2]
    advice = "kafka_shim_options has theirs" if whose == "session" else f"mark the {whose}"
    if not all(any(_is_met(mark, *each) for each in known) for mark in item.iter_markers(OWN)):
        pytest.fail(f"the mark kafka_shim of a test does nothing for {name}: {advice}, or take {OWN}", pytrace=False)


def _is_met(mark: pytest.Mark, marks: list[pytest.Mark], options: Options) -> bool:
    """Whether a broker was started with a mark, or has its options anyhow."""
    return any(mark is one for one in marks) or mark.kwargs.items() <= options.items()


def _make_topics(node: Any, broker: Broker) -> None:
    for marker in node.iter_markers("kafka_topics"):
        if not marker.args or not all(isinstance(name, str) for name in marker.args):
            raise pytest.UsageError('the mark kafka_topics names topics: kafka_topics("orders", partitions=3)')
        for name in marker.args:
            broker.ensure_topic(name, **marker.kwargs)
