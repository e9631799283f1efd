"""``make compat``: every behaviour on every target, how they agree, and the report.

python -m kafka_shim.compat [--targets shim,kafka-native,kafka-container] [--only PATTERN] [--long] [--report DIR]
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

from kafka_shim.compat import report, runner
from kafka_shim.compat.scenarios import load
from kafka_shim.targets import KINDS, engine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent


def usual_targets(long: bool) -> str:
    """Both brokers; in the long form also Apache Kafka in a container, where containers run."""
    if not long:
        return "shim,kafka-native"
    if engine.unavailable():
        print(f"without kafka-container: {engine.unavailable()}", flush=True)
        return "shim,kafka-native"
    return "shim,kafka-native,kafka-container"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kafka_shim.compat", description=__doc__.splitlines()[0])
    parser.add_argument("--targets", default="", help="kinds, the first is compared with each other")
    parser.add_argument("--only", default="", help="a regular expression for scenarios' names")
    parser.add_argument("--long", action="store_true", help="also the slow ones")
    parser.add_argument("--report", type=Path, default=ROOT / "build" / "compat", help="folder of the report")
    parser.add_argument("--readme", action="store_true", help="write the summary into README.md")
    parser.add_argument("--show", action="store_true", help="print the transcripts")
    options = parser.parse_args(words)
    try:
        wanted = re.compile(options.only)
    except re.error as error:
        parser.error(f"--only {options.only!r} is no regular expression: {error}")
    chosen = [each for name, each in load().items() if wanted.search(name) and (options.long or not each.is_long)]
    if not chosen:
        parser.error(
            f"--only {options.only!r} is in the name of no scenario{'' if options.long else ' without --long'}"
        )
    kinds = (options.targets or usual_targets(options.long)).split(",")
    for kind in kinds:
        if kind.partition("=")[0] not in KINDS:
            parser.error(f"--targets: there is no {kind!r}: it is one of {', '.join(KINDS)}")
    began = time.monotonic()

    def progress(name: str, kind: str, outcome: runner.Outcome) -> None:
        mark = {"passed": "ok", "failed": "FAILED"}.get(outcome.status, "-")
        print(f"{mark:6} {kind:16} {outcome.seconds:6.2f} s  {name}  {outcome.reason}", flush=True)

    results = runner.run(chosen, kinds, progress)
    told = report.Report(chosen, kinds, results, time.monotonic() - began)
    told.write(options.report)
    if options.readme and (options.only or options.targets):
        print("README.md keeps its summary: it is of all scenarios on the usual targets")
    elif options.readme:
        report.write_readme(ROOT / "README.md", told)
    if options.show:
        for name, by_kind in results.items():
            for kind, outcome in by_kind.items():
                print(f"\n{name} on {kind}")
                for what, request, answer in outcome.steps:
                    print(f"  {what}\n    {request}\n    {answer}")
    print(told.text())
    return 0 if told.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
