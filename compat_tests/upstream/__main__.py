"""Clients' own integration tests against brokers.

python -m kafka_shim.compat.upstream [--suites kafka_python,franz_go] [--targets shim,kafka-native] \
    [--long] [--findings]

What the packages need is fetched by their registries' clients. The exit status is 0 when every listed test passed; a
suite that cannot run here counts only when it was asked for by name.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kafka_shim.compat.upstream import SUITES, findings, load
from kafka_shim.compat.upstream.base import Unavailable
from kafka_shim.compat.upstream.runner import Result, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent.parent


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kafka_shim.compat.upstream", description=__doc__.splitlines()[0])
    parser.add_argument("--suites", default="", help="names, with commas; all of them")
    parser.add_argument("--targets", default="shim,kafka-native", help="kinds of brokers, or external=HOST:PORT")
    parser.add_argument("--long", action="store_true", help="also the slow tests")
    parser.add_argument("--excluded", action="store_true", help="run what the lists exclude, to see what may come in")
    parser.add_argument("--logs", type=Path, default=ROOT / "build" / "upstream", help="folder of the runs' logs")
    parser.add_argument("--findings", action="store_true", help="write the counts into each FINDINGS.md")
    options = parser.parse_args(words)
    is_good = True
    asked_for = [name for name in options.suites.split(",") if name]
    if unknown := set(asked_for) - set(SUITES):
        parser.error(f"--suites: there is no {', '.join(sorted(unknown))}: there are {', '.join(SUITES)}")
    for name in asked_for or SUITES:
        suite = load(name)
        try:
            suite.prepare()
        except Unavailable as error:
            print(f"{name}: not run: {error}", flush=True)
            is_good = is_good and not asked_for
            continue
        results: list[Result] = []
        for kind in options.targets.split(","):
            form = {"long": options.long, "excluded": options.excluded}
            results.append(run(suite, kind, options.logs / kind.partition("=")[0], **form))
            print(results[-1].text(), flush=True)
        is_good = is_good and all(result.is_good for result in results)
        if options.findings and options.long and not options.excluded:
            findings.write(suite.folder / "FINDINGS.md", results)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
