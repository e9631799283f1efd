"""Writes docs/api-coverage.md: every API that Apache Kafka 4.3.1 advertises, and what of it is served here.

python scripts/api_coverage.py            write the page
python scripts/api_coverage.py --check    exit 1 when the page is not what would be written
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from kafka_shim.api import APIS, TELEMETRY  # noqa: E402
from kafka_shim.protocol.api_keys import API_KEYS  # noqa: E402

PAGE = ROOT / "docs" / "api-coverage.md"
# Kafka advertises Produce from 0 for old librdkafka, and refuses below 3 (KAFKA-18659).
PRODUCE = 0

HEAD = """\
# API coverage

Written by `scripts/api_coverage.py` from the list in `shim/api/__init__.py` and the notes at the head of each handler;
a test compares it with what a running Apache Kafka 4.3.1 advertises.

| key | API | Kafka 4.3.1 | here | not implemented |
| ---: | --- | --- | --- | --- |
"""


def kafka_ranges() -> dict[int, tuple[int, int]]:
    """Returns (first, last) version of each API that a Kafka 4.3.1 broker advertises, without telemetry."""
    ranges = {}
    for key, (_, first, last, _, last_is_unstable, listeners, _) in API_KEYS.items():
        if "broker" in listeners and key not in TELEMETRY:
            ranges[key] = (0 if key == PRODUCE else first, last - last_is_unstable)
    return ranges


def our_ranges() -> dict[int, tuple[int, int]]:
    """Returns the same for this broker."""
    return {api.key: (api.advertised_min, api.last) for api in APIS if api.key not in TELEMETRY}


def gaps(key: int) -> str:
    """Returns what the handler's contract lists as not implemented."""
    api = next((api for api in APIS if api.key == key), None)
    if api is None:
        return "everything"
    text = " ".join((import_module(api.module_name).__doc__ or "").split())
    return "; ".join(found.rstrip(".") for found in re.findall(r"Not implemented: (.*?)(?:\.(?= |$)|$)", text))


def page() -> str:
    """Returns the whole page."""
    ours, theirs = our_ranges(), kafka_ranges()
    rows = []
    for key, versions in sorted(theirs.items()):
        here = _text(ours[key]) if key in ours else ""
        rows.append(f"| {key} | {API_KEYS[key][0]} | {_text(versions)} | {here} | {gaps(key)} |\n")
    served = len(ours.keys() & theirs.keys())
    return f"{HEAD}{''.join(rows)}\n{served} of {len(theirs)} APIs are served.\n"


def _text(versions: tuple[int, int]) -> str:
    return str(versions[0]) if versions[0] == versions[1] else f"{versions[0]}-{versions[1]}"


def main() -> int:
    """Writes or checks the page. Returns the exit status."""
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text)
        return 0
    if PAGE.read_text() == text:
        return 0
    sys.stderr.write("docs/api-coverage.md is out of date: run python scripts/api_coverage.py\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
