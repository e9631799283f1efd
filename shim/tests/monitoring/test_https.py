"""Metrics, health and the console over HTTPS: with a token, a certificate of a client, and stores that change."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from kafka_shim.config import ConfigError
from kafka_shim.console.metrics import MetricsReader
from kafka_shim.embedded import Broker
from kafka_shim.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.tests.console.asking import stranger
from kafka_shim.wire_client import Connection, WireClientError

HTTPS = {"kafka.shim.http.listener": "https://127.0.0.1:0"}
AUTH = "listener.name.http.ssl.client.auth"
BROKER, SET = 4, 0


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority()


def stores(authority: CertificateAuthority, prefix: str = "") -> dict[str, str]:
    key, chain = authority.issue("broker")
    return {
        f"{prefix}ssl.keystore.type": "PEM",
        f"{prefix}ssl.keystore.key": key,
        f"{prefix}ssl.keystore.certificate.chain": chain,
        f"{prefix}ssl.truststore.type": "PEM",
        f"{prefix}ssl.truststore.certificates": authority.certificate,
    }


def client_of(authority: CertificateAuthority, certificate: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.certificate)
    if certificate is not None:
        context.load_cert_chain(certificate)
    return context


@pytest.fixture
def certificate(authority: CertificateAuthority, tmp_path: Path) -> Path:
    path = tmp_path / "client.pem"
    path.write_text("\n".join(authority.issue("reader")))
    return path


def get(broker: Broker, path: str, context: ssl.SSLContext, token: str = "") -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(broker.state.http_address + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_the_console_reads_them_with_a_token_or_a_certificate(authority: CertificateAuthority, certificate: Path):
    """`kafka-shim console --metrics https://...`: whom it trusts, and what it shows."""
    options = {"kafka_shim_http_bearer_token": "s3cret", AUTH: "requested"}
    with Broker(**HTTPS, **stores(authority), **options) as broker:
        url = f"{broker.state.http_address}/metrics"
        for reader, advice in (
            (MetricsReader(url), "--metrics-ca"),
            (MetricsReader(url, tls=client_of(authority)), "HTTP 401 .*--metrics-token-file"),
            (MetricsReader(url, tls=client_of(authority), token="other"), "HTTP 401"),
        ):
            with pytest.raises(WireClientError, match=advice):
                reader()
        for reader in (
            MetricsReader(url, tls=client_of(authority), token="s3cret"),
            MetricsReader(url, tls=client_of(authority, certificate)),
        ):
            assert b"kafka_shim_connections" in reader()


def test_a_token_follows_no_redirect():
    moved = b"HTTP/1.0 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n"
    with stranger(moved) as address, pytest.raises(WireClientError, match="HTTP 302"):
        MetricsReader(address, token="s3cret")()


@pytest.mark.option("kafka.shim.http.listener")
def test_metrics_health_and_console_are_served_by_tls(authority: CertificateAuthority):
    with Broker(**HTTPS, **stores(authority), kafka_shim_http_console=True) as broker:
        assert broker.state.http_address.startswith("https://127.0.0.1:")
        context = client_of(authority)
        assert get(broker, "/health/ready", context) == (200, b"ready\n")
        status, text = get(broker, "/metrics", context)
        assert status == 200
        assert b"kafka_shim_connections" in text
        assert json.loads(get(broker, "/api/metrics", context)[1])["sums"]["kafka_shim_connections"] >= 0
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            get(broker, "/health/ready", client_of(CertificateAuthority()))
        with pytest.raises((urllib.error.URLError, OSError)):
            urllib.request.urlopen(broker.state.http_address.replace("https", "http"), timeout=60)


def test_metrics_are_for_who_has_a_certificate_or_the_token(authority: CertificateAuthority, certificate: Path):
    options = {AUTH: "requested", "kafka.shim.http.bearer.token": "s3cret"}
    with Broker(**HTTPS, **stores(authority), **options) as broker:
        known, stranger = client_of(authority, certificate), client_of(authority)
        assert get(broker, "/metrics", known)[0] == 200
        assert get(broker, "/metrics", stranger, "s3cret")[0] == 200
        assert get(broker, "/metrics", stranger, "other") == (401, b"send Authorization: Bearer TOKEN\n")
        assert get(broker, "/metrics", stranger)[0] == 401
        assert get(broker, "/health/live", stranger)[0] == 200


def test_without_a_token_metrics_want_the_certificate_that_is_asked_for(
    authority: CertificateAuthority, certificate: Path
):
    with Broker(**HTTPS, **stores(authority), **{AUTH: "requested"}) as broker:
        assert get(broker, "/metrics", client_of(authority, certificate))[0] == 200
        status, text = get(broker, "/metrics", client_of(authority))
        assert (status, text) == (403, b"show a certificate that the broker's truststore trusts\n")
        assert get(broker, "/health/live", client_of(authority))[0] == 200


def test_where_a_certificate_is_required_nothing_is_told_without(
    authority: CertificateAuthority, certificate: Path, tmp_path: Path
):
    foreign = tmp_path / "foreign.pem"
    foreign.write_text("\n".join(CertificateAuthority().issue("reader")))
    with Broker(**HTTPS, **stores(authority), **{AUTH: "required"}) as broker:
        assert get(broker, "/health/live", client_of(authority, certificate))[0] == 200
        for path in (None, foreign):
            with pytest.raises((urllib.error.URLError, OSError)):
                get(broker, "/health/live", client_of(authority, path))


def test_it_may_have_stores_of_its_own_and_takes_over_changed_ones(authority: CertificateAuthority):
    """The prefix is that of a listener by the name of HTTP."""
    given = {**stores(CertificateAuthority()), **stores(authority, "listener.name.http.")}
    with Broker(**HTTPS, **given) as broker:
        assert get(broker, "/health/live", client_of(authority))[0] == 200
        other = CertificateAuthority()
        changes = [
            AlterableConfig(name=name, config_operation=SET, value=text)
            for name, text in stores(other, "listener.name.http.").items()
        ]
        resource = AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=changes)
        with Connection(broker.bootstrap_servers) as client:
            (answer,) = client.request(IncrementalAlterConfigsRequest(resources=[resource])).responses
        assert answer.error_code == 0, answer.error_message
        assert get(broker, "/health/live", client_of(other))[0] == 200


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, r"kafka\.shim\.http\.listener, TLS needs a certificate: set ssl\.keystore\.location"),
        ({"ssl.keystore.location": "/nowhere"}, r"kafka\.shim\.http\.listener, .*cannot read /nowhere"),
        (
            {"listeners": "HTTP://127.0.0.1:0", "listener.security.protocol.map": "HTTP:PLAINTEXT"},
            "HTTP is the name of kafka.shim.http.listener",
        ),
    ],
)
def test_a_start_without_a_certificate_says_what_it_needs(options: dict[str, str], words: str):
    listen = {} if "listeners" not in options else {"listen": options["listeners"]}
    given = {name: text for name, text in options.items() if name != "listeners"}
    with pytest.raises(ConfigError, match=words):
        Broker(**HTTPS, **listen, **given).start()


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_curl_reads_the_metrics_as_the_page_says(authority: CertificateAuthority, certificate: Path, tmp_path: Path):
    trusted = tmp_path / "ca.pem"
    trusted.write_text(authority.certificate)
    with Broker(**HTTPS, **stores(authority), **{AUTH: "requested"}) as broker:
        line = ["curl", "--silent", "--cacert", str(trusted), f"{broker.state.http_address}/metrics"]
        assert b"show a certificate" in subprocess.run(line, capture_output=True, timeout=60, check=True).stdout
        done = subprocess.run([*line, "--cert", str(certificate)], capture_output=True, timeout=60, check=True)
        assert b"kafka_shim_connections" in done.stdout
