"""The soak in its two lengths."""

from __future__ import annotations

import pytest

from kafka_shim.compat.transactions.soak import soak


@pytest.mark.timeout(300)
def test_a_minute_of_commits_aborts_and_kills() -> None:
    print(soak(60, seed=11))


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_ten_minutes_of_commits_aborts_and_kills() -> None:
    print(soak(600, seed=12))
