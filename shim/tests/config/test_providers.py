"""Values of options that are kept in files, directories or the environment (KIP-297, KIP-421, KIP-632, KIP-887,
KIP-993)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.client_security import read_client_security
from kafka_shim.config import BrokerConfig, ConfigError, ListenerOptions, resolve
from kafka_shim.config.properties import parse_properties
from kafka_shim.embedded import Broker
from kafka_shim.serve import configure
from kafka_shim.tests.api.admin import BROKER, DELETE, SET, alter, create, describe, new_topic, option
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE = "org.apache.kafka.common.config.provider."
FILE = {"config.providers": "file", "config.providers.file.class": PACKAGE + "FileConfigProvider"}
DIRECTORY = {"config.providers": "dir", "config.providers.dir.class": PACKAGE + "DirectoryConfigProvider"}
ENVIRONMENT = {"config.providers": "env", "config.providers.env.class": PACKAGE + "EnvVarConfigProvider"}


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    path = tmp_path / "secrets.properties"
    path.write_text("password = top secret\nretention=1234\ntype=PEM\npartitions=7\nempty=\n")
    return path


@pytest.mark.option("config.providers")
def test_a_start_takes_values_from_a_file_for_any_option(secrets: Path) -> None:
    config = BrokerConfig.parse(
        {
            **FILE,
            "num.partitions": f"${{file:{secrets}:partitions}}",
            "ssl.keystore.password": f"${{file:{secrets}:password}}",
            "listener.name.outside.ssl.keystore.type": f"${{file:{secrets}:type}}",
            "log.retention.ms": f"${{file:{secrets}:retention}}0",
        }
    )
    assert config.num_partitions == 7
    assert config.log_retention_ms == 12340
    outside = ListenerOptions(config, "OUTSIDE")
    assert outside.get("ssl.keystore.password") == "top secret"
    assert outside.get("ssl.keystore.type") == "PEM"


def test_a_text_may_have_several_references_and_what_nobody_knows_stays(secrets: Path) -> None:
    others = f'b="${{file:{secrets}:none}}" c="${{vault:x:y}}" d="${{z}}";'
    jaas = f'Module required a="${{file:{secrets}:password}}" {others}'
    assert resolve({**FILE, "sasl.jaas.config": jaas})["sasl.jaas.config"] == f'Module required a="top secret" {others}'
    assert resolve({**FILE, "o": f"<${{file:{secrets}:empty}}>"})["o"] == "<>"
    assert resolve({"o": "${file:/none:k}"}) == {"o": "${file:/none:k}"}
    assert resolve({"config.providers": "file", "o": "${file:/none:k}"})["o"] == "${file:/none:k}"
    assert resolve({**FILE, "o": "${file:key-without-a-path}"})["o"] == "${file:key-without-a-path}"


# Kafka's ConfigTransformer.DEFAULT_PATTERN.
KAFKAS = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}", re.DOTALL)


@given(st.lists(st.sampled_from(["${", "${e", "${e:", ":", "}", "e", "$", "{", "\n"]), max_size=12))
def test_a_reference_is_what_kafka_takes_for_one(pieces: list[str]) -> None:
    """The environment refuses a path, and knows no variable of these names."""
    text = "".join(pieces)
    places = [(found[3] or "", found[4]) for found in KAFKAS.finditer(text) if found[1] == "e"]
    texts = {"config.providers": "e", "config.providers.e.class": PACKAGE + "EnvVarConfigProvider", "o": text}
    first = next((path for path, _ in places if path), None)
    if first is None:
        assert resolve(texts)["o"] == text
    else:
        with pytest.raises(ConfigError, match=re.escape(f"invalid value '{first}'")):
            resolve(texts)


@pytest.mark.parametrize("text", ["${" + ":" * 32767, "${:" * 10_000, "${" * 16_000 + "}"])
def test_a_text_with_many_beginnings_of_references_is_read_once(text: str) -> None:
    """Kafka's expression would try each way to cut it: that takes weeks."""
    assert resolve({**ENVIRONMENT, "o": text})["o"] == text


def test_a_file_that_cannot_be_read_and_a_class_that_there_is_not_stop_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^Could not read properties from file /none/there$"):
        BrokerConfig.parse({**FILE, "broker.rack": "${file:/none/there:k}"})
    (tmp_path / "binary").mkdir()
    with pytest.raises(ConfigError, match=r"Could not read properties from file .*binary"):
        resolve({**FILE, "o": f"${{file:{tmp_path}/binary:k}}"})
    with pytest.raises(ConfigError, match=r"Invalid value com\.Vault for configuration config\.providers\.v\.class"):
        BrokerConfig.parse({"config.providers": "v", "config.providers.v.class": "com.Vault"})


