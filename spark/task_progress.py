"""Progress of a batch: prints, while it runs, how many tasks of the active stages are done."""

from __future__ import annotations

import contextlib
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pyspark.sql import SparkSession

EVERY_S = 2.0


@contextlib.contextmanager
def told(
    session: SparkSession, what: str, echo: Callable[[str], None] | None = None, every_s: float = EVERY_S
) -> Iterator[None]:
    """Prints (to stderr) the progress of the active stages while the block runs, at most every ``every_s`` and only if
    it has changed.

    Ended stages are dropped. A job that ends before the first line is due prints nothing, and neither does one of Spark
    Connect, which shows no stages.
    """
    from pyspark.sql.utils import is_remote

    if is_remote():
        yield
        return
    say = echo or (lambda line: print(line, file=sys.stderr, flush=True))
    tracker: Any = session.sparkContext.statusTracker()
    is_over = threading.Event()

    def tell() -> None:
        last = ""
        while not is_over.wait(every_s):
            line = _line(tracker)
            if line and line != last:
                say(f"{what}: {line}")
                last = line

    teller = threading.Thread(target=tell, name="task progress")
    teller.start()
    try:
        yield
    finally:
        is_over.set()
        teller.join()


def _line(tracker: Any) -> str:
    stages = [tracker.getStageInfo(number) for number in sorted(tracker.getActiveStageIds())]
    return ", ".join(
        f"stage {stage.stageId}: {stage.numCompletedTasks} of {stage.numTasks} tasks"
        for stage in stages
        if stage is not None
    )
