"""How brokers for tests are started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_shim.targets.kafka_native import LONG_SESSION, SHORT_SESSION, KafkaNative
from kafka_shim.targets.shim_process import ShimProcess


class _Spawned(Exception):
    """The process would start now."""


def test_a_shim_of_its_own_process_finds_the_modules_that_this_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the package came first: where it is installed, its `http` stood in the way of Python's own, and a
    broker with a listener for metrics did not start."""
    given: dict[str, Any] = {}

    def spawn(_target: ShimProcess, _command: list[str], **options: Any) -> None:
        given.update(options)
        raise _Spawned

    monkeypatch.setattr(ShimProcess, "_spawn", spawn)
    monkeypatch.setenv("PYTHONPATH", "/mine")
    target = ShimProcess()
    with pytest.raises(_Spawned):
        target.start()
    target.close()
    assert given["environment"]["PYTHONPATH"] == "/mine"


def session_ms(target: KafkaNative) -> str:
    """The session that a broker would start with now."""
    target.prepare()
    lines = target.properties_path.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)["broker.session.timeout.ms"]


@pytest.mark.java
@pytest.mark.timeout(600)
def test_kafkas_session_is_short_where_a_killed_broker_waits_for_its_end(tmp_path: Path) -> None:
    """With the short one a pause of 5 s made topics leaderless, and new ones INVALID_REPLICATION_FACTOR."""
    long_ms, short_ms = (each["broker.session.timeout.ms"] for each in (LONG_SESSION, SHORT_SESSION))
    target = KafkaNative(data_dir=tmp_path / "data")
    assert session_ms(target) == long_ms
    with target:
        target.restart()
        assert session_ms(target) == short_ms, "it runs, and may be killed"
        target.stop()
        assert session_ms(target) == long_ms
        target.start().kill()
        assert session_ms(target) == short_ms
    assert session_ms(KafkaNative(data_dir=tmp_path / "data")) == short_ms
