"""Failures on purpose, for tests of the sink: a task that fails or dies at a named moment.

``KAFKA_SHIM_SINK_FAULT=MOMENT:ACTION:BATCH[:TIMES]`` in the environment of the driver, for example
``after_send:raise:3``. Moments are ``after_send``, ``after_offsets`` and ``after_commit``; actions ``raise`` and
``kill`` (SIGKILL of the worker); the batch is a number or ``*``. Only the first attempt of a task is hit, and with
TIMES (and ``KAFKA_SHIM_SINK_FAULT_COUNTER``, a file that all workers share) so often at most.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

MOMENTS = ("after_send", "after_offsets", "after_commit")
VARIABLE = "KAFKA_SHIM_SINK_FAULT"
COUNTER = "KAFKA_SHIM_SINK_FAULT_COUNTER"


class InjectedError(Exception):
    """A task failed because a test asked for it."""


def reach(moment: str, batch_id: int, task: int) -> None:
    """Raises InjectedError or dies when the environment says so; else does nothing."""
    plan = os.environ.get(VARIABLE)
    if not plan:
        return
    from pyspark import TaskContext

    context = TaskContext.get()
    wanted, action, batch, *times = plan.split(":")
    if wanted != moment or batch not in ("*", str(batch_id)) or context is None or context.attemptNumber() > 0:
        return
    if times and not _counts(Path(os.environ[COUNTER]), int(times[0])):
        return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise InjectedError(f"batch {batch_id}, task {task}: {moment}")


def _counts(path: Path, limit: int) -> bool:
    """Takes one of ``limit`` files; False when all are taken."""
    for number in range(limit):
        try:
            path.with_name(f"{path.name}.{number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        return True
    return False
