"""``python -m spark.gaps``: makes every shape on a broker, runs every reader, prints what they found."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from compat_tests.targets import make
from spark.gaps import readers, shapes
from spark.kafka_topic import READ_UNCOMMITTED
from spark.session import build_session


@click.command(help=__doc__)
@click.option("--kind", default="shim", show_default=True, help="Broker: shim, kafka-native or external=HOST:PORT.")
def main(kind: str) -> None:
    wrong: dict[str, dict[str, str]] = {}
    session = build_session("gaps")
    with (
        tempfile.TemporaryDirectory(prefix="gaps-") as scratch,
        make(kind, {"log.cleaner.backoff.ms": "200"}) as target,
    ):
        made = shapes.make_all(target)
        found, going = readers.empty(), readers.empty()
        for step in ("first", "second"):
            wrong[f"batch, {step}"] = readers.differences(made, readers.batch(session, made))
            uncommitted = readers.batch(session, made, READ_UNCOMMITTED)
            wrong[f"batch uncommitted, {step}"] = readers.differences(made, uncommitted, committed=False)
            readers.stream(session, made, Path(scratch) / "now", found)
            wrong[f"AvailableNow, {step}"] = readers.streamed_differences(made, found)
            readers.stream(session, made, Path(scratch) / "going", going, processingTime="100 milliseconds")
            wrong[f"ProcessingTime, {step}"] = readers.streamed_differences(made, going)
            if step == "first":
                shapes.finish_all(made, restart=not kind.startswith("external"))
    names = [shape.name for shape in made]
    click.echo(f"{'':28}" + "".join(f"{name:>18}" for name in names))
    for reader, found_wrong in wrong.items():
        click.echo(f"{reader:28}" + "".join(f"{found_wrong.get(name, 'ok'):>18}" for name in names))
    sys.exit(any(wrong.values()))


if __name__ == "__main__":
    main()
