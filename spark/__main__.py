"""``kafka-shim-spark JOB ...``, and ``python -m kafka_shim.spark JOB ...``. Jobs and click take long to import, and
Ctrl-C ends the command meanwhile too."""

from __future__ import annotations

import sys

from kafka_shim.cli import ended_by_interrupts


def start() -> int:
    """Run the job that this process's arguments name. Returns the exit status, or exits with it."""
    return ended_by_interrupts(_run)


def _run() -> int:
    from kafka_shim.spark.command_line import main

    main(prog_name="kafka-shim-spark")
    return 0


if __name__ == "__main__":
    sys.exit(start())
