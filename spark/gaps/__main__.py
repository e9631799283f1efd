"""Makes every shape of offset gaps on a broker, runs every reader of Spark's, prints what they found."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import click

from kafka_shim.spark.gaps import readers, shapes
from kafka_shim.spark.kafka_topic import READ_UNCOMMITTED
from kafka_shim.spark.session import build_session
from kafka_shim.targets import make


@click.command(help=__doc__)
@click.option("--kind", default="shim", show_default=True, help="Broker: shim, kafka-native or external=HOST:PORT.")
def main(kind: str) -> None:
    wrong: dict[str, dict[str, str]] = {}
    began = time.monotonic()

    def note(reader: str, found_wrong: dict[str, str]) -> None:
        wrong[reader] = found_wrong
        print(f"{time.monotonic() - began:6.1f} s  {reader}: {found_wrong or 'ok'}", file=sys.stderr, flush=True)

    session = build_session("gaps")
    with (
        tempfile.TemporaryDirectory(prefix="gaps-") as scratch,
        make(kind, {"log.cleaner.backoff.ms": "200"}) as target,
    ):
        made = shapes.make_all(target)
        found, going = readers.empty(), readers.empty()
        for step in ("first", "second"):
            note(f"batch, {step}", readers.differences(made, readers.batch(session, made)))
            uncommitted = readers.batch(session, made, READ_UNCOMMITTED)
            note(f"batch uncommitted, {step}", readers.differences(made, uncommitted, committed=False))
            readers.stream(session, made, Path(scratch) / "now", found)
            note(f"AvailableNow, {step}", readers.streamed_differences(made, found))
            readers.stream(session, made, Path(scratch) / "going", going, processingTime="100 milliseconds")
            note(f"ProcessingTime, {step}", readers.streamed_differences(made, going))
            if step == "first":
                shapes.finish_all(made, restart=not kind.startswith("external"))
    names = [shape.name for shape in made]
    click.echo(f"{'':28}" + "".join(f"{name:>18}" for name in names))
    for reader, found_wrong in wrong.items():
        click.echo(f"{reader:28}" + "".join(f"{found_wrong.get(name, 'ok'):>18}" for name in names))
    failed = sum(bool(found_wrong) for found_wrong in wrong.values())
    click.echo(
        f"{len(names)} shapes, {len(wrong)} readings on {kind}: {failed} wrong; {time.monotonic() - began:.0f} s"
    )
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
