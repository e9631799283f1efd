"""JAAS options and files, as people have them for Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim.config import ConfigError
from kafka_shim.security.sasl.jaas import java_property, login_modules, parse_jaas, parse_jaas_file

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_one_module_with_its_options():
    module = parse_jaas(f"{PLAIN} required user_a=\"x y\" 'user_b'='say \\'hi\\'' // a comment\n /* and one */ c=d;")
    assert (module.name, module.options) == (PLAIN, {"user_a": "x y", "user_b": "say 'hi'", "c": "d"})
    assert "x y" not in repr(module)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Login module not specified in JAAS config"),
        ("= required;", "Login module not specified in JAAS config"),
        ("M", "Login module control flag not specified in JAAS config"),
        ("M ;", "Login module control flag is not available in the JAAS config"),
        ("M needed;", "Invalid login module control flag 'needed' in JAAS config"),
        ("M required a=b", "JAAS config entry not terminated by semi-colon"),
        ("M required a;", "Value not specified for key 'a' in JAAS config"),
        ("M required; N required;", "JAAS config property contains 2 login modules, should be 1 module"),
    ],
)
def test_what_cannot_be_read_has_kafkas_message(text: str, reason: str):
    with pytest.raises(ConfigError) as caught:
        parse_jaas(text)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a=b; /* no end", {"a": "b"}),
        ("a=b /*/ no end */; / a comment", {"a": "b"}),
        ('a="no end of it\n b=c;', {"a": "no end of it", "b": "c"}),
        ("a='no end of it\n=b;", None),
        ('"no end of it\n=b;', {"no end of it": "b"}),
        ("'no end of it\r=b;", {"no end of it": "b"}),
        ('a="\\101\\7\\4567";', {"a": "A\x07%67"}),
        ("a='x/y' 'b'=\"it's\";", {"a": "x/y", "b": "it's"}),
        ("a=\xa0b c=\u2028;", {"a": "\xa0b", "c": "\u2028"}),
        ("\0a\x1f=\x0b😀b;", {"a": "😀b"}),
    ],
)
def test_comments_quotes_and_escapes_are_those_of_javas_tokenizer(text: str, options: dict[str, str] | None):
    """What it makes of them was looked up with StreamTokenizer itself."""
    if options is None:
        with pytest.raises(ConfigError, match="Value not specified for key"):
            parse_jaas(f"M required {text}")
    else:
        assert parse_jaas(f"M required {text}").options == options


def test_a_file_has_sections_with_a_module_for_each_mechanism():
    sections = parse_jaas_file('KafkaServer { M required a="1"; N optional; };\ninternal.KafkaServer { M required; };')
    assert [one.name for one in sections["KafkaServer"]] == ["M", "N"]
    assert sections["KafkaServer"][0].options == {"a": "1"}
    assert list(sections) == ["KafkaServer", "internal.KafkaServer"]


@pytest.mark.parametrize("text", ["KafkaServer M required;", "KafkaServer { M required; }"])
def test_a_file_that_cannot_be_read_is_refused(text: str):
    with pytest.raises(ConfigError):
        parse_jaas_file(text)


def test_a_listener_has_its_option_then_its_section_then_that_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "jaas.conf"
    path.write_text("KafkaServer { All required; }; own.KafkaServer { Own required; };")
    monkeypatch.setenv("KAFKA_OPTS", f"-Xmx1g -Djava.security.auth.login.config={path}")
    assert login_modules("OWN", "Option required;")[0].name == "Option"
    assert login_modules("OWN", None)[0].name == "Own"
    assert login_modules("OTHER", None)[0].name == "All"
    path.write_text('Client { M required password="tell-nobody"; };')
    with pytest.raises(ConfigError, match=r"Could not find a 'KafkaServer' or 'own\.KafkaServer' entry") as caught:
        login_modules("OWN", None)
    assert "; set listener.name.own.MECHANISM.sasl.jaas.config, " in str(caught.value)
    assert "tell-nobody" not in str(caught.value)
    path.unlink()
    with pytest.raises(ConfigError, match="cannot use"):
        login_modules("OWN", None)


def test_the_last_of_a_java_property_counts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KAFKA_OPTS", "-Da.b=1 '-Da.b=two words' -Dx=y")
    assert java_property("a.b") == "two words"
    assert java_property("missing") is None
    monkeypatch.setenv("KAFKA_OPTS", "an 'open quote")
    assert java_property("a.b") is None
