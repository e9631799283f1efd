"""``make bench``: the shim, Apache Kafka and the yardstick side by side on this machine, in turn, and the tables with
ratios.

Parts: start-up; produce and consume with 1 to 64 clients; transactions of Java producers; groups; TLS and ACLs; what
grows with use; what stops the loop. `rounds` says how a figure is taken, `machine` what its two states are.
``--minutes`` fits the whole run into about so many; ``--quick`` does small rounds of the parts that need the least
time. Every round is in the JSON, from which ``scripts/bench_tables.py`` writes the tables of README and
docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from bench import machine, parts, report
from bench.client_process import ROOT
from bench.rounds import LEAST_ROUNDS, Pace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What a run of all parts takes on two quiet CPUs with a pace, found by doing it.
FULL, FULL_MINUTES = Pace(first_s=5.0), 45.0
NOT_QUICK = ("scale", "loop")
QUICK = Pace(seconds=0.3, megabytes=200, rounds=3, warm_up_s=0.6, case_s=15, is_small=True, first_s=1.0)


def pace_for(minutes: float) -> Pace:
    """A pace that fits all parts into about so many minutes."""
    share = minutes / FULL_MINUTES
    return Pace(
        seconds=max(FULL.seconds * share, 0.1),
        megabytes=max(int(FULL.megabytes * share), 20),
        rounds=FULL.rounds if share >= 1 else LEAST_ROUNDS,
        warm_up_s=max(FULL.warm_up_s * share, 0.2),
        case_s=FULL.case_s * share,
        is_small=share < 1,
        first_s=FULL.first_s * share,
    )


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small rounds, without what grows with use")
    parser.add_argument("--minutes", type=float, help=f"about so long; {FULL_MINUTES:g} without it")
    parser.add_argument("--rounds", type=int, help="rounds after the warm-up")
    parser.add_argument("--seconds", type=float, help="length of a step")
    parser.add_argument("--megabytes", type=int, help="data of a throughput step")
    parser.add_argument("--warm-up", type=float, metavar="SECONDS", help="least warm-up of each side in each case")
    parser.add_argument("--only", action="append", choices=parts.PARTS, help="one part; may be given several times")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "bench.json", help="where the figures go")
    return parser.parse_args(words)


def pace_of(options: argparse.Namespace) -> Pace:
    pace = QUICK if options.quick else pace_for(options.minutes or FULL_MINUTES)
    return replace(
        pace,
        seconds=options.seconds or pace.seconds,
        megabytes=options.megabytes or pace.megabytes,
        rounds=options.rounds or pace.rounds,
        warm_up_s=options.warm_up or pace.warm_up_s,
    )


def main() -> int:
    options = arguments()
    names = options.only or [name for name in parts.PARTS if not (options.quick and name in NOT_QUICK)]
    pace = pace_of(options)
    began = time.monotonic()
    figures: dict[str, Any] = {
        "began": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": machine.description(),
        "settings": asdict(pace),
        "parts": names,
        "cases": {},
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)

    def keep(name: str, result: Any) -> None:
        """Writes the file after each case: a run that is stopped has what it measured."""
        if isinstance(result, dict) and "rounds" in result:
            figures["cases"][name] = result
        else:
            figures[name] = result
        figures["minutes"] = round((time.monotonic() - began) / 60, 1)
        options.json.write_text(json.dumps(rounded(figures), indent=1) + "\n")

    failed = parts.run(names, pace, keep)
    keep("failed", failed)
    print(report.page(rounded(figures)))
    print(f"{figures['minutes']} minutes; every round: {options.json}", file=sys.stderr)
    return 1 if failed else 0


def rounded(value: Any) -> Any:
    """Four digits of each figure, which is more than any is worth, so that the file stays readable."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


if __name__ == "__main__":
    sys.exit(main())
