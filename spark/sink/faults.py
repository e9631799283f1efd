"""Failures on purpose, for tests of the sink: a task that fails or dies at a named moment.

``KAFKA_SHIM_SINK_FAULT=MOMENT:ACTION:BATCH[,...]`` in the environment of the driver, for example ``after_send:raise:3``.
Moments are ``after_send``, ``after_offsets`` and ``after_commit``; actions ``raise`` and ``kill`` (SIGKILL of the
worker); the batch is a number or ``*``. Only the first attempt of a task is hit.
"""

from __future__ import annotations

import os
import signal

MOMENTS = ("after_send", "after_offsets", "after_commit")
ACTIONS = ("raise", "kill")
VARIABLE = "KAFKA_SHIM_SINK_FAULT"


class InjectedError(Exception):
    """A task failed because a test asked for it."""


def reach(moment: str, batch_id: int, task: int) -> None:
    """Raises InjectedError or dies when the environment says so; else does nothing."""
    plan = os.environ.get(VARIABLE)
    if not plan:
        return
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None or context.attemptNumber() > 0:
        return
    for fault in plan.split(","):
        wanted, action, batch = fault.split(":")
        if wanted != moment or batch not in ("*", str(batch_id)):
            continue
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise InjectedError(f"batch {batch_id}, task {task}: {moment}")
