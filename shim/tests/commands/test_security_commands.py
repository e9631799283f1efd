"""`kafka-shim users`, `quotas` and `certs`, and every command's way to a secured listener."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_shim.commands.main import run
from kafka_shim.embedded import Broker
from kafka_shim.wire_client import Connection


@pytest.fixture
def address() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    capsys.readouterr()
    assert run(list(words)) == status, capsys.readouterr().err
    told = capsys.readouterr()
    return told.err if status else told.out


# --- users


def test_users_are_added_listed_and_removed(
    address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    at = ("--bootstrap-server", address)
    monkeypatch.setenv("KAFKA_SHIM_PASSWORD", "secret")
    assert said(capsys, "users", "add", *at, "alice") == "User alice has a password for SCRAM-SHA-512.\n"
    (tmp_path / "word").write_text("other\nrest")
    words = ["--password-file", str(tmp_path / "word"), "--mechanism", "SCRAM-SHA-256", "--iterations", "5000"]
    said(capsys, "users", "add", *at, "bob", *words)
    assert said(capsys, "users", "list", *at) == (
        "alice\tSCRAM-SHA-512\titerations=4096\nbob\tSCRAM-SHA-256\titerations=5000\n"
    )
    assert json.loads(said(capsys, "users", "list", *at, "bob", "--json")) == [
        {"user": "bob", "mechanism": "SCRAM-SHA-256", "iterations": 5000}
    ]
    said(capsys, "users", "remove", *at, "alice")
    assert "RESOURCE_NOT_FOUND" in said(capsys, "users", "remove", *at, "alice", status=1)
    said(capsys, "users", "remove", *at, "alice", "--if-exists")
    assert "user alice" in said(capsys, "users", "list", *at, "alice", "bob", status=1)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "give the password with --password-file FILE or $KAFKA_SHIM_PASSWORD"),
        (["--password-file", "/no/such/file"], "cannot read /no/such/file"),
        (["--password-file", "-"], "the password is empty"),
    ],
)
def test_user_without_a_password_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], reason: str
) -> None:
    monkeypatch.delenv("KAFKA_SHIM_PASSWORD", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert reason in said(capsys, "users", "add", "alice", *words, status=2)


@pytest.mark.parametrize(
    ("words", "stdin", "variable", "reason"),
    [
        (["--password-file", "{binary}"], "", None, "binary is not text in UTF-8"),
        (["--password-file", "-"], "se\udcffcret\n", None, r"'\udcff', character 3 of a text, is not of UTF-8"),
        ([], "", "se\udcffcret", r"'\udcff', character 3 of a text, is not of UTF-8"),
    ],
)
def test_a_password_that_is_no_text_is_told_without_it(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: list[str],
    stdin: str,
    variable: str | None,
    reason: str,
) -> None:
    (tmp_path / "binary").write_bytes(b"\xfe\xffsecret")
    monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
    if variable is not None:
        monkeypatch.setenv("KAFKA_SHIM_PASSWORD", variable)
    error = said(capsys, "users", "add", "alice", *(one.format(binary=tmp_path / "binary") for one in words), status=2)
    assert reason in error
    assert "cret" not in error


# --- quotas


def test_quotas_are_set_listed_and_removed(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    at = ("--bootstrap-server", address)
    alice = ("--user", "alice")
    words = ("--add", "producer_byte_rate=1000", "--add", "request_percentage=12.5")
    said(capsys, "quotas", "set", *at, *alice, *words, "--validate-only")
    assert json.loads(said(capsys, "quotas", "list", *at, "--json")) == []
    assert (
        said(capsys, "quotas", "set", *at, *alice, *words) == "Completed updating quotas for user-principal 'alice'.\n"
    )
    said(capsys, "quotas", "set", *at, *alice, "--client-id-default", "--add", "consumer_byte_rate=5")
    said(capsys, "quotas", "set", *at, "--ip", "127.0.0.9", "--add", "connection_creation_rate=7")
    assert said(capsys, "quotas", "list", *at, "--ip", "127.0.0.9") == (
        "Quota configs for ip '127.0.0.9' are connection_creation_rate=7.0\n"
    )
    said(capsys, "quotas", "set", *at, *alice, "--delete", "producer_byte_rate")
    assert json.loads(said(capsys, "quotas", "list", *at, "--json")) == [
        {"entity": {"ip": "127.0.0.9"}, "quotas": {"connection_creation_rate": 7.0}},
        {"entity": {"user": "alice"}, "quotas": {"request_percentage": 12.5}},
        {"entity": {"client-id": None, "user": "alice"}, "quotas": {"consumer_byte_rate": 5.0}},
    ]
    assert "for user-principal 'alice', the default client-id are" in said(capsys, "quotas", "list", *at)
    refused = said(capsys, "quotas", "set", *at, *alice, "--add", "producer_byte_rate=-1", status=1)
    assert "INVALID_REQUEST" in refused


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--add", "producer_byte_rate=1"], "say for whom"),
        (["--user", "a"], "at least one of --add and --delete"),
        (["--user", "a", "--user-default", "--add", "producer_byte_rate=1"], "one of --user and --user-default"),
        (["--user", "a", "--ip", "h", "--add", "producer_byte_rate=1"], "a quota is for an address, or"),
        (["--user", "a", "--add", "producer_rate=1"], "producer_rate is not one of"),
        (["--user", "a", "--add", "producer_byte_rate=much"], "much is not a number\n"),
        (
            ["--user", "a", "--add", "producer_byte_rate=1,consumer_byte_rate=2"],
            "not a number (repeat the option for each: --add producer_byte_rate=... --add consumer_byte_rate=...)",
        ),
    ],
)
def test_quota_that_says_nothing_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], reason: str) -> None:
    assert reason in said(capsys, "quotas", "set", *words, status=2)


# --- certs, and TLS and SASL of all commands


def test_certificates_serve_a_broker_and_the_commands(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    made = tmp_path / "certs"
    paths = json.loads(said(capsys, "certs", "make", str(made), "--client", "alice", "--json"))
    assert sorted(paths) == ["alice", "broker", "ca"]
    assert (made / "broker.pem").stat().st_mode & 0o777 == 0o600
    assert (made / "alice.pem").stat().st_mode & 0o777 == 0o600
    shown = json.loads(said(capsys, "certs", "show", paths["broker"], "--json"))
    assert (shown[0]["subject"], shown[0]["issuer"]) == ("CN=broker", "CN=kafka-shim throw-away CA")
    assert f"default: {', '.join(shown[0]['names'])}" in " ".join(said(capsys, "certs", "make", "--help").split())
    assert said(capsys, "certs", "show", paths["alice"]).startswith("CN=alice, signed by CN=kafka-shim")
    assert "exists already" in said(capsys, "certs", "make", str(made), status=1)
    text = said(capsys, "certs", "make", str(made), "--client", "alice", "--force")
    broker_part, client_part = text.split("# a client\n")
    options = dict(line.split("=", 1) for line in broker_part.splitlines() if "=" in line)
    properties = tmp_path / "client.properties"
    properties.write_text(client_part)
    listen = "SSL://127.0.0.1:0"
    with Broker(listen=listen, **{**options, "ssl.client.auth": "required"}) as broker:
        at = ("--bootstrap-server", broker.bootstrap_servers)
        config = ("--command-config", str(properties))
        said(capsys, "topics", "create", *at, *config, "t")
        assert said(capsys, "topics", "list", *at, *config) == "t\n"
        advice = said(capsys, "topics", "list", *at, status=1)
        assert "--command-config" in advice
        assert "Traceback" not in advice


def test_a_listener_without_tls_is_told_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A second advice followed: to see in the log of the broker, which runs, whether it has stopped."""
    properties = tmp_path / "client.properties"
    properties.write_text("security.protocol=SSL\n")
    with Broker() as broker:
        at = ("--bootstrap-server", broker.bootstrap_servers, "--command-config", str(properties))
        advice = said(capsys, "topics", "list", *at, status=1)
    assert "check security.protocol, the port, and" in advice
    assert advice.endswith("whether the listener wants a certificate (ssl.keystore.location)\n")


