"""How brokers for tests are started."""

from __future__ import annotations

from typing import Any

import pytest

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
