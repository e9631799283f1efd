"""A sample of the scenarios in Kafka's container: they pass there and agree with the shim; `make compat` runs all."""

from __future__ import annotations

import time

import pytest

from kafka_shim.compat import runner
from kafka_shim.compat.report import Report
from kafka_shim.compat.scenarios import Scenario, load

# One that kills its broker, beside those that only ask.
KILLS = "b12-transactions-come-back-after-a-kill"


def sample() -> list[Scenario]:
    return [
        each
        for name, each in load().items()
        if name == KILLS or (each.is_smoke and not each.is_alone and not each.client)
    ]


@pytest.mark.timeout(900)
def test_shim_and_kafka_in_a_container_agree(containers: None) -> None:
    chosen, kinds = sample(), ["shim", "kafka-container"]
    began = time.monotonic()
    results = runner.run(chosen, kinds)
    told = Report(chosen, kinds, results, time.monotonic() - began)
    print(told.text())
    assert told.is_good, told.text()
    assert len(told.verdicts) == len(chosen)
