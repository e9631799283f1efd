"""The tests of other clients pass: the short lists on the shim, the long ones on the shim and on Apache Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim.compat.upstream import SUITES, load
from kafka_shim.compat.upstream.base import Suite, Unavailable
from kafka_shim.compat.upstream.runner import run


def prepared(name: str) -> Suite:
    """Skips, with what is missing, where neither the cache nor a registry has the client's tests."""
    suite = load(name)
    try:
        suite.prepare()
    except Unavailable as missing:
        pytest.skip(str(missing))
    return suite


@pytest.mark.timeout(900)  # the first run compiles the Go suites
@pytest.mark.parametrize("name", SUITES)
def test_what_is_listed_passes_on_the_shim(name: str, tmp_path: Path) -> None:
    result = run(prepared(name), "shim", tmp_path, long=False)
    print(result.text())
    assert len(result.outcomes) > 20
    assert result.is_good, result.text()


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["shim", "kafka-native"])
@pytest.mark.parametrize("name", SUITES)
def test_the_long_list_passes(name: str, kind: str, tmp_path: Path) -> None:
    result = run(prepared(name), kind, tmp_path, long=True)
    print(result.text())
    assert result.is_good, result.text()
