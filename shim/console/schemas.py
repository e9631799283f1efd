"""Keys and values by a schema: Avro and JSON by a schema registry, Avro and Protobuf by files.

What a registry's serializers write begins with a zero byte and the schema's id in four. Payloads are hostile: one that
does not fit its schema, nests without end or repeats what takes no bytes is shown as bytes, with the reason.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from http.client import HTTPException
from importlib import import_module
from io import BytesIO
from pathlib import Path

from kafka_shim.console.decode import pretty_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from kafka_shim.console.decode import Decoder

    # Takes the payload; returns its text. Raises ValueError.
    Reader = Callable[[bytes], str]

HEADER_BYTES = 5
PATIENCE_S = 3.0
LARGEST_SCHEMA_BYTES = 1 << 20
MOST_SCHEMAS = 500
# How long a registry that did not answer is not asked again.
PAUSE_S = 10.0
# What may come of bytes that do not fit their schema.
MISFITS = (ValueError, EOFError, IndexError, KeyError, TypeError, OverflowError, RecursionError, ArithmeticError)


class SchemaError(Exception):
    """A schema file or an option is wrong; the message is for people."""


class Schemas:
    """The schemas that were named. Thread-safe."""

    def __init__(self, registry: str = "", files: Iterable[str] = ()) -> None:
        """`registry`: its URL; `files`: TOPIC=FILE.avsc, or TOPIC=FILE:MESSAGE of a Protobuf descriptor set. Raises
        SchemaError."""
        self._registry = registry.rstrip("/")
        # Without the proxies of the environment: a registry stands beside its brokers.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        if registry:
            _avro()
        self._of_topic = dict(_read_option(text) for text in files)
        self._lock = threading.Lock()
        self._known: dict[int, tuple[str, Reader]] = {}
        self._refused: dict[int, tuple[float, str]] = {}

    def decoder(self, topic: str, *, is_key: bool) -> Decoder | None:
        """Return what decodes keys or values of a topic."""
        file = None if is_key else self._of_topic.get(topic)
        if file is not None:
            kind, read = file
            return lambda data: (kind, read(data))
        return self._by_registry if self._registry else None

    def _by_registry(self, data: bytes) -> tuple[str, str] | None:
        if len(data) < HEADER_BYTES or data[0] != 0:
            return None
        number = int.from_bytes(data[1:HEADER_BYTES])
        with self._lock:
            known = self._known.get(number)
            if known is None:
                self._check_refused(number)
                try:
                    known = self._fetch(number)
                except ValueError as error:
                    if len(self._refused) >= MOST_SCHEMAS:
                        self._refused.clear()
                    self._refused[number] = time.monotonic() + PAUSE_S, str(error)
                    raise
                if len(self._known) >= MOST_SCHEMAS:
                    self._known.clear()
                self._known[number] = known
        kind, read = known
        return kind, read(data[HEADER_BYTES:])

    def _check_refused(self, number: int) -> None:
        for each in (number, -1):
            until_s, message = self._refused.get(each, (0.0, ""))
            if time.monotonic() < until_s:
                raise ValueError(message)

    def _fetch(self, number: int) -> tuple[str, Reader]:
        """Return how a schema's payloads are read. Raises ValueError."""
        url = f"{self._registry}/schemas/ids/{number}"
        try:
            with self._opener.open(url, timeout=PATIENCE_S) as answer:
                schema = json.loads(answer.read(LARGEST_SCHEMA_BYTES))
            kind, text = schema.get("schemaType", "AVRO"), schema["schema"]
            if kind == "JSON":
                return "json schema", _as_json
            if kind != "AVRO":
                raise ValueError(f"schema {number} is {kind}: the console reads only AVRO and JSON of a registry")
            return "avro", avro_reader(json.loads(text))
        except urllib.error.HTTPError as error:
            raise ValueError(f"the registry did not return schema {number}: HTTP {error.code}") from None
        except (OSError, HTTPException) as error:
            message = f"no schema registry at {self._registry}: {error}"
            self._refused[-1] = time.monotonic() + PAUSE_S, message
            raise ValueError(message) from None
        except (KeyError, TypeError, AttributeError, RecursionError, SchemaError) as error:
            raise ValueError(f"schema {number} cannot be read: {error}") from None


def avro_reader(schema: Any) -> Reader:
    """Return what reads payloads of an Avro schema. Raises SchemaError."""
    avro = _avro()
    try:
        named: dict[str, Any] = {}
        parsed = import_module("fastavro.schema").parse_schema(schema, named)
        _check_repeats(parsed, _Sizes(named))
    except SchemaError:
        raise
    except Exception as error:  # the parser's errors have no common class but this
        raise SchemaError(f"not an Avro schema: {error}") from None

    def read(data: bytes) -> str:
        stream = BytesIO(data)
        try:
            value = avro.schemaless_reader(stream, parsed, None)
            if stream.read(1):
                raise ValueError("it has bytes after its end")
            return json.dumps(value, indent=2, ensure_ascii=False, default=_plain)
        except MISFITS as error:
            raise ValueError(f"it does not fit its schema: {error or type(error).__name__}") from None

    return read


