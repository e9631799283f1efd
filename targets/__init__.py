"""Brokers for tests, scenarios and benchmarks, behind one interface (``base.Target``).

``make("shim")`` returns a target that is not started; ``with make("kafka-native", settings={...}) as target`` starts
and stops it. The module of a kind is imported on demand.
"""

from __future__ import annotations

from importlib import import_module

from kafka_shim.targets.base import Power, Target, TargetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["KINDS", "Power", "Target", "TargetError", "make"]

KINDS = {
    "shim": ("shim_process", "ShimProcess"),
    "shim-embedded": ("shim_embedded", "ShimEmbedded"),
    "kafka-native": ("kafka_native", "KafkaNative"),
    "kafka-container": ("kafka_container", "KafkaContainer"),
    "shim-container": ("shim_container", "ShimContainer"),
    "external": ("external", "External"),
}


def make(
    kind: str, settings: Mapping[str, str] | None = None, data_dir: Path | None = None, *, is_measured: bool = False
) -> Target:
    """Returns a target of one of KINDS, not started. `settings` are Kafka broker configs that override
    ``base.SETTINGS``.

    Without `data_dir` the target creates a temporary directory and removes it at the end. `kind` may include an
    address: ``external=host:port``. With `is_measured`, Apache Kafka's JVM runs with its own defaults instead of the
    options for short tests.
    """
    name, _, address = kind.partition("=")
    if name not in KINDS:
        raise TargetError(f"unknown target {name!r}: one of {', '.join(KINDS)}")
    module, class_name = KINDS[name]
    made: type[Target] = getattr(import_module(f"kafka_shim.targets.{module}"), class_name)
    target = made(settings=settings, data_dir=data_dir)
    if address:
        target.bootstrap = address
    if is_measured:
        target.prepare_for_measuring()
    return target
