"""What an operator may configure, is warned of, and is refused."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import pytest

from kafka_shim.config import BrokerConfig, ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.security.authorizers import make_authorizer
from kafka_shim.security.standard_authorizer import StandardAuthorizer
from kafka_shim.security.warnings import Exposure, security_warnings, world_readable
from kafka_shim.serve import configure
from kafka_shim.tests.security.sasl_client import OAUTH_MODULE, listener_options, log_in_plain, plain_jaas
from kafka_shim.wire_client import Connection

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class OnlyMine:
    """An authorizer as a user would write one."""

    prefix = ""

    def configure(self, options: Mapping[str, str]) -> None:
        self.prefix = options["super.users"].partition(":")[2]

    def allowed(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, names: Iterable[str]
    ) -> Collection[str]:
        return [name for name in names if resource_type != ResourceType.TOPIC or name.startswith(self.prefix)]

    def allowed_on_any(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType) -> bool:
        return True


class Failing(OnlyMine):
    def configure(self, options: Mapping[str, str]) -> None:
        raise KeyError("no table")


class Awaited:
    async def allowed(self, *_: object) -> list[str]:
        return []

    async def allowed_on_any(self, *_: object) -> bool:
        return False

    def configure(self, options: Mapping[str, str]) -> None:
        pass


class AwaitedAcls(StandardAuthorizer):
    async def change_acls(self, *_: object) -> None:  # type: ignore[override]
        pass


class Unfinished:
    def configure(self, options: Mapping[str, str]) -> None:
        pass


def config(name: str, **options: str) -> BrokerConfig:
    return BrokerConfig.parse({"authorizer.class.name": name, **options})


def test_kafkas_class_name_is_our_class():
    assert type(make_authorizer(config(AUTHORIZER))) is StandardAuthorizer


@pytest.mark.option("authorizer.class.name")
def test_a_python_class_decides():
    with Broker(authorizer_class_name=f"{__name__}.OnlyMine", super_users="User:my") as broker:
        names = ["mine", "my-topic", "x"]
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
        with Connection(broker.bootstrap_servers) as client:
            told = {topic.name: topic.error_code for topic in client.request(request, 9).topics}
            assert told["x"] == told["mine"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert told["my-topic"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert broker.state.acls is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("kafka.security.authorizer.AclAuthorizer", "of Java's classes org.apache.kafka.metadata.authorizer.Standard"),
        ("io.example.RangerAuthorizer", "any other class must be a Python class, module.Class"),
        ("StandardAuthorizer", "cannot be loaded"),
        (f"{__name__}.Missing", "cannot be loaded"),
        (f"{__name__}.AUTHORIZER", "has no method configure, allowed, allowed_on_any"),
        (f"{__name__}.Unfinished", "has no method allowed, allowed_on_any"),
        (f"{__name__}.Awaited", "is async, but nothing awaits it: make it a plain function"),
        (f"{__name__}.AwaitedAcls", "change_acls is async, but nothing awaits it"),
        (f"{__name__}.Failing", "cannot be configured: KeyError: 'no table'"),
    ],
)
def test_another_class_is_refused_with_one_line(name: str, reason: str):
    with pytest.raises(ConfigError) as refused:
        make_authorizer(config(name))
    assert reason in str(refused.value)
    assert name in str(refused.value)
    assert "\n" not in str(refused.value)


def warnings(protocols: Collection[str] = ("PLAINTEXT",), acl_count: int = 0, **options: str) -> list[str]:
    given = {name.replace("_", "."): text for name, text in options.items()}
    return security_warnings(Exposure(BrokerConfig.parse(given), protocols, acl_count))


def test_a_door_left_open_is_one_line_each():
    assert warnings() == []
    assert warnings(["SASL_SSL"], authorizer_class_name=AUTHORIZER, super_users="User:a") == []
    (anonymous,) = warnings(authorizer_class_name=AUTHORIZER, super_users="User:a")
    assert "no listener authenticates clients" in anonymous
    (certificates,) = warnings(["SSL"], authorizer_class_name=AUTHORIZER, super_users="User:a")
    assert "no listener authenticates clients" in certificates
    (unmanned,) = warnings(["SASL_SSL"], authorizer_class_name=AUTHORIZER, super_users=" ; ")
    assert "without super.users" in unmanned
    assert warnings(["SASL_SSL"], authorizer_class_name=f"{__name__}.OnlyMine") == []
    (unused,) = warnings(acl_count=3)
    assert "3 ACLs are stored" in unused
    assert warnings(acl_count=1)[0].startswith("1 ACL is stored, but")
    assert all("\n" not in line for line in (anonymous, unmanned, unused))


def test_a_secret_on_the_command_line_is_a_door_left_open(tmp_path: Path):
    given = configure(None, str(tmp_path), None, ["ssl.key.password=geheim", "num.partitions=3"])
    (shown,) = security_warnings(Exposure(given, ["PLAINTEXT"], 0))
    assert shown.startswith("ssl.key.password is on the command line")
    assert "geheim" not in shown


def test_a_file_with_a_key_that_everybody_can_read_is_a_door_left_open(tmp_path: Path):
    key = tmp_path / "key.pem"
    assert world_readable("ssl.keystore.location", None) == []
    assert world_readable("ssl.keystore.location", str(key)) == [], "who reads it tells that it is not there"
    key.touch(0o600)
    assert world_readable("ssl.keystore.location", str(key)) == []
    key.chmod(0o604)
    (line,) = world_readable("ssl.keystore.location", str(key))
    assert line == f"ssl.keystore.location: every user of this machine can read {key}: chmod o-r {key}"


def test_a_start_logs_them(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING), Broker(authorizer_class_name=AUTHORIZER):
        assert len([record for record in caplog.records if "authorizer.class.name is set" in record.getMessage()]) == 2


def test_acls_that_the_program_gives_are_no_door_left_open(caplog: pytest.LogCaptureFixture):
    """Unless nobody can be whom they name."""
    with caplog.at_level(logging.WARNING, "kafka_shim"):
        with Broker(acls=[{"principal": "User:ANONYMOUS", "operation": "READ", "topic": "t"}]):
            assert caplog.messages == []
        with Broker(acls=[{"principal": "User:alice", "operation": "READ", "topic": "t"}]):
            (anonymous,) = caplog.messages
    assert "no listener authenticates clients" in anonymous


def test_strict_security_makes_them_errors(tmp_path: Path):
    command = [sys.executable, "-m", "kafka_shim", "serve", "--strict-security", "--listen", "127.0.0.1:0"]
    command += ["--data-dir", str(tmp_path), "-o", f"authorizer.class.name={AUTHORIZER}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: --strict-security: authorizer.class.name is set, but no listener")
    assert "without super.users" in line


def test_an_unknown_class_stops_the_start():
    with pytest.raises(ConfigError, match=r"authorizer\.class\.name=com\.example\.Mine"):
        Broker(authorizer_class_name="com.example.Mine").start()


def test_strict_security_refuses_tokens_that_nobody_has_signed(tmp_path: Path):
    command = [sys.executable, "-m", "kafka_shim", "serve", "--strict-security", "--data-dir", str(tmp_path)]
    command += ["--listen", "SASL_PLAINTEXT://127.0.0.1:0"]
    options = listener_options("SASL_PLAINTEXT", OAUTHBEARER=f"{OAUTH_MODULE} required;")
    for name, value in options.items():
        command += ["-o", f"{name}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "--strict-security: listener SASL_PLAINTEXT: OAUTHBEARER accepts tokens that nobody has signed" in line


@pytest.mark.parametrize("name", ["principal.builder.class", "listener.name.sasl_plaintext.principal.builder.class"])
def test_a_java_class_that_a_directory_of_kafka_stores_stops_no_start(tmp_path: Path, caplog, name: str):
    """Kafka's broker may have had the class. Kafka's own principals are made instead, and one line says so."""
    options = {**listener_options("SASL_PLAINTEXT", PLAIN=plain_jaas(alice="a")), "data_dir": tmp_path}
    listen = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
    with Broker(listen=listen, **options) as broker:
        record = ConfigRecord(resource_type=4, resource_name="1", name=name, value="com.example.OwnPrincipals")
        broker.call(broker.state.metadata.commit, [record])
    with Broker(listen=listen, **options) as broker:
        assert "com.example.OwnPrincipals" in caplog.text or name in caplog.text
        with Connection(broker._word(1).split(",")[1].partition("://")[2]) as client:
            assert log_in_plain(client, "alice", "a").error_code == 0
            principals = broker.call(lambda: {one.session.principal for one in broker._server._registry.connections})
            assert principals == {"User:alice"}
