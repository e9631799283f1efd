"""`storage format --add-scram`: the first user of a directory."""

from __future__ import annotations

import pytest

from kafka_shim.commands.main import run
from kafka_shim.config import ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.randomness import Randomness
from kafka_shim.security.scram_arguments import parse_add_scram
from kafka_shim.tests.security.sasl_client import SCRAM_MODULE, listener_options, log_in_scram
from kafka_shim.wire_client import Connection


def test_a_formatted_user_can_log_in_at_the_first_start(tmp_path):
    argument = 'SCRAM-SHA-512=[name=alice,password="a=b",iterations=8192]'
    assert run(["storage", "format", str(tmp_path / "data"), "--add-scram", argument]) == 0
    options = listener_options("SASL_PLAINTEXT", SCRAM_SHA_512=f"{SCRAM_MODULE} required;")
    secured = Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", data_dir=tmp_path / "data", **options)
    with secured as broker, Connection(broker.bootstrap_servers) as client:
        assert log_in_scram(client, "SCRAM-SHA-512", "alice", "a=b").error_code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SCRAM-SHA-512", "equals sign in SCRAM argument"),
        ("SCRAM-SHA-1=[name=a,password=secret]", "mechanism SCRAM-SHA-1 is not supported"),
        ("SCRAM-SHA-512=name=a", r"start with \["),
        ("SCRAM-SHA-512=[password=secret]", "You must supply 'name'"),
        ("SCRAM-SHA-512=[name=a]", "one of 'password' or 'saltedpassword'"),
        ("SCRAM-SHA-512=[name=a,saltedpassword=eA==]", "You must supply 'salt'"),
        ("SCRAM-SHA-512=[name=a,password=secret,iterations=1]", "must be >= 4096"),
        ("SCRAM-SHA-512=[name=a,password=secret,iterations=99999]", "must be <= 16384"),
        ("SCRAM-SHA-512=[name=a,password=secret,salt=%]", "base64"),
        ("SCRAM-SHA-512=[name=a,password=secret,colour=red]", "Unknown SCRAM configurations: colour"),
    ],
)
def test_a_bad_argument_is_refused_without_its_password(text: str, words: str):
    with pytest.raises(ConfigError, match=words) as raised:
        parse_add_scram(text, Randomness())
    assert "secret" not in str(raised.value)
