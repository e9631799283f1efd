"""``python -m kafka_shim.spark JOB ...``."""

from __future__ import annotations

from kafka_shim.spark.command_line import main

main(prog_name="kafka-shim-spark")
