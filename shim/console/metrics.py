"""`/api/metrics`: the broker's metrics as sums, read from its `/metrics`; the page draws how they change."""

from __future__ import annotations

import re
import urllib.request
from http.client import HTTPException

from kafka_shim.wire_client import WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LARGEST_ANSWER_BYTES = 16 << 20
PATIENCE_S = 5.0
# Names that do not grow with the number of topics, summed over their labels.
_SAMPLE = re.compile(r"(?m)^(kafka_[a-z0-9_]+|process_[a-z_]+)(?:\{[^\n]*\})? (-?[0-9][0-9.e+-]*)$")


def own(read_metrics: Callable[[], bytes]) -> dict[str, Any]:
    """Return the sums by name of the broker that serves the console. Raises WireClientError if its loop does not
    answer."""
    try:
        return {"sums": sums_of(read_metrics().decode())}
    except TimeoutError:
        raise WireClientError("no metrics: the event loop does not answer") from None


def read(url: str) -> dict[str, Any]:
    """Return the sums by name. Raises WireClientError if nobody answers at `url`, or with too much."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            text = answer.read(LARGEST_ANSWER_BYTES + 1)
    except (OSError, ValueError, HTTPException) as error:
        raise WireClientError(f"no metrics at {url}: {error}") from None
    if len(text) > LARGEST_ANSWER_BYTES:
        raise WireClientError(f"the metrics at {url} have more than {LARGEST_ANSWER_BYTES >> 20} MB")
    return {"sums": sums_of(text.decode(errors="replace"))}


def sums_of(text: str) -> dict[str, float]:
    """Return the sums by name of metrics in the text format of Prometheus, without buckets."""
    found: dict[str, float] = {}
    for name, value in _SAMPLE.findall(text):
        if not name.endswith(("_bucket", "_created")):
            found[name] = found.get(name, 0.0) + float(value)
    return found
