"""`/api/metrics`: the broker's metrics as sums, read from its `/metrics`; the page draws how they change."""

from __future__ import annotations

import re
import urllib.request

from kafka_shim.wire_client import WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGEST_ANSWER_BYTES = 16 << 20
PATIENCE_S = 5.0
# Names that do not grow with the number of topics, summed over their labels.
_SAMPLE = re.compile(r"(?m)^(kafka_[a-z0-9_]+|process_[a-z_]+)(?:\{[^\n]*\})? (-?[0-9][0-9.e+-]*)$")


def read(url: str, bearer_token: str = "") -> dict[str, Any]:
    """Return the sums by name. Raises WireClientError if nobody answers at `url`."""
    headers = {"Authorization": f"Bearer {bearer_token}"} if bearer_token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE_S) as answer:
            text = answer.read(LARGEST_ANSWER_BYTES).decode(errors="replace")
    except (OSError, ValueError) as error:
        raise WireClientError(f"no metrics at {url}: {error}") from None
    return {"sums": sums_of(text)}


def sums_of(text: str) -> dict[str, float]:
    """Return the sums by name of metrics in the text format of Prometheus, without buckets."""
    found: dict[str, float] = {}
    for name, value in _SAMPLE.findall(text):
        if not name.endswith(("_bucket", "_created")):
            found[name] = found.get(name, 0.0) + float(value)
    return found
