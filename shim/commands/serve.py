"""`kafka-shim serve`, for `--help` and invalid arguments. `kafka_shim.cli` parses the usual forms
without this module.
"""

from __future__ import annotations

import click

from kafka_shim.cli import FORMATS, LEVELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@click.command(name="serve", help="Serve clients until SIGTERM, SIGINT or SIGHUP.")
@click.option(
    "--listen",
    "listens",
    multiple=True,
    metavar="HOST:PORT",
    help="default: 127.0.0.1:9092; port 0 takes a free one; several as NAME://HOST:PORT,NAME://HOST:PORT",
)
@click.option("--data-dir", metavar="DIR", help="default: ./kafka-shim-data")
@click.option("--memory", is_flag=True, help="keep the data in a temporary directory, removed at the end")
@click.option("--config", "config_file", metavar="FILE", help="a server.properties file")
@click.option("--strict-security", is_flag=True, help="stop the start where it would warn of an open door")
@click.option("-o", "options", multiple=True, metavar="KEY=VALUE", help="one option of Kafka's; repeatable")
@click.option(
    "--log-level",
    type=click.Choice(LEVELS, case_sensitive=False),
    default="INFO",
    help="DEBUG logs each request",
)
@click.option("--log-format", type=click.Choice(FORMATS), default="text", help="json: one object a line")
def group(memory: bool, data_dir: str | None, listens: tuple[str, ...], **arguments: Any) -> int:
    if memory and data_dir is not None:
        raise click.UsageError("--memory and --data-dir exclude each other")
    if len(listens) > 1:
        raise click.UsageError("--listen is given once: several listeners are NAME://HOST:PORT,NAME://HOST:PORT")
    from kafka_shim.serve import serve

    return serve(memory=memory, data_dir=data_dir, listen=listens[0] if listens else None, **arguments)
