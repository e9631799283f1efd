"""TLS and ACLs on the shim beside Apache Kafka: ``python -m bench.security``.

TLS 1.3 with the suite that both choose, which the last line names. ACLs: a user who may WRITE to one topic writes
single records, with that ACL alone and among 10,000. A figure is the median of the rounds after one that warms up.
"""

from __future__ import annotations

import argparse
import os
import socket
import ssl
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.client_process import load, make_topic
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.targets import requests
from kafka_shim.targets.secured import SecuredKafka, SecuredShim
from kafka_shim.wire_client import Connection, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_shim.targets.secured import SecuredTarget

    # (what, kind) -> a figure of each round
    Figures = dict[tuple[str, str], list[float]]

ACLS = 10_000
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
KINDS = (("shim", SecuredShim), ("kafka", SecuredKafka))
ROWS = (
    ("tls produce, 1 KB records [MB/s]", "tls_produce_mb_s"),
    ("  broker CPU [s/GB]", "tls_produce_cpu_s_gb"),
    ("tls consume the same [MB/s]", "tls_consume_mb_s"),
    ("  broker CPU [s/GB]", "tls_consume_cpu_s_gb"),
    ("tls, one record, one at a time: p50 [us]", "tls_single_p50_us"),
    ("  broker CPU each [us]", "tls_single_cpu_us"),
    ("one ACL, one record, one at a time: p50 [us]", "acl_single_p50_us"),
    ("  broker CPU each [us]", "acl_single_cpu_us"),
    (f"{ACLS:,} ACLs, the same: p50 [us]", "acls_single_p50_us"),
    ("  broker CPU each [us]", "acls_single_cpu_us"),
)


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


def measure_tls(secured: SecuredTarget, setup: Setup, number: int, amount: int, single: int) -> dict[str, float]:
    topic, one = f"tls-{number}", f"tls-single-{number}"
    with Connection(secured.bootstrap, timeout_s=60) as client:
        make_topic(client, topic, 4)
        make_topic(client, one, 1)
        wrote = _load("produce", secured, "SSL", topic, amount, setup.tls)
        read = _load("consume", secured, "SSL", topic, int(wrote["bytes"]), setup.tls)
        each = _load("latency", secured, "SSL", one, single, setup.tls)
        client.request(requests.make("DeleteTopics", topic_names=[topic, one], timeout_ms=60_000), 5)
    return {
        "tls_produce_mb_s": wrote["bytes"] / wrote["seconds"] / 1e6,
        "tls_produce_cpu_s_gb": wrote["cpu_s"] / wrote["bytes"] * 1e9,
        "tls_consume_mb_s": read["bytes"] / read["seconds"] / 1e6,
        "tls_consume_cpu_s_gb": read["cpu_s"] / read["bytes"] * 1e9,
        "tls_single_p50_us": each["p50_us"],
        "tls_single_cpu_us": each["cpu_s"] / each["requests"] * 1e6,
    }


def measure_single(secured: SecuredTarget, setup: Setup, prefix: str, single: int) -> dict[str, float]:
    each = _load("latency", secured, "SASL_PLAINTEXT", "allowed", single, setup.user)
    return {f"{prefix}_single_p50_us": each["p50_us"], f"{prefix}_single_cpu_us": each["cpu_s"] / single * 1e6}


def _load(
    work: str, secured: SecuredTarget, listener: str, topic: str, amount: int, properties: Mapping[str, str]
) -> dict[str, float]:
    return load(work, secured.target, topic, amount, bootstrap=secured.addresses[listener], properties=properties)


def run(repeats: int, megabytes: int, single: int) -> tuple[Figures, dict[str, str]]:
    """Returns the figures, and the suite of TLS of each kind."""
    figures: Figures = {}
    suites: dict[str, str] = {}
    with ExitStack() as stack:
        setup = Setup(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))))
        brokers = {}
        for kind, made in KINDS:
            secured = made(setup.settings, protocols=("SSL", "SASL_PLAINTEXT"))
            secured.target.prepare_for_measuring()
            brokers[kind] = stack.enter_context(secured)
            suites[kind] = suite_of(secured.addresses["SSL"])
            with Connection(secured.bootstrap, timeout_s=60) as client:
                make_topic(client, "allowed", 1)
                add_acls(client, ["allowed"])
        for prefix in ("acl", "acls"):
            for number in range(repeats + 1):
                for kind, secured in brokers.items():
                    row = measure_single(secured, setup, prefix, single)
                    if prefix == "acl":
                        row |= measure_tls(secured, setup, number, megabytes * 1_000_000, single)
                    if number:  # the first only warms up
                        for name, value in row.items():
                            figures.setdefault((name, kind), []).append(value)
            for secured in brokers.values() if prefix == "acl" else ():
                with Connection(secured.bootstrap, timeout_s=60) as client:
                    add_acls(client, [f"other-{number}" for number in range(ACLS - 1)])
    return figures, suites


def suite_of(address: str) -> str:
    """Returns the protocol and the suite that broker and client choose."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, int(port)), timeout=30) as plain, context.wrap_socket(plain) as secured:
        name, version, _ = secured.cipher() or ("", "", 0)
        return f"{version} {name}"


def table(result: tuple[Figures, dict[str, str]]) -> str:
    figures, suites = result
    lines = [
        f"| {'TLS and ACLs':50} | {'Kafka 4.3.1':>12} | {'shim':>10} | {'ratio':>7} |",
        f"| {'-' * 50} | {'-' * 11}: | {'-' * 9}: | {'-' * 6}: |",
    ]
    for title, name in ROWS:
        mine, theirs = figures[(name, "shim")], figures[(name, "kafka")]
        ratio = statistics.median(one / other for one, other in zip(mine, theirs, strict=True) if other)
        shown = [statistics.median(theirs), statistics.median(mine)]
        lines.append(f"| {title:50} | {shown[0]:>12.1f} | {shown[1]:>10.1f} | {ratio:>6.2f}x |")
    more = statistics.median(figures[("acls_single_cpu_us", "shim")]) - statistics.median(
        figures[("acl_single_cpu_us", "shim")]
    )
    lines.append(f"10,000 ACLs cost the shim {more:+.1f} us of CPU a request; suites: {suites}")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.security", description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--requests", type=int, default=1000)
    options = parser.parse_args()
    print(table(run(options.repeats, options.megabytes, options.requests)))
