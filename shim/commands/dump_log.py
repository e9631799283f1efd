"""`kafka-shim dump-log`: prints segments, indexes and snapshots in the format of Kafka's DumpLogSegments."""

from __future__ import annotations

import click

from kafka_shim.commands.directories import reason_of
from kafka_shim.storage import dump_records
from kafka_shim.storage.dump import MAX_INT32, Dump, Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DECODERS = {
    "offsets_decoder": dump_records.offsets,
    "transaction_log_decoder": dump_records.transactions,
    "cluster_metadata_decoder": dump_records.metadata,
    "share_group_state_decoder": dump_records.shares,
}


@click.command(name="dump-log", help="Print log segments, indexes and producer snapshots.")
@click.option("--files", required=True, metavar="FILE,...", help="the files, separated by commas")
@click.option("--deep-iteration", is_flag=True, help="the records too, not just the batches")
@click.option("--print-data-log", is_flag=True, help="their keys and values too")
@click.option("--skip-record-metadata", is_flag=True, help="of a record only key and value")
@click.option("--offsets-decoder", is_flag=True, help="the records are those of __consumer_offsets")
@click.option("--transaction-log-decoder", is_flag=True, help="the records are those of __transaction_state")
@click.option("--cluster-metadata-decoder", is_flag=True, help="the records are those of __cluster_metadata")
@click.option("--show-secrets", is_flag=True, help="of __cluster_metadata passwords and keys too, as Kafka's tool does")
@click.option("--share-group-state-decoder", is_flag=True, help="the records are those of __share_group_state")
@click.option("--verify-index-only", is_flag=True, help="check indexes against the log, print only what is wrong")
@click.option("--index-sanity-check", is_flag=True, help="check only what a broker's start checks of an index")
@click.option("--max-bytes", type=click.IntRange(min=1), default=MAX_INT32, help="read no more of each log")
def group(
    files: str,
    deep_iteration: bool,
    print_data_log: bool,
    skip_record_metadata: bool,
    verify_index_only: bool,
    index_sanity_check: bool,
    max_bytes: int,
    show_secrets: bool,
    **decoders: bool,
) -> None:
    chosen = [DECODERS[name] for name, wanted in decoders.items() if wanted]
    if show_secrets and chosen == [dump_records.metadata]:
        chosen = [dump_records.metadata_with_secrets]
    if len(chosen) > 1:
        raise click.UsageError("only one decoder can be used")
    options = Options(
        deep=deep_iteration,
        contents=print_data_log or bool(chosen),
        parser=chosen[0] if chosen else dump_records.plain,
        skip_metadata=skip_record_metadata,
        verify_only=verify_index_only,
        sanity_only=index_sanity_check,
        max_bytes=max_bytes,
    )
    dump = Dump(options)
    for line in _read(dump, files):
        click.echo(line)
    for line in dump.complaints:
        click.echo(line, err=True)


def _read(dump: Dump, files: str) -> Iterator[str]:
    """Yields the lines. An error of the files is a ClickException; errors of the output are the caller's."""
    try:
        for path in files.split(","):
            yield from dump.lines(path.strip())
    except (OSError, ValueError) as err:
        raise click.ClickException(reason_of(err)) from err
