"""Writes families of the broker's own in the text format of Prometheus, a third of what `generate_latest` takes.

Names and labels of the broker's own need no check; values of labels are escaped. The result is the same, byte by
byte (a test compares): what others named goes through the library.
"""

from __future__ import annotations

from prometheus_client.utils import floatToGoString

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.core import Metric

OWN = "kafka_"


def text_of(families: Iterable[Metric]) -> bytes:
    """Returns the text of families whose names begin with OWN."""
    lines = []
    for family in families:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        lines.append(f"# HELP {name} {family.documentation}\n# TYPE {name} {family.type}\n")
        for sample in family.samples:
            labels = ""
            if sample.labels:
                labels = ",".join([f'{key}="{_escaped(sample.labels[key])}"' for key in sorted(sample.labels)])
                labels = f"{{{labels}}}"
            lines.append(f"{sample.name}{labels} {floatToGoString(sample.value)}\n")  # type: ignore[no-untyped-call]
    return "".join(lines).encode()


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return value
