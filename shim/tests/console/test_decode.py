"""What is shown of keys and values."""

from __future__ import annotations

import json

import pytest

from kafka_shim.console.decode import pretty_json, shown


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (b"plain \xc3\xa9", "text", "plain é"),
        (b"", "text", ""),
        (b'{"a":[1.10,{}],"a":1e400}', "json", '{\n  "a": [\n    1.10,\n    {}\n  ],\n  "a": 1e400\n}'),
        (b'{"a":NaN}', "text", '{"a":NaN}'),
        (b"[" * 100_000, "text", "[" * 4096),
        (b"\x00\x01\xff", "hex", "00 01 ff"),
        (b"\x1b[31mred", "hex", "1b 5b 33 31 6d 72 65 64"),
        (b"<script>", "text", "<script>"),
    ],
)
def test_what_it_is(data: bytes, kind: str, text: str) -> None:
    one = shown(data, 4096)
    assert one is not None
    assert (one["kind"], one["text"], one["size"]) == (kind, text, len(data))


def test_null_is_not_empty() -> None:
    assert shown(None, 10) is None


def test_a_long_one_is_cut_between_characters() -> None:
    assert shown("éé".encode(), 3) == {"size": 4, "cut": True, "kind": "text", "text": "é"}
    one = shown(b"\xff" * 100, 10)
    assert one == {"size": 100, "cut": True, "kind": "hex", "text": "ff ff ff ff ff"}


def test_eight_bytes_may_be_a_number() -> None:
    one = shown((-2).to_bytes(8, signed=True), 100)
    assert one is not None
    assert one["number"] == "-2"


@pytest.mark.parametrize("value", [[], {}, [[]], {"a": {"b": [1, None, 'x,{}[]:\\"']}}, [{"a": []}, 2]])
def test_pretty_json_is_the_same_json(value: object) -> None:
    text = pretty_json(json.dumps(value))
    assert text == json.dumps(value, indent=2)


def test_deep_json_grows_in_proportion() -> None:
    text = "[" * 900 + "]" * 900
    pretty = pretty_json(text)
    assert pretty is not None
    assert len(pretty) < 100 * len(text)


def test_a_decoder_is_asked_first_and_its_refusal_is_told() -> None:
    one = shown(b"abc", 2, lambda data: ("avro", "decoded"))
    assert one == {"size": 3, "kind": "avro", "text": "de", "cut": True}

    def refuse(data: bytes) -> tuple[str, str] | None:
        raise ValueError("no such schema")

    other = shown(b"abc", 10, refuse)
    assert other is not None
    assert (other["kind"], other["problem"]) == ("text", "no such schema")
