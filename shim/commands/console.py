"""`kafka-shim console`: a web page that shows a cluster, as a client of it."""

from __future__ import annotations

import signal
import threading

import click

from kafka_shim.wire_client import DEFAULT_BOOTSTRAP

# Requests that are answered at the same time: a few browsers, each with six connections.
MOST_REQUESTS = 32


@click.command(name="console", help="Serve a web page that shows a cluster: topics, records, groups, transactions.")
@click.option(
    "--bootstrap",
    "--bootstrap-server",
    "bootstrap",
    default=DEFAULT_BOOTSTRAP,
    show_default=True,
    metavar="HOST:PORT",
    help="a broker, of Apache Kafka too",
)
@click.option("--http", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT", help="where the page is")
@click.option(
    "--command-config",
    metavar="FILE",
    help="properties of a Kafka client; with SASL and without sasl.jaas.config everybody logs in on the page",
)
@click.option(
    "--host-name", "hosts", multiple=True, metavar="NAME", help="by which browsers reach it besides localhost"
)
@click.option(
    "--metrics",
    "metrics_url",
    metavar="URL",
    default="",
    help="of the broker (kafka.shim.http.listener), to be plotted",
)
def group(bootstrap: str, http: str, command_config: str | None, hosts: tuple[str, ...], metrics_url: str) -> None:
    from kafka_shim.config import ConfigError, read_properties
    from kafka_shim.console.app import Console
    from kafka_shim.console.sessions import Sessions
    from kafka_shim.http.server import HttpServer, parse_address

    if metrics_url and not metrics_url.startswith(("http://", "https://")):
        raise click.BadParameter("it begins with http:// or https://", param_hint="--metrics")
    try:
        properties = {} if command_config is None else read_properties(command_config)
        console = Console(Sessions(bootstrap, properties), hosts=hosts, metrics_url=metrics_url)
        server = HttpServer(parse_address(http), console.handle, most_requests=MOST_REQUESTS)
    except (ConfigError, ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    server.start()
    click.echo(f"console: {server.address} shows {bootstrap}")
    asked.wait()
    server.stop()
    console.close()
