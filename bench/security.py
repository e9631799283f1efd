"""TLS and ACLs: TLS 1.3 with the suite that client and broker choose, which is among the results; a user who may WRITE
to one topic writes single records, with that ACL alone, among 10,000, and beside 5,000 connections that do not log in.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import ssl
from contextlib import ExitStack
from dataclasses import replace

from bench.client_process import load, make_topic
from bench.data import percentiles, single, throughput
from bench.rounds import Case, Side
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.targets import requests
from kafka_shim.targets.secured import SecuredKafka, SecuredShim
from kafka_shim.wire_client import Connection, check, parse_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multiprocessing.synchronize import Event
    from pathlib import Path

    from bench.rounds import Figures, Pace
    from kafka_shim.targets.secured import SecuredTarget

ACLS, STRANGERS = 10_000, 5000
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
KINDS = {"shim": SecuredShim, "kafka": SecuredKafka}


class Setup:
    """Certificates, users and clients of one run; the keys are files in `folder`."""

    def __init__(self, folder: Path) -> None:
        authority = CertificateAuthority()
        keystore, self._authority = folder / "broker.pem", folder / "ca.pem"
        descriptor = os.open(keystore, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write("".join(authority.issue("localhost")))
        self._authority.write_text(authority.certificate)
        self.settings = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(keystore),
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} required user_bench="bench";',
        }
        self.tls = {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._authority),
        }
        self.user = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN} required username="bench" password="bench";',
        }


def add_acls(client: Connection, names: list[str]) -> None:
    """Allows the user to WRITE to topics of these names."""
    for at in range(0, len(names), 1000):
        creations = [
            {
                "resource_type": 2,
                "resource_name": name,
                "resource_pattern_type": 3,
                "principal": "User:bench",
                "host": "*",
                "operation": 4,
                "permission_type": 3,
            }
            for name in names[at : at + 1000]
        ]
        for one in client.request(requests.make("CreateAcls", creations=creations), 3).results:
            check(one.error_code, one.error_message)


def tls_throughput(side: Side, pace: Pace) -> Figures:
    """As `bench.data.throughput`, with TLS."""
    return throughput(_with_tls(side), pace)


def tls_single(side: Side, pace: Pace) -> Figures:
    return single(_with_tls(side), pace)


def _with_tls(side: Side) -> Side:
    return replace(side, bootstrap=side.kept["addresses"]["SSL"], properties=side.kept["setup"].tls)


def allowed(side: Side, pace: Pace) -> Figures:
    """Single records of a user with an ACL, with SASL and without TLS."""
    count = max(int(pace.seconds * side.kept.get("allowed_s", 1000)), 100)
    address, user = side.kept["addresses"]["SASL_PLAINTEXT"], side.kept["setup"].user
    each = load("latency", side.target, "allowed", count, bootstrap=address, properties=user)
    side.kept["allowed_s"] = 1e6 / each["p50_us"]
    return percentiles(each) | {"cpu_us": each["cpu_s"] / count * 1e6}


def allowed_among_many(side: Side, pace: Pace) -> Figures:
    if not side.kept.get("has_many"):
        side.kept["has_many"] = True
        with Connection(side.target.bootstrap, timeout_s=60) as client:
            add_acls(client, [f"other-{number}" for number in range(ACLS - 1)])
    return allowed(side, pace)


def beside_strangers(side: Side, pace: Pace) -> Figures:
    """`allowed` while 5,000 clients connect to the same listener, name a mechanism and stay, without a password."""
    count = STRANGERS // 10 if pace.is_small else STRANGERS
    # A process of its own: in a thread they would hold the interpreter of the client that is measured.
    context = multiprocessing.get_context("fork")
    done = context.Event()
    strangers = context.Process(target=_stay, args=(side.kept["addresses"]["SASL_PLAINTEXT"], count, done))
    strangers.start()
    try:
        figures = allowed(side, pace)
    finally:
        done.set()
        strangers.join()
    if strangers.exitcode:
        raise RuntimeError("a broker refused a connection")
    return figures


def _stay(address: str, count: int, done: Event) -> None:
    ask = requests.make("ApiVersions", client_software_name="bench", client_software_version="1")
    hello = encode_request_frame(ask, 3, 1, "stranger")
    mechanism = encode_request_frame(requests.make("SaslHandshake", mechanism="PLAIN"), 1, 2, "stranger")
    with ExitStack() as stack:
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(parse_address(address), timeout=60))
            # One after the other: a client that is ahead of the broker fills the backlog, and waits seconds for it.
            one.sendall(hello + mechanism)
            if not one.recv(65536):
                raise ConnectionError("the broker closed a connection")
        done.wait()


def prepare(side: Side, secured: SecuredTarget, setup: Setup) -> None:
    side.kept |= {"addresses": secured.addresses, "setup": setup}
    with Connection(side.target.bootstrap, timeout_s=60) as client:
        make_topic(client, "allowed", 1)
        add_acls(client, ["allowed"])


def cases(megabytes: int) -> list[Case]:
    return [
        Case("tls throughput", tls_throughput, "produce_mb_s", is_awake=False, pages_mb=megabytes),
        Case("tls single", tls_single, "p50_us"),
        Case("one acl", allowed, "p50_us"),
        Case("many acls", allowed_among_many, "p50_us"),
        Case("strangers", beside_strangers, "p50_us"),
    ]


def suite_of(address: str) -> str:
    """Returns the protocol and the suite that broker and client choose."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, int(port)), timeout=30) as plain, context.wrap_socket(plain) as secured:
        name, version, _ = secured.cipher() or ("", "", 0)
        return f"{version} {name}"
