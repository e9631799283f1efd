"""The fixture `kafka_shim`: a broker of its own for each test that asks for it, in memory, on a free port.

    def test_round_trip(kafka_shim):
        producer = KafkaProducer(bootstrap_servers=kafka_shim.bootstrap_servers)

    @pytest.mark.kafka_shim(num_partitions=3, clock="virtual")
    def test_with_options(kafka_shim): ...

The marker's arguments are those of `kafka_shim.Broker`. Nothing of the broker is imported before a test asks.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_shim.embedded import Broker


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "kafka_shim(**options): arguments of the broker behind the fixture kafka_shim")


@pytest.fixture
def kafka_shim(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A running `kafka_shim.Broker`, which is stopped after the test."""
    from kafka_shim.embedded import Broker

    options: dict[str, object] = {}
    for marker in reversed(list(request.node.iter_markers("kafka_shim"))):
        options.update(marker.kwargs)
    with Broker(**options) as broker:  # type: ignore[arg-type]
        yield broker
