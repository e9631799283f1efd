"""From what a client has proved to its principal, and plug-ins that decide it."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from kafka_shim.config import ConfigError, usable
from kafka_shim.embedded import Broker
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.security.kerberos_rules import KerberosRules
from kafka_shim.security.principals import (
    DEFAULT_CLASS,
    AuthenticationContext,
    DefaultPrincipalBuilder,
    principal_builder,
    subject_of,
)
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.security.tls.distinguished_name import java_name
from kafka_shim.security.tls.mapping_rules import MappingRules
from kafka_shim.wire_client import Connection, WireClientError

NOBODY = AuthenticationContext("L", "SSL", "127.0.0.1")


class OfListener:
    """A builder that goes by the listener, on which nothing is proved."""

    def build(self, context: AuthenticationContext) -> str:
        if context.listener_name == "NOBODY":
            raise ValueError("nobody is let in here")
        return f"User:{context.security_protocol} {context.listener_name}"


class Upper:
    """A builder as a user would write one."""

    def build(self, context: AuthenticationContext) -> str:
        return f"Robot:{(context.authorization_id or 'nobody').upper()}"


class WithoutBuild:
    pass


class WithArguments(Upper):
    def __init__(self, name: str) -> None:
        self.name = name


def never_called() -> None:
    raise AssertionError


def test_default_prefers_the_name_of_sasl_and_maps_that_of_a_certificate():
    builder = DefaultPrincipalBuilder(lambda name: name.partition("=")[2])
    by_sasl = AuthenticationContext("L", "SASL_SSL", "h", "PLAIN", "alice", b"", "CN=bob")
    by_certificate = AuthenticationContext("L", "SSL", "h", certificate=b"", certificate_name="CN=bob")
    assert builder.build(by_sasl) == "User:alice"
    assert builder.build(by_certificate) == "User:bob"
    assert DefaultPrincipalBuilder().build(by_certificate) == "User:CN=bob"
    assert builder.build(NOBODY) == "User:ANONYMOUS"


def test_builder_is_kafkas_own_or_a_python_class():
    assert isinstance(principal_builder(DEFAULT_CLASS), DefaultPrincipalBuilder)
    assert isinstance(principal_builder(None), DefaultPrincipalBuilder)
    assert principal_builder(f"{__name__}.Upper").build(NOBODY) == "Robot:NOBODY"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("com.example.Mine", "cannot be loaded"),
        ("nothing", "cannot be loaded"),
        (f"{__name__}.Missing", "cannot be loaded"),
        (f"{__name__}.WithoutBuild", "has no method build"),
        (f"{__name__}.WithArguments", "cannot be configured"),
        (f"{__name__}.never_called", "has no method build"),
    ],
)
def test_another_class_is_refused_with_its_name(name: str, reason: str):
    with pytest.raises(ConfigError, match=reason) as caught:
        principal_builder(name)
    assert name in str(caught.value)


def test_subject_is_written_as_java_does():
    import ssl

    _, certificate = CertificateAuthority().issue("bob")
    first = certificate[: certificate.index("-----END CERTIFICATE-----")] + "-----END CERTIFICATE-----\n"
    subject = subject_of(ssl.PEM_cert_to_DER_cert(first))
    assert subject.endswith("CN=bob") or "CN=bob" in subject.split(",")
    for bad in (b"no certificate", b"", b"\x30\x80\0\0", b"\x30\x02\x30\0"):
        with pytest.raises(ConfigError, match="cannot be read"):
            subject_of(bad)


def test_a_class_that_is_stored_and_not_given_is_ignored():
    name = "principal.builder.class"
    own = f"listener.name.l.{name}"
    taken, ignored = usable({name: "mine.Builder", own: "os.abort"}, {own: "mine.Builder"}, is_default=False)
    assert taken == {name: "mine.Builder"}
    assert list(ignored) == [own]


def test_every_attribute_of_a_name_is_written_as_java_does():
    """The expected text is what X500Principal.getName of JDK 17 prints for this name."""
    part, attribute = x509.RelativeDistinguishedName, x509.NameAttribute
    name = x509.Name(
        [
            part([attribute(NameOID.COUNTRY_NAME, "DE")]),
            part([attribute(NameOID.DOMAIN_COMPONENT, "example")]),
            part([attribute(NameOID.ORGANIZATION_NAME, 'Ex, "Org" ;=<>+\\ ')]),
            part([attribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "a")]),
            part([attribute(NameOID.STREET_ADDRESS, "#x S#t  ")]),
            part([attribute(NameOID.LOCALITY_NAME, "  M=ünchen")]),
            part([attribute(NameOID.STATE_OR_PROVINCE_NAME, "BY")]),
            part([attribute(NameOID.EMAIL_ADDRESS, "bob@example.org")]),
            part([attribute(NameOID.GIVEN_NAME, "B" * 200)]),
            part([attribute(x509.ObjectIdentifier("1.2.3.4"), "é x")]),
            part([attribute(NameOID.COMMON_NAME, "bob")]),
        ]
    )
    assert java_name(name.public_bytes()) == (
        f"CN=bob,1.2.3.4=#0c04c3a92078,2.5.4.42=#0c81c8{'42' * 200},"
        "1.2.840.113549.1.9.1=#160f626f62406578616d706c652e6f7267,"
        r"ST=BY,L=\ \ M\=ünchen,STREET=\#x S\#t\ \ ,OU=a,O=Ex\, \"Org\" \;\=\<\>\+\\\ ,DC=example,C=DE"
    )


def test_a_name_that_is_not_as_it_should_be_is_written_as_java_does():
    """The expected texts are what X500Principal.getName of JDK 17 prints for these names."""
    authority, key = CertificateAuthority(), ec.generate_private_key(ec.SECP256R1())
    for tag, value, expected in (
        (0x13, b"bob@x_y*&", "CN=bob@x_y*&"),  # a PrintableString with what it may not have
        (0x13, b"\n", "CN=\n"),
        (0x1E, b"\0A\0,", r"CN=\00A\00\,"),
        (0x1A, b"A", "CN=#1a0141"),
        (0x1C, b"\0\0\0A", "CN=#1c0400000041"),
        (0x0C, b" \r", "CN=\\ \\\r"),
    ):
        # The library signs no such name, so another of the same length is replaced.
        other = "?" * len(value)
        signed = authority._signed(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, other)]), key)
        former, own = (bytes([kind, len(value)]) for kind in (0x0C, tag))
        certificate = signed.public_bytes(Encoding.DER).replace(former + other.encode(), own + value)
        assert subject_of(certificate) == expected
    several = [x509.NameAttribute(NameOID.COMMON_NAME, "b"), x509.NameAttribute(x509.ObjectIdentifier("2.999.1"), "c")]
    assert java_name(x509.Name([x509.RelativeDistinguishedName(several)]).public_bytes()) == "CN=b+2.999.1=#0c0163"


@pytest.mark.option("ssl.principal.mapping.rules")
@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        ("RULE:.*/x/", "CN=a", "xx"),
        ("RULE:(CN=|OU=|[^,]*,?)*/-/", "CN=a,OU=b", "--"),
        ("RULE:CN=(.*)/$1@$2/U", "CN=a", "A@$2"),
        ("RULE:CN=(.*)/$2$3/", "CN=a", None),
        ("RULE:CN=(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)(.*)/$11$1/", "CN=abcdefghijkl", "kla"),
        ("RULE:CN=(?<who>.*)/${who}$0/", "CN=a", "aCN=a"),
        ("RULE:CN=(?<who>a)(?!b)/${who}/", "CN=a", "a"),
        (r"RULE:CN=(\p{L}+)\z/$1/", "CN=ü", "ü"),
        (r"RULE:CN=\Qa.b\E/x/", "CN=a.b", "x"),
        ("RULE:CN=(.*)/$/", "CN=a", None),
        ("RULE:CN=a/x/", "CN=b", None),
        (" , RULE:CN=a/x/ ,, DEFAULT,", "CN=b", "CN=b"),
        ("", "CN=b", None),
    ],
)
def test_mapping_rules_make_the_names_that_kafka_makes(rules: str, subject: str, name: str | None):
    """The names are those of Kafka's SslPrincipalMapper; None: it raises."""
    made = MappingRules(rules)
    if name is not None:
        assert made.name_of(subject) == name
    else:
        with pytest.raises(ConfigError):
            made.name_of(subject)


