"""`kafka-shim certs`: certificates for tests. `make` writes those of a throw-away authority, `show` says what is in a
file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from kafka_shim.commands.directories import Directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cryptography.x509 import Certificate

BROKER = "broker"
# What a common name has room for (RFC 5280: ub-common-name).
MOST_CN = 64
DEFAULT_DAYS = 30


@click.group(name="certs", help="Make certificates for tests, and show what is in a file.")
def group() -> None:
    pass


@group.command(
    help="Write an authority's certificate (ca.pem), a broker's key and certificate (broker.pem) and those of clients "
    "(NAME.pem) into DIR. The authority's own key is kept nowhere: to add a client later, make all again."
)
@click.argument("directory", metavar="DIR", type=Directory(file_okay=False, path_type=Path))
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="a name or address of the broker; repeatable; default: localhost, 127.0.0.1, ::1",
)
@click.option("--client", "clients", multiple=True, metavar="NAME", help="CN of a client's certificate; repeatable")
@click.option("--days", type=click.IntRange(1, 3650), default=DEFAULT_DAYS, show_default=True)
@click.option("--force", is_flag=True, help="replace files that are there")
@click.option("--json", "as_json", is_flag=True, help="print the paths as one JSON object")
def make(
    directory: Path, hosts: tuple[str, ...], clients: tuple[str, ...], days: int, force: bool, as_json: bool
) -> None:
    from kafka_shim.security.tls.authority import HOSTS, CertificateAuthority

    strange = [name for name in clients if name in ("", ".", "..", "ca", BROKER) or set(name) & set("/\\\0")]
    if strange:
        raise click.BadParameter(f"{strange[0]!r} cannot be the name of a file here", param_hint="--client")
    if not all(host.strip() for host in hosts):  # as of a variable that is not set
        raise click.BadParameter("a host has a name or an address, not ''", param_hint="--host")
    long = [name for name in clients if len(name) > MOST_CN]
    if long:
        raise click.BadParameter(f"{long[0]!r} is longer than {MOST_CN} characters", param_hint="--client")
    foreign = [host for host in hosts if not host.isascii()]
    if foreign:
        raise click.BadParameter(
            f"{foreign[0]!r} is not of ASCII: give its A-label, as xn--mller-kva.example", param_hint="--host"
        )
    names = ["ca", BROKER, *clients]
    paths = {name: directory / f"{name}.pem" for name in names}
    there = [path for path in paths.values() if path.exists()]
    if there and not force:
        raise click.ClickException(f"{there[0]} exists already: give another DIR, or --force to replace it")
    authority = CertificateAuthority()
    texts = {"ca": authority.certificate}
    for name in names[1:]:
        key, chain = authority.issue(name, hosts or HOSTS if name == BROKER else (), days)
        texts[name] = key + chain
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, path in paths.items():
            _write(path, texts[name], is_secret=name != "ca")
    except OSError as err:
        raise click.ClickException(f"cannot write to {directory}: {err.strerror}") from None
    if as_json:
        click.echo(json.dumps({name: str(path) for name, path in paths.items()}, indent=2))
        return
    click.echo("# the broker")
    click.echo(f"ssl.keystore.type=PEM\nssl.keystore.location={paths[BROKER]}")
    click.echo(f"ssl.truststore.type=PEM\nssl.truststore.location={paths['ca']}")
    click.echo("# a client")
    click.echo(f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={paths['ca']}")
    for name in clients:
        click.echo(
            f"# {name}, where ssl.client.auth=required\nssl.keystore.type=PEM\nssl.keystore.location={paths[name]}"
        )


@group.command(help="Print the certificates of a PEM file: subject, issuer, names, until when they are valid.")
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="one JSON array")
def show(path: Path, as_json: bool) -> None:
    from cryptography import x509

    try:
        found = [_described(one) for one in x509.load_pem_x509_certificates(path.read_bytes())]
    except OSError as err:
        raise click.ClickException(f"cannot read {path}: {err.strerror}") from None
    except ValueError:
        raise click.ClickException(
            f"{path} has no certificate in PEM; convert a keystore with keytool or openssl"
        ) from None
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for one in found:
        names = f", names {', '.join(one['names'])}" if one["names"] else ""
        click.echo(f"{one['subject']}, signed by {one['issuer']}, valid until {one['notAfter']}{names}")


def _described(certificate: Certificate) -> dict[str, Any]:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    from kafka_shim.security.tls.distinguished_name import java_name, names_of

    issuer, subject = names_of(certificate.public_bytes(Encoding.DER))
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([])
    return {
        "subject": java_name(subject),
        "issuer": java_name(issuer),
        "notBefore": certificate.not_valid_before_utc.isoformat(),
        "notAfter": certificate.not_valid_after_utc.isoformat(),
        "names": [str(one.value) for one in names],
    }


def _write(path: Path, text: str, *, is_secret: bool) -> None:
    """A file with a private key is readable by its owner alone, from its first byte on."""
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if is_secret else 0o644)
    with os.fdopen(fd, "w") as file:
        file.write(text)