@pytest.mark.parametrize("provider", [FILE, DIRECTORY], ids=["file", "directory"])
def test_only_allowed_paths_are_read(tmp_path: Path, provider: dict[str, str]) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "inside-not"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "k").write_text("k=v")
    name = provider["config.providers"]
    allowed = {**provider, f"config.providers.{name}.param.allowed.paths": f"/proc,{tmp_path}/./inside"}

    def at(folder: str) -> str:
        reference = f"${{{name}:{folder}{'/k' if name == 'file' else ''}:k}}"
        return resolve({**allowed, "o": reference})["o"].replace(reference, "refused")

    value = "v" if name == "file" else "k=v"
    assert at(str(inside)) == at(f"{inside}/../inside") == value
    assert at(str(outside)) == at(f"{inside}/../inside-not") == "refused"
    for paths, fault in (("inside", "Path inside is not absolute"), ("/none", "Path /none does not exist")):
        with pytest.raises(ConfigError, match=rf"^{fault} \(config\.providers\.{name}\.param\.allowed\.paths\)$"):
            resolve({**provider, f"config.providers.{name}.param.allowed.paths": paths})


def test_a_path_that_is_not_allowed_is_told_with_the_option(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    resolve({**FILE, "config.providers.file.param.allowed.paths": str(tmp_path), "o": "${file:/etc/hosts:k}"})
    (line,) = caplog.messages
    assert line.endswith(
        "/etc/hosts is not allowed to be accessed: it is not in config.providers.file.param.allowed.paths"
    )


def test_an_option_that_only_begins_like_the_providers_is_unknown() -> None:
    with pytest.raises(
        ConfigError, match=r"config\.providersX is not an option of Kafka; did you mean config\.providers\?"
    ):
        BrokerConfig.parse({"config.providersX": "file"})


def test_a_directory_has_a_file_for_each_value_with_its_whole_text(tmp_path: Path) -> None:
    (tmp_path / "folder" / "deeper").mkdir(parents=True)
    (tmp_path / "folder" / "password").write_text("a\nb\n")
    (tmp_path / "beside").write_text("not mine")

    def value(key: str, folder: str = f"{tmp_path}/folder") -> str:
        return resolve({**DIRECTORY, "o": f"${{dir:{folder}:{key}}}"})["o"]

    assert value("password") == "a\nb\n"
    for key in ("deeper", "none", "../beside"):
        assert value(key) == f"${{dir:{tmp_path}/folder:{key}}}"
    assert value("k", "/none") == "${dir:/none:k}"


def test_the_environment_has_values_as_far_as_its_pattern_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIM_A", "one")
    monkeypatch.setenv("OTHER", "two")
    texts = {**ENVIRONMENT, "a": "${env:SHIM_A}", "o": "${env:OTHER}", "n": "${env:SHIM_NONE}"}
    assert [resolve(texts)[key] for key in "aon"] == ["one", "two", "${env:SHIM_NONE}"]
    texts["config.providers.env.param.allowlist.pattern"] = "SHIM_.*"
    assert [resolve(texts)[key] for key in "ao"] == ["one", "${env:OTHER}"]
    texts["config.providers.env.param.allowlist.pattern"] = "SHIM_("
    with pytest.raises(ConfigError, match="Invalid value SHIM_"):
        resolve(texts)
    with pytest.raises(ConfigError, match="Path is not supported for EnvVarConfigProvider, invalid value '/etc'"):
        resolve({**ENVIRONMENT, "o": "${env:/etc:SHIM_A}"})


def test_a_reference_on_the_command_line_shows_no_secret(tmp_path: Path, secrets: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{name}={text}\n" for name, text in FILE.items()))
    reference = f"${{file:{secrets}:password}}"
    config = configure(None, None, str(file), [f"ssl.key.password={reference}", "ssl.keystore.password=plain"])
    assert config.given["ssl.key.password"] == "top secret"
    assert config.shown_secrets == ("ssl.keystore.password",)


def test_properties_of_a_client_may_refer_to_values_too(tmp_path: Path, secrets: Path) -> None:
    file = tmp_path / "client.properties"
    lines = {**FILE, "security.protocol": f"${{file:{secrets}:protocol}}"}
    file.write_text("".join(f"{name}={text}\n" for name, text in lines.items()))
    secrets.write_text("protocol=plaintext")
    assert read_client_security(str(file)).protocol == "PLAINTEXT"
    secrets.write_text("protocol=nonsense")
    with pytest.raises(ConfigError, match="NONSENSE is not one of"):
        read_client_security(str(file))


def test_values_of_a_file_keep_their_blanks_and_lines_end_as_in_java() -> None:
    assert parse_properties("a=b  \r\nc : d\fe\\\n   f\rg\x85=h\n# i=j\n\\u0061b=\\u0063\n") == {
        "a": "b  ",
        "c": "d\fef",
        "g\x85": "h",
        "ab": "c",
    }


# --- changed while a broker runs


@pytest.fixture
def cluster() -> Iterator[Broker]:
    with Broker(log_retention_ms=99) as broker:
        yield broker


@pytest.fixture
def client(cluster: Broker) -> Iterator[Connection]:
    with Connection(cluster.bootstrap_servers, timeout_s=60) as connection:
        yield connection


def shown(client: Connection, name: str) -> tuple[str | None, list[str | None]]:
    """The value of one of the broker's options, and those of its synonyms."""
    (entry,) = describe(client, BROKER, "1", [name]).configs
    return entry.value, [synonym.value for synonym in entry.synonyms]


def stored(client: Connection, options: dict[str, str], name: str = "1") -> tuple[int, str | None]:
    return alter(client, BROKER, name, *((key, SET, text) for key, text in options.items()))


def test_a_stored_reference_is_in_force_with_its_value_and_stays_a_reference_where_it_is_stored(
    client: Connection, secrets: Path
) -> None:
    reference = f"${{file:{secrets}:retention}}"
    assert stored(client, {**FILE, "log.retention.ms": reference}) == (0, None)
    create(client, new_topic("t"))
    assert option(client, 2, "t", "retention.ms")[0] == "1234"
    value, synonyms = shown(client, "log.retention.ms")
    assert (value, synonyms[0]) == ("1234", reference)
    # What the file says later is taken with the next change, as by Kafka.
    secrets.write_text("retention=777\n")
    assert stored(client, {"message.max.bytes": "1000"}) == (0, None)
    assert option(client, 2, "t", "retention.ms")[0] == "777"
    assert alter(client, BROKER, "1", ("log.retention.ms", DELETE, None)) == (0, None)
    assert option(client, 2, "t", "retention.ms")[0] == "99"


def test_a_change_whose_value_cannot_be_had_or_is_not_of_the_type_is_refused(client: Connection, secrets: Path) -> None:
    for reference, fault in (
        ("${file:/none:k}", "Could not read properties from file /none"),
        (f"${{file:{secrets}:password}}", "Invalid value top secret for configuration log.retention.ms: Not a number"),
        (f"${{file:{secrets}:none}}", "Invalid value ${file:"),
    ):
        code, message = stored(client, {**FILE, "log.retention.ms": reference})
        assert (code, fault in str(message)) == (42, True), message
    assert shown(client, "log.retention.ms")[0] == "99"


def test_a_password_is_never_shown_wherever_it_comes_from(client: Connection, secrets: Path) -> None:
    name = "listener.name.outside.ssl.keystore.password"
    assert stored(client, {**FILE, name: f"${{file:{secrets}:password}}"}) == (0, None)
    value, synonyms = shown(client, name)
    assert value is None
    assert set(synonyms) == {None}


def test_no_class_is_loaded_by_way_of_a_reference(client: Connection, secrets: Path) -> None:
    secrets.write_text("class=os.system\n")
    code, message = stored(client, {**FILE, "principal.builder.class": f"${{file:{secrets}:class}}"})
    assert (code, "class is loaded only if" in str(message)) == (42, True)


def test_providers_of_the_cluster_serve_texts_of_a_broker(client: Connection, secrets: Path) -> None:
    assert stored(client, FILE, "") == (0, None)
    reference = f"${{file:{secrets}:type}}"
    assert stored(client, {"listener.name.outside.ssl.keystore.type": reference}) == (0, None)
    assert shown(client, "listener.name.outside.ssl.keystore.type")[0] == "PEM"
    # A number is checked by the providers beside it alone, as by Kafka.
    assert stored(client, {"log.retention.ms": f"${{file:{secrets}:retention}}"})[0] == 42


def test_without_a_file_no_option_can_be_stored_and_a_start_goes_without_the_stored_ones(
    cluster: Broker, client: Connection, secrets: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = "listener.name.outside.ssl.keystore.type"
    values = {"log.retention.ms": f"${{file:{secrets}:retention}}", text: f"${{file:{secrets}:type}}"}
    assert stored(client, {**FILE, **values, "message.max.bytes": "999"}) == (0, None)
    secrets.unlink()
    assert stored(client, {"message.max.bytes": "1000"}, "")[0] == 42
    assert shown(client, "log.retention.ms")[0] == "1234"
    cluster.restart()
    with Connection(cluster.bootstrap_servers, timeout_s=60) as another:
        assert [shown(another, name)[0] for name in ("log.retention.ms", "message.max.bytes")] == ["99", "1048588"]
    assert f"not applied: Could not read properties from file {secrets}" in caplog.text