@pytest.mark.parametrize("host", ["", " "])
def test_a_certificate_is_made_for_no_empty_host(capsys: pytest.CaptureFixture[str], tmp_path: Path, host: str) -> None:
    assert run(["certs", "make", str(tmp_path / "certs"), "--host", "localhost", "--host", host]) == 2
    assert "a host has a name or an address, not ''" in capsys.readouterr().err
    assert not (tmp_path / "certs").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--client", "a" * 65], f"'{'a' * 65}' is longer than 64 characters"),
        (["--host", "müller.example"], "'müller.example' is not of ASCII: give its A-label, as xn--"),
        (["--client", "\udcff"], r"'\udcff', character 1 of a text, is not of UTF-8"),
    ],
)
def test_a_name_that_no_certificate_holds_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], reason: str
) -> None:
    assert reason in said(capsys, "certs", "make", str(tmp_path / "certs"), *words, status=2)
    assert not (tmp_path / "certs").exists()


def test_commands_log_in(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    with Broker(
        sasl="PLAIN", users={"root": "x", "bob": "y"}, authorizer_class_name=authorizer, super_users="User:root"
    ) as broker:
        at = ("--bootstrap-server", broker.bootstrap_servers, "--command-config")
        for user in ("root", "bob"):
            lines = (f"{name}={value}\n" for name, value in broker.client_config("java", user).items())
            (tmp_path / user).write_text("".join(lines))
        root, bob = str(tmp_path / "root"), str(tmp_path / "bob")
        said(capsys, "acls", "add", *at, root, "--topic", "t", "--allow-principal", "User:bob", "--operation", "Read")
        assert "User:bob" in said(capsys, "acls", "list", *at, root)
        denied = said(capsys, "acls", "list", *at, bob, status=1)
        assert "CLUSTER_AUTHORIZATION_FAILED" in denied
        assert "the user needs an ACL" in denied


def test_file_of_properties_that_cannot_be_used_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n")
    refused = said(capsys, "topics", "list", "--command-config", str(path), status=2)
    assert "--command-config" in refused
    assert "sasl.jaas.config is missing" in refused


def test_connection_that_is_refused_leaves_no_socket(tmp_path: Path) -> None:
    """`filterwarnings = error` makes a socket that is not closed an error."""
    from kafka_shim.client_security import ClientSecurity
    from kafka_shim.wire_client import WireClientError

    with Broker() as broker, pytest.raises(WireClientError, match="no TLS with"):
        Connection(broker.bootstrap_servers, security=ClientSecurity({"security.protocol": "SSL"}), timeout_s=60)
