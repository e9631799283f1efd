"""Apache Kafka's own integration tests on the shim and on Kafka with one broker.

python -m kafka_shim.compat.upstream.apache_kafka [--suites consumer,tools] [--tests PATTERN] \
    [--targets shim,kafka] [--not-asked [OUTCOME]] [--sample] [--update-lists] [--scan]

Prints a row for each suite. The exit status is 0 when every test that its list says passes on the shim did.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from kafka_shim.compat.upstream.apache_kafka import jvm_run, outcome_list, report, suites
from kafka_shim.targets.kafka_jars import ROOT


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m kafka_shim.compat.upstream.apache_kafka", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--suites", default="", help="names, with commas; all of them")
    parser.add_argument("--tests", default="", help="a part of the tests' names, with *")
    parser.add_argument("--targets", default="shim", help="shim, kafka, or both with a comma; none: only the lists")
    parser.add_argument(
        "--not-asked",
        nargs="?",
        const=jvm_run.PASSED,
        default="",
        choices=outcome_list.STATUSES,
        metavar="OUTCOME",
        help="only what this target was not asked, and has that outcome on the other one (passed)",
    )
    parser.add_argument("--sample", action="store_true", help="only the sample of `make test`, on the shim")
    parser.add_argument("--update-lists", action="store_true", help="write the outcomes into lists/")
    parser.add_argument("--scan", action="store_true", help="say which classes count and which do not, and end")
    parser.add_argument("--limit", type=int, default=60, metavar="SECONDS", help="for each test")
    parser.add_argument("--resume", action="store_true", help="go on with the results in --logs")
    parser.add_argument("--logs", type=Path, default=ROOT / "build" / "upstream" / "apache_kafka")
    options = parser.parse_args()
    if options.scan:
        return scan()
    if options.sample:
        return sample(options.limit)
    if not options.resume:
        shutil.rmtree(options.logs, ignore_errors=True)
    names = [name for name in options.suites.split(",") if name] or [suite.name for suite in suites.SUITES]
    targets = [target for target in options.targets.split(",") if target and target != "none"]
    results = []
    for suite in (suite for suite in suites.SUITES if suite.name in names):
        results.append(
            report.run(suite, targets, options.tests, options.logs, options.limit, not_asked_but=options.not_asked)
        )
        if options.update_lists:
            outcome_list.add_methods(results[-1].rows, jvm_run.methods(suite.classes(), options.logs / "methods"))
            outcome_list.write(suite.list_path, title(suite), results[-1].rows.values())
    print(report.HEAD)
    for result in results:
        print(result.text())
    for result in results:
        print("\n".join([f"{result.suite.name}, passed on Kafka and not on the shim:", *result.causes()]))
        for test in sorted(result.worse):
            print(f"  worse than listed: {test}\n{result.outcomes[test].message}")
    print(report.total(results))
    return 1 if any(result.worse for result in results) else 0


def title(suite: suites.Suite) -> str:
    return f"{suite.name}, {len(suite.classes())} classes of {suite.jar}"


def scan() -> int:
    for name, found in suites.scans().items():
        print(f"{name}: {len(found.counted)} classes end in a harness, {len(found.left_out)} unit tests do not")
    return 0


def sample(limit_s: int) -> int:
    with tempfile.TemporaryDirectory(prefix="apache-kafka-") as scratch:
        outcomes = jvm_run.run(jvm_run.SHIM, suites.sample(), Path(scratch) / "results", Path(scratch), limit_s)
    bad = {test: outcome for test, outcome in outcomes.items() if outcome.status != jvm_run.PASSED}
    print(f"{len(outcomes) - len(bad)} of {len(outcomes)} passed")
    for test, outcome in bad.items():
        print(f"{outcome.status}: {test}\n{outcome.message}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
