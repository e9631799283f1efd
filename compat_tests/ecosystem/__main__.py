"""What people run beside a broker, on the shim and on Apache Kafka.

python -m kafka_shim.compat.ecosystem [--only connect,flink] [--targets shim,kafka-native] [--readme]

The exit status is 0 when every part that could run found the same on all targets; a part that cannot run here counts
only when it was asked for by name.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kafka_shim.compat.ecosystem import PARTS, load, page
from kafka_shim.compat.ecosystem.base import measure
from kafka_shim.compat.upstream.base import Unavailable
from kafka_shim.targets.kafka_jars import ROOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kafka_shim.compat.ecosystem", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="names, with commas; all of them")
    parser.add_argument(
        "--targets", default="shim,kafka-native", help="kinds of brokers; of two for a mirror: shim+shim"
    )
    parser.add_argument("--logs", type=Path, default=ROOT / "build" / "ecosystem", help="folder of the runs' logs")
    parser.add_argument("--readme", action="store_true", help=f"write the rows of {page.PAGE.name}")
    options = parser.parse_args(words)
    targets = options.targets.split(",")
    if options.readme and len(targets) < 2:
        parser.error("--readme writes what a comparison found: it needs two --targets")
    asked_for = [name for name in options.only.split(",") if name]
    if unknown := set(asked_for) - set(PARTS):
        parser.error(f"--only: there is no {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    is_good = True
    rows: dict[str, str] = {}
    for name in asked_for or PARTS:
        part = load(name)
        try:
            part.prepare()
        except Unavailable as missing:
            print(f"{name}: not run: {missing}", flush=True)
            is_good = is_good and not asked_for
            continue
        result = measure(part, targets, options.logs)
        print(result.text(), flush=True)
        is_good = is_good and result.is_same
        rows[name] = page.row(result)
    if options.readme:
        page.write(rows)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
