"""`kafka-shim console`: a web page that shows a cluster, as a client of it."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import click

from kafka_shim.commands.options import warn_of_strange
from kafka_shim.wire_client import DEFAULT_BOOTSTRAP

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator, Mapping

    from kafka_shim.http.server import Handle, Request, Response

# Requests that are answered at the same time: a few browsers, each with six connections.
MOST_REQUESTS = 32


class Metrics(NamedTuple):
    """Where the metrics of the broker are, and how they are asked for."""

    url: str
    authority: str | None
    certificate: str | None
    token_file: str | None


@click.command(name="console", help="Serve a web page that shows a cluster: topics, records, groups, transactions.")
@click.option(
    "--bootstrap",
    "--bootstrap-server",
    "bootstrap",
    default=DEFAULT_BOOTSTRAP,
    show_default=True,
    envvar="KAFKA_SHIM_BOOTSTRAP",
    show_envvar=True,
    metavar="HOST:PORT",
    help="a broker, of Apache Kafka too",
)
@click.option("--http", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT", help="where the page is")
@click.option(
    "--command-config",
    metavar="FILE",
    envvar="KAFKA_SHIM_COMMAND_CONFIG",
    show_envvar=True,
    help="properties of a Kafka client; with SASL and without sasl.jaas.config everybody logs in on the page",
)
@click.option(
    "--host-name", "hosts", multiple=True, metavar="NAME", help="by which browsers reach it besides localhost"
)
@click.option("--public-url", default="", metavar="URL", help="where browsers find it behind a proxy, as https://NAME")
@click.option(
    "--metrics",
    "metrics_url",
    metavar="URL",
    default="",
    help="of the broker's metrics (kafka.shim.http.listener), to be plotted",
)
@click.option(
    "--metrics-ca", metavar="FILE", help="whom https:// metrics are trusted by, instead of the system's (PEM)"
)
@click.option("--metrics-certificate", metavar="FILE", help="what is shown to them: a chain with its private key (PEM)")
@click.option(
    "--metrics-token-file", metavar="FILE", help="holds the token that they want (kafka.shim.http.bearer.token)"
)
@click.option("--schema-registry", metavar="URL", default="", help="whose schemas decode keys and values: Avro, JSON")
@click.option(
    "--schema",
    "files",
    multiple=True,
    metavar="TOPIC=FILE",
    help="of a topic's values: FILE.avsc, or FILE:MESSAGE of a Protobuf descriptor set; repeatable",
)
@click.option(
    "--allow-changes", is_flag=True, help="people also write records, change topics and offsets, end transactions"
)
@click.option("--tls-certificate", metavar="FILE", help="serve HTTPS with this chain of certificates (PEM)")
@click.option("--tls-key", metavar="FILE", help="its private key (PEM), if it is not in the same file")
def group(
    bootstrap: str,
    http: str,
    command_config: str | None,
    hosts: tuple[str, ...],
    public_url: str,
    metrics_url: str,
    metrics_ca: str | None,
    metrics_certificate: str | None,
    metrics_token_file: str | None,
    schema_registry: str,
    files: tuple[str, ...],
    allow_changes: bool,
    tls_certificate: str | None,
    tls_key: str | None,
) -> None:
    from kafka_shim.config import ConfigError, read_properties, resolve
    from kafka_shim.console.app import Console
    from kafka_shim.console.schemas import SchemaError, Schemas
    from kafka_shim.console.sessions import Sessions
    from kafka_shim.http.server import HttpServer, parse_address
    from kafka_shim.log_format import set_up_logging

    _require_urls({"--metrics": metrics_url, "--schema-registry": schema_registry})
    metrics = Metrics(metrics_url, metrics_ca, metrics_certificate, metrics_token_file)
    _require_together(metrics, tls_certificate, tls_key)
    try:
        address = parse_address(http)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--http") from None
    try:
        properties = {} if command_config is None else resolve(read_properties(command_config))
        if command_config is not None:
            warn_of_strange(command_config)
        schemas = Schemas(schema_registry, files)
        sessions = Sessions(bootstrap, properties)
        read_metrics = _reader_of(metrics)
        tls = None if tls_certificate is None else _tls(tls_certificate, tls_key)
    except (ConfigError, SchemaError, ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    try:
        console = Console(
            sessions,
            hosts=hosts,
            public_url=public_url,
            schemas=schemas,
            read_metrics=read_metrics,
            allows_changes=allow_changes,
        )
    except ValueError as error:
        raise click.ClickException(f"--public-url {error}") from None
    try:
        server = HttpServer(address, _behind_others(console.handle), most_requests=MOST_REQUESTS, tls=tls)
    except OSError as error:
        raise click.ClickException(f"{error.strerror}; give another address with --http HOST:PORT") from None
    # Who changed what is logged at this level.
    set_up_logging("info", "text")
    ready = f"console: {server.address} shows {bootstrap}{f', behind {public_url}' if public_url else ''}"
    with _ended_by_a_signal() as wait_for_the_end:
        server.start()
        click.echo(ready)
        if allow_changes and not sessions.wants_login:
            click.echo(f"warning: whoever reaches {server.address} may change {bootstrap}: nobody logs in", err=True)
        wait_for_the_end()
        server.stop()
        console.close()


def _require_urls(urls: Mapping[str, str]) -> None:
    """`urls`: by the option that gives it."""
    for option, url in urls.items():
        if url and not url.startswith(("http://", "https://")):
            raise click.BadParameter("the URL must begin with http:// or https://", param_hint=option)


def _require_together(metrics: Metrics, tls_certificate: str | None, tls_key: str | None) -> None:
    """Raise a usage error for an option that would do nothing without another one."""
    if (metrics.authority or metrics.certificate) and not metrics.url.startswith("https://"):
        raise click.UsageError("--metrics-ca and --metrics-certificate need --metrics https://...")
    if metrics.token_file and not metrics.url:
        raise click.UsageError("--metrics-token-file needs --metrics")
    if tls_key and not tls_certificate:
        raise click.UsageError("--tls-key needs --tls-certificate")


@contextmanager
def _ended_by_a_signal() -> Iterator[Callable[[], object]]:
    """Gives what waits for SIGTERM or SIGINT. They are blocked in all threads that are started meanwhile: with a
    handler in Python the main thread, which waited for a lock, slept on now and then while others answered requests."""
    ends = {signal.SIGTERM, signal.SIGINT}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        yield lambda: signal.sigwait(ends)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _tls(certificate: str, key: str | None) -> ssl.SSLContext:
    """Return the context of a server. Raises ValueError, which names the files."""
    import ssl

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    _load_chain(context, "--tls-certificate", certificate, key)
    return context


def _behind_others(handle: Handle) -> Handle:
    """Work for a page with less right to a CPU than the broker and its clients, if they are on this machine."""
    from kafka_shim.commands.options import step_back

    def patient(request: Request) -> Response:
        step_back()
        return handle(request)

    return patient


def _load_chain(context: ssl.SSLContext, option: str, certificate: str, key: str | None = None) -> None:
    """Raises ValueError, which names the files."""
    import ssl

    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        raise ValueError(
            f"{option} {certificate}: it does not hold a certificate with its key in PEM: {error.reason}"
        ) from None
    except OSError as error:
        given = f"{option} {certificate}" + (f", --tls-key {key}" if key else "")
        raise ValueError(f"{given}: {error.strerror}") from None


def _reader_of(metrics: Metrics) -> Callable[[], bytes] | None:
    """Return what reads the broker's metrics, if something does. Raises ValueError, which names the files."""
    url, authority, certificate, token_file = metrics
    if not url:
        return None
    import ssl

    from kafka_shim.console.metrics import MetricsReader

    tls, token = None, ""
    if url.startswith("https://"):
        try:
            tls = ssl.create_default_context(cafile=authority)
        except ssl.SSLError as error:
            raise ValueError(
                f"--metrics-ca {authority}: it does not hold certificates in PEM: {error.reason}"
            ) from None
        except OSError as error:
            raise ValueError(f"--metrics-ca {authority}: {error.strerror}") from None
        if certificate is not None:
            _load_chain(tls, "--metrics-certificate", certificate)
    if token_file is not None:
        try:
            token = Path(token_file).read_text(encoding="ascii").strip()
        except OSError as error:
            raise ValueError(f"--metrics-token-file {token_file}: {error.strerror}") from None
        except UnicodeDecodeError:
            token = ""
        if not token or not token.isprintable():
            raise ValueError(f"--metrics-token-file {token_file}: it holds no token, one line of ASCII")
    return MetricsReader(url, tls=tls, token=token)
