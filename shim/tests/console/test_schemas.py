"""Keys and values by Avro and Protobuf, from a registry and from files."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2

from kafka_shim.cext import builder
from kafka_shim.console import schemas
from kafka_shim.console.metrics import MetricsReader
from kafka_shim.console.schemas import SchemaError, Schemas, avro_reader
from kafka_shim.embedded import Broker
from kafka_shim.http.server import HttpServer, Request, Response
from kafka_shim.tests.console.asking import console_of, get, stranger
from kafka_shim.tests.produced import make_topic, produce
from kafka_shim.wire_client import Connection

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "raw", "type": "bytes"},
    ],
}
NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
NULLS = {"type": "record", "name": "N", "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}]}
EMPTIES = {"type": "array", "items": {"type": "record", "name": "E", "fields": []}}


def named(first: dict[str, Any]) -> dict[str, Any]:
    """A record whose first field declares a type, and whose second is an array of it, by a record around it."""
    around = {"type": "record", "name": "Around", "fields": [{"name": "c", "type": "first.T"}]}
    fields = [{"name": "a", "type": first}, {"name": "b", "type": around}]
    fields.append({"name": "d", "type": {"type": "array", "items": "Around"}})
    return {"type": "record", "name": "R", "fields": fields}


NAMED_RECORD = named({"type": "record", "name": "first.T", "fields": []})
NAMED_FIXED = named({"type": "fixed", "name": "T", "namespace": "first", "size": 0})
VALUE = {"id": 7, "note": "é", "at": datetime(2026, 1, 2, tzinfo=UTC), "raw": b"\x01\xff"}
SHOWN = {"id": 7, "note": "é", "at": "2026-01-02 00:00:00+00:00", "raw": "01 ff"}


def avro(schema: Any, value: object) -> bytes:
    stream = BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def framed(number: int, payload: bytes) -> bytes:
    return b"\x00" + number.to_bytes(4) + payload


class Registry:
    """A schema registry as far as its readers see it: Confluent's /schemas/ids/ID, over real HTTP."""

    def __init__(self) -> None:
        self.schemas = {1: ("AVRO", json.dumps(ORDER)), 2: ("JSON", "{}"), 3: ("PROTOBUF", 'syntax = "proto3";')}
        self.asked: list[str] = []
        self.server = HttpServer(("127.0.0.1", 0), self.answer)
        self.server.start()

    def answer(self, request: Request) -> Response:
        self.asked.append(request.path)
        number = int(request.path.rpartition("/")[2])
        if number not in self.schemas:
            return Response(404, b'{"error_code":40403}')
        kind, text = self.schemas[number]
        told = {"schema": text} if kind == "AVRO" else {"schema": text, "schemaType": kind}
        return Response(200, json.dumps(told).encode(), "application/json")


@pytest.fixture
def registry() -> Iterator[Registry]:
    made = Registry()
    yield made
    made.server.stop()


def test_a_registrys_records_are_decoded_and_searched(registry: Registry, broker: Broker, client: Connection) -> None:
    make_topic(client, "t", 1)
    values = [framed(1, avro(ORDER, VALUE)), framed(2, b'{"a":1}'), framed(3, b"x"), framed(9, b"x"), b"plain"]
    produce(client, "t", 0, bytes(builder.build([(None, value, 1, []) for value in values])))
    console = console_of(broker, schemas=Schemas(registry.server.address))
    rows = [row["value"] for row in get(console, "records", topic="t", direction="forward")["records"]]
    assert [row["kind"] for row in rows] == ["avro", "json schema", "hex", "hex", "text"]
    assert json.loads(rows[0]["text"]) == SHOWN
    assert "PROTOBUF" in rows[2]["problem"]
    assert "did not return schema 9" in rows[3]["problem"]
    assert len(get(console, "records", topic="t", contains="2026-01-02")["records"]) == 1
    assert sorted(registry.asked) == [f"/schemas/ids/{number}" for number in (1, 2, 3, 9)]  # each once
    console.close()