def protobuf_reader(descriptors: bytes, message: str) -> Reader:
    """Return what reads messages of a Protobuf descriptor set (`protoc --include_imports -o`). Raises SchemaError."""
    try:
        descriptor_pb2 = import_module("google.protobuf.descriptor_pb2")
        pool_module = import_module("google.protobuf.descriptor_pool")
        factory = import_module("google.protobuf.message_factory")
        json_format = import_module("google.protobuf.json_format")
        decode_error = import_module("google.protobuf.message").DecodeError
    except ImportError:
        raise SchemaError("Protobuf needs the package protobuf: pip install protobuf") from None
    try:
        pool = pool_module.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
            pool.Add(file)
        made = factory.GetMessageClass(pool.FindMessageTypeByName(message))
    except KeyError:
        raise SchemaError(f"the descriptor set has no message {message}") from None
    except (decode_error, TypeError) as error:
        raise SchemaError(f"not a descriptor set: {error}") from None

    def read(data: bytes) -> str:
        try:
            one = made.FromString(data)
            return str(json_format.MessageToJson(one, preserving_proto_field_name=True, ensure_ascii=False))
        except (decode_error, json_format.Error, *MISFITS) as error:
            raise ValueError(f"it does not fit its schema: {error}") from None

    return read


def _read_option(text: str) -> tuple[str, tuple[str, Reader]]:
    topic, equals, rest = text.partition("=")
    if not (topic and equals and rest):
        raise SchemaError(f"{text!r} is not TOPIC=FILE.avsc or TOPIC=FILE:MESSAGE")
    try:
        if rest.endswith((".avsc", ".json")):
            return topic, ("avro", avro_reader(json.loads(Path(rest).read_bytes())))
        path, colon, message = rest.rpartition(":")
        if not colon:
            raise SchemaError(f"{text!r} is not TOPIC=FILE.avsc or TOPIC=FILE:MESSAGE")
        return topic, ("protobuf", protobuf_reader(Path(path).read_bytes(), message))
    except OSError as error:
        raise SchemaError(f"{error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise SchemaError(f"{rest}: not JSON: {error}") from None


def _avro() -> Any:
    """The reader in Python: that in C ends the process where data nest without end."""
    try:
        return import_module("fastavro._read_py")
    except ImportError:
        raise SchemaError("Avro needs the package fastavro: pip install fastavro") from None


def _check_repeats(schema: Any, sizes: _Sizes) -> None:
    """Refuse arrays of what takes no bytes: a payload of ten could repeat it without end. Raises SchemaError."""
    if isinstance(schema, list):
        for branch in schema:
            _check_repeats(branch, sizes)
    elif isinstance(schema, dict):
        if schema.get("type") == "array":
            items = schema.get("items")
            if sizes.takes_nothing(items):
                raise SchemaError("an array must not have items that take no bytes")
            _check_repeats(items, sizes)
        _check_repeats(schema.get("values"), sizes)
        for field in schema.get("fields", ()):
            _check_repeats(field["type"], sizes)
        if isinstance(schema.get("type"), dict | list):
            _check_repeats(schema["type"], sizes)


class _Sizes:
    """Which types of a schema take no bytes. Types that are declared once are named elsewhere."""

    def __init__(self, named: dict[str, Any]) -> None:
        self._named = named
        # A record that contains itself takes some, or has no end, which the reader tells.
        self._known: dict[str, bool] = {}

    def takes_nothing(self, schema: Any) -> bool:
        """Whether values of this type take no bytes."""
        if isinstance(schema, str) and schema in self._named:
            if schema not in self._known:
                self._known[schema] = False
                self._known[schema] = self.takes_nothing(self._named[schema])
            return self._known[schema]
        if not isinstance(schema, dict):
            return bool(schema == "null")
        kind = schema.get("type")
        if kind in ("record", "error"):
            return all(self.takes_nothing(field["type"]) for field in schema["fields"])
        if kind == "fixed":
            return bool(schema["size"] == 0)
        return kind == "null" or (isinstance(kind, dict) and self.takes_nothing(kind))


def _as_json(data: bytes) -> str:
    text = data.decode()
    return pretty_json(text) or text


def _plain(value: object) -> str:
    return value.hex(" ") if isinstance(value, bytes) else str(value)