@pytest.mark.parametrize("expression", ["[a-z&&[^x]]", "[a[b]]", r"\[[]&&]", "[[:alpha:]]", "x[a][b&&c]"])
def test_a_rule_with_a_set_that_java_reads_otherwise_is_refused(expression: str):
    with pytest.raises(ConfigError, match="mean something else in Java"):
        MappingRules(f"RULE:CN={expression}/x/")
    with pytest.raises(ConfigError, match="mean something else in Java"):
        KerberosRules("R", [f"RULE:[1:$1]s/{expression}/x/"])
    MappingRules(r"RULE:[&][\[&\&]\[&&[^]]&&/x/")


@pytest.mark.option("principal.builder.class")
def test_a_class_makes_the_principals_of_a_plaintext_listener():
    """Kafka asks it there too. A client for whom it raises is closed, and the log says why."""
    with Broker(
        listen="BROKER://127.0.0.1:0,NOBODY://127.0.0.1:0,OWN://127.0.0.1:0",
        **{
            "listener.security.protocol.map": "BROKER:PLAINTEXT,NOBODY:PLAINTEXT,OWN:PLAINTEXT",
            "inter.broker.listener.name": "BROKER",
            "principal.builder.class": f"{__name__}.OfListener",
            "listener.name.own.principal.builder.class": DEFAULT_CLASS,
        },
    ) as broker:

        def connect(listener: str) -> Connection:
            (port,) = (one.rpartition(":")[2] for one in broker._word(1).split(",") if one.startswith(listener))
            return Connection(f"127.0.0.1:{port}")

        with connect("BROKER") as client, connect("OWN") as other:
            assert client.request(MetadataRequest(topics=[]), 12).brokers
            assert other.request(MetadataRequest(topics=[]), 12).brokers
            principals = broker.call(lambda: {one.session.principal for one in broker._server._registry.connections})
            assert principals == {"User:PLAINTEXT BROKER", "User:ANONYMOUS"}
        with connect("NOBODY") as client, pytest.raises(WireClientError):
            client.request(MetadataRequest(topics=[]), 12)
        assert broker.state.metrics.errors_unexpected == 0