def test_no_proxy_of_the_environment_is_asked(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is set for the internet knows no registry of this machine, and would see the token for the metrics."""
    asked: list[str | None] = []

    def answer(request: Request) -> Response:
        asked.append(request.headers.get("Authorization"))
        return Response(502, b"")

    proxy = HttpServer(("127.0.0.1", 0), answer)
    proxy.start()
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, proxy.address)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    try:
        decode = Schemas(registry.server.address).decoder("t", is_key=True)
        assert decode is not None
        assert decode(framed(2, b'{"a":1}')) == ("json schema", '{\n  "a": 1\n}')
        assert json.loads(MetricsReader(f"{registry.server.address}/schemas/ids/2", token="s3cret")())["schema"] == "{}"
    finally:
        proxy.stop()
    assert asked == []


def test_a_registry_that_is_gone_is_asked_once(registry: Registry) -> None:
    decode = Schemas(registry.server.address).decoder("t", is_key=True)
    assert decode is not None
    registry.server.stop()
    for number in (1, 2, 1):
        with pytest.raises(ValueError, match="no schema registry at"):
            decode(framed(number, b"x"))
    registry.server = HttpServer(("127.0.0.1", 0), registry.answer)
    registry.server.start()


def test_what_is_no_registry_is_told() -> None:
    with stranger(b"220 ready\r\n") as address:
        decode = Schemas(address).decoder("t", is_key=True)
        assert decode is not None
        with pytest.raises(ValueError, match="no schema registry at"):
            decode(framed(1, b"x"))


def test_payloads_that_do_not_fit_are_told(tmp_path: Path) -> None:
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(ORDER))
    decode = Schemas(files=[f"t={path}"]).decoder("t", is_key=False)
    assert decode is not None
    kind, text = decode(avro(ORDER, VALUE)) or ("", "")
    assert (kind, text) == ("avro", json.dumps(SHOWN, indent=2, ensure_ascii=False))
    whole = avro(ORDER, VALUE)
    for wrong in (b"", whole[:-1], whole + b"x", b"\xff" * 30, b"\x02\x02\x7f"):
        with pytest.raises(ValueError, match="does not fit"):
            decode(wrong)
    assert Schemas(files=[f"t={path}"]).decoder("t", is_key=True) is None
    assert Schemas(files=[f"t={path}"]).decoder("u", is_key=False) is None


def test_nesting_without_end_is_refused_and_ends_nothing() -> None:
    """The reader in C would end the process here."""
    read = avro_reader(NODE)
    caught: list[str] = []

    def deep() -> None:
        try:
            read(b"\x02" * 500_000)
        except ValueError as error:
            caught.append(str(error))

    thread = threading.Thread(target=deep)  # as a request runs
    thread.start()
    thread.join()
    assert "does not fit" in caught[0]


@pytest.mark.parametrize("schema", [NULLS, "nonsense", {"type": "record"}, EMPTIES, NAMED_RECORD, NAMED_FIXED])
def test_schemas_that_cannot_be_read_safely_are_refused(schema: object) -> None:
    with pytest.raises(SchemaError):
        avro_reader(schema)


def test_arrays_of_a_type_that_is_named_are_read_if_it_takes_bytes() -> None:
    schema = named({"type": "fixed", "name": "first.T", "size": 1})
    value = {"a": b"\x01", "b": {"c": b"\x02"}, "d": [{"c": b"\x03"}]}
    assert json.loads(avro_reader(schema)(avro(schema, value)))["d"] == [{"c": "03"}]
    tree = {"type": "record", "name": "Tree", "fields": [{"name": "below", "type": {"type": "array", "items": "Tree"}}]}
    assert json.loads(avro_reader(tree)(avro(tree, {"below": [{"below": []}]}))) == {"below": [{"below": []}]}


def test_protobuf_by_a_descriptor_set(tmp_path: Path) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    message.field.add(name="order_id", number=1, type="TYPE_INT32", label="LABEL_OPTIONAL")
    message.field.add(name="note", number=2, type="TYPE_STRING", label="LABEL_OPTIONAL")
    path = tmp_path / "all.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    decode = Schemas(files=[f"t={path}:shop.Order"]).decoder("t", is_key=False)
    assert decode is not None
    kind, text = decode(b"\x08\x07\x12\x02hi") or ("", "")
    assert (kind, json.loads(text)) == ("protobuf", {"order_id": 7, "note": "hi"})
    with pytest.raises(ValueError, match="does not fit"):
        decode(b"\x12\x7f")
    for wrong in (f"t={path}:shop.Other", f"t={path}", f"{path}", f"t={tmp_path}/missing.avsc", "t=/x/y.desc:a.B"):
        with pytest.raises(SchemaError):
            Schemas(files=[wrong])
    (tmp_path / "bad.avsc").write_text("{")
    (tmp_path / "bad.desc").write_bytes(b"\xff\xff")
    for wrong in (f"t={tmp_path}/bad.avsc", f"t={tmp_path}/bad.desc:a.B"):
        with pytest.raises(SchemaError):
            Schemas(files=[wrong])


def test_a_package_that_is_missing_is_named_with_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastavro._read_py", None)
    monkeypatch.setitem(sys.modules, "google.protobuf.message_factory", None)
    (tmp_path / "order.avsc").write_text('"string"')
    (tmp_path / "all.desc").write_bytes(b"")
    with pytest.raises(SchemaError, match=r"pip install fastavro$"):
        Schemas(files=[f"t={tmp_path}/order.avsc"])
    with pytest.raises(SchemaError, match=r"pip install protobuf$"):
        Schemas(files=[f"t={tmp_path}/all.desc:shop.Order"])


def test_schemas_of_a_registry_are_bounded(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "MOST_SCHEMAS", 2)
    registry.schemas = {number: ("AVRO", json.dumps("long")) for number in range(5)}
    made = Schemas(registry.server.address)
    decode = made.decoder("t", is_key=False)
    assert decode is not None
    assert [(decode(framed(number, b"\x0e")) or ("", ""))[1] for number in range(5)] == ["7"] * 5
    assert len(made._known) <= 2
