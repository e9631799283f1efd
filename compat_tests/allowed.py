"""The intended differences between the shim and Apache Kafka: one line each, with its reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.compat.runner import Difference


@dataclass(frozen=True)
class Allowed:
    """An intended difference. `scenario` and `where` are patterns: of the scenario's name, and of the difference's text
    up to the values.
    """

    scenario: str
    where: str
    reason: str


ALLOWED: tuple[Allowed, ...] = (
    Allowed(
        "a9-what-is-cached-after-a-kill",
        r"Produce v12 answer\.(error_code|base_offset|log_append_time_ms|log_start_offset)",
        "Kafka snapshots producers while it recovers and keeps one batch of each; the shim keeps the five that it "
        "replays, so that what was in flight when the broker died is not written twice",
    ),
)


def reason_for(scenario: str, difference: Difference) -> str | None:
    """Returns why this difference is allowed, or None if it is not."""
    where = f"{difference.what}{difference.path}"
    for row in ALLOWED:
        if re.fullmatch(row.scenario, scenario) and re.fullmatch(row.where, where):
            return row.reason
    return None
