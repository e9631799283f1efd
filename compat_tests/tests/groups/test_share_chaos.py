"""A share group under chaos: members come, go, vanish and fall silent, and the broker is killed. The history checker
judges what they saw."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim.compat.groups.share_chaos import DELIVERY_LIMIT, LOCK_MS, SETTINGS, ShareChaos
from kafka_shim.history import share_operations
from kafka_shim.history.share_checker import check
from kafka_shim.targets import make


def chaos(folder: Path, seed: int, duration_s: float, least_kills: int) -> None:
    with make("shim", settings=SETTINGS) as target:
        run = ShareChaos(target, seed)
        try:
            history = run.run(duration_s, least_kills)
        finally:
            with (folder / "history.jsonl").open("w") as file:
                share_operations.write(run.history, file)
    report = check(history, delivery_limit=DELIVERY_LIMIT, lock_ms=LOCK_MS)
    text = "\n".join([f"seed {seed}, {run.kills} kills, {folder}", *report.lines()])
    print(text)
    assert report.is_clean, text
    assert min(report.accepted, report.released, report.rejected) > 5, text
    assert report.unclear <= report.sent / 100, text


@pytest.mark.timeout(300)
def test_every_record_is_acknowledged_by_those_who_may(tmp_path: Path) -> None:
    chaos(tmp_path, 3, 20, 1)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_every_record_is_acknowledged_by_those_who_may_for_long(tmp_path: Path) -> None:
    chaos(tmp_path, 4, 300, 20)
