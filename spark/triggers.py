"""Progress of a streaming query: one line for each trigger, a summary at the end, throughput and lag as a plot."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from datetime import datetime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from pyspark.sql.streaming import StreamingQuery

POLL_S = 0.2


@dataclass(frozen=True)
class Trigger:
    """One micro-batch. ``lag``: offsets between its end and the end of the topics when it was planned."""

    batch_id: int
    at_ms: int
    rows: int
    duration_ms: int
    lag: int

    @property
    def rows_per_s(self) -> float:
        return self.rows / max(self.duration_ms, 1) * 1000

    def line(self) -> str:
        return (
            f"batch {self.batch_id}: {self.rows:,} rows in {self.duration_ms:,} ms "
            f"({self.rows_per_s:,.0f} rows/s), lag {self.lag:,}"
        )


@dataclass
class Summary:
    """All triggers of a run that processed data."""

    triggers: list[Trigger] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def rows(self) -> int:
        return sum(trigger.rows for trigger in self.triggers)

    def line(self) -> str:
        return (
            f"{len(self.triggers)} batches, {self.rows:,} rows in {self.seconds:.1f} s "
            f"({self.rows / max(self.seconds, 0.001):,.0f} rows/s), "
            f"largest lag {max((trigger.lag for trigger in self.triggers), default=0):,}"
        )

    def write(self, path: Path) -> None:
        """Writes the triggers as JSON lines, for later plots."""
        path.write_text("".join(json.dumps(asdict(trigger)) + "\n" for trigger in self.triggers))


def from_progress(progress: Any) -> Trigger:
    """From Spark's own report of a micro-batch."""
    at = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00"))
    return Trigger(
        batch_id=int(progress["batchId"]),
        at_ms=int(at.timestamp() * 1000),
        # The sum is Spark's `numInputRows`, which Spark Connect leaves out.
        rows=sum(int(source["numInputRows"]) for source in progress["sources"]),
        duration_ms=int(progress["durationMs"].get("triggerExecution", 0)),
        lag=sum(_lag(source) for source in progress["sources"]),
    )


def _lag(source: Any) -> int:
    end, latest = _offsets(source["endOffset"]), _offsets(source["latestOffset"])
    return sum(max(offset - end.get(where, offset), 0) for where, offset in latest.items())


def _offsets(given: Any) -> dict[tuple[str, str], int]:
    """Returns offsets by topic and partition. Spark passes a mapping or its JSON, and nothing before the
    first batch.
    """
    if isinstance(given, str):
        given = json.loads(given) if given.startswith("{") else {}
    if not isinstance(given, dict):
        return {}
    return {(topic, part): int(offset) for topic, parts in given.items() for part, offset in parts.items()}


def follow(
    query: StreamingQuery,
    echo: Callable[[str], None] | None = None,
    timeout_s: float | None = None,
    quiet: bool = False,
) -> Summary:
    """Prints a line (to stderr) for each micro-batch until the query ends. Raises the error that the query failed with.

    After ``timeout_s`` the query is stopped between two batches or within one; its checkpoint makes that harmless.
    """
    say = echo or (lambda line: print(line, file=sys.stderr, flush=True))
    summary = Summary()
    began = time.monotonic()
    seen = -1
    while True:
        ended = query.awaitTermination(POLL_S)  # type: ignore[arg-type] # it takes fractions of a second
        last = query.lastProgress
        # Reading all of them is expensive, so do it only if there is a new one.
        for progress in query.recentProgress if last is not None and last["batchId"] > seen else ():
            trigger = from_progress(progress)
            # A trigger without data has the id of the next batch.
            if trigger.batch_id > seen and (trigger.rows or "addBatch" in progress["durationMs"]):
                seen = trigger.batch_id
                summary.triggers.append(trigger)
                if not quiet:
                    say(trigger.line())
        if ended:
            break
        if timeout_s is not None and time.monotonic() - began > timeout_s:
            query.stop()
    summary.seconds = time.monotonic() - began
    return summary
