"""Generates the message modules from the definitions in Kafka's released jars.

``python -m kafka_shim.protocol.transcribe LIBS`` reads ``*.json`` from the Kafka 4.3.1 jars in the folder LIBS and
rewrites ``messages/``, ``records/``, ``api_keys.py`` and ``record_types.py`` beside this file. It takes only facts
(names, types, versions, defaults, tags), not the descriptions. The output depends only on the jars.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

KAFKA_VERSION = "4.3.1"
LINE = 120
HERE = Path(__file__).resolve().parent

# The folder of definitions in each jar, and the registry of its record types.
JARS = {
    "kafka-clients": ("common/message/", ""),
    "kafka-group-coordinator": ("common/message/", "GROUP"),
    "kafka-transaction-coordinator": ("common/message/", "TRANSACTION"),
    "kafka-share-coordinator": ("common/message/", "SHARE"),
    "kafka-metadata": ("common/metadata/", "METADATA"),
    "kafka-raft": ("common/message/", ""),
    "kafka-storage": ("message/", ""),
}
INTEGERS = {"int8", "int16", "int32", "int64", "uint16", "uint32"}
PYTHON_TYPES = dict.fromkeys(INTEGERS, "int") | {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "string16": "str",
    "uuid": "bytes",
    "bytes": "bytes",
}
# A name that is one word; the general rule would split it.
WORDS = {"KRaft": "Kraft"}

Definition = dict[str, Any]


def snake(name: str) -> str:
    """``TransactionalId`` -> ``transactional_id``; ``KRaftVersion`` -> ``kraft_version``."""
    for word, plain in WORDS.items():
        name = name.replace(word, plain)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def read_definitions(libs: Path) -> Iterator[tuple[str, Definition]]:
    """Yields (registry, definition) of every message with a valid version, ordered by jar and file name."""
    for jar, (folder, registry) in JARS.items():
        with zipfile.ZipFile(libs / f"{jar}-{KAFKA_VERSION}.jar") as archive:
            for path in sorted(archive.namelist()):
                if path.startswith(folder) and path.endswith(".json"):
                    lines = archive.read(path).decode().splitlines()
                    text = "\n".join(line for line in lines if not line.lstrip().startswith("//"))
                    definition = json.loads(text)
                    if definition["validVersions"] != "none":
                        yield registry, definition


class Field:
    """One field, with the type names of this project."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.name = snake(raw["name"])
        kind = raw["type"]
        self.is_array = kind.startswith("[]")
        self.element = kind.removeprefix("[]")
        if raw.get("flexibleVersions") == "none":
            self.element += "16"
        self.type = "[]" * self.is_array + self.element
        self.versions = raw.get("versions") or raw["taggedVersions"]
        self.nullable = _versions(raw.get("nullableVersions"))
        self.ignorable = bool(raw.get("ignorable", False))
        self.tag = int(raw.get("tag", -1))
        self.tagged = _versions(raw.get("taggedVersions"))
        self.default = self._default(raw)

    def _default(self, raw: dict[str, Any]) -> object:
        # The string "null" means null; a JSON null means that there is no default.
        given = "" if raw.get("default") is None else raw["default"]
        if given == "null":
            return None
        if self.is_array or self.element not in PYTHON_TYPES:
            return None if self.element == "records" else ()
        if self.element in INTEGERS:
            return given if isinstance(given, int) else int(given or "0", 0)
        if self.element == "bool":
            return given if isinstance(given, bool) else given == "true"
        if self.element == "float64":
            return float(given or 0)
        if self.element == "uuid":
            return "ZERO_UUID"
        return b"" if self.element == "bytes" else ("" if given == "''" else given)

    def row(self) -> str:
        cells = [f'"{self.name}"', f'"{self.type}"', f'"{self.versions}"', self._default_text(self.default)]
        rest = [
            (f'"{self.nullable}"', '""'),
            (str(self.ignorable), "False"),
            (str(self.tag), "-1"),
            (f'"{self.tagged}"', '""'),
        ]
        while rest and rest[-1][0] == rest[-1][1]:
            rest.pop()
        return ", ".join(cells + [cell for cell, _ in rest])

    def annotation(self, is_response: bool) -> str:
        if self.element == "records":
            return "Records | None" if is_response else "Buffer | None"
        plain = PYTHON_TYPES.get(self.element, self.element)
        if self.is_array:
            plain = f"list[{plain}]"
        return f"{plain} | None" if self.nullable or self.default is None else plain

    def attribute(self, is_response: bool) -> str:
        value = "EMPTY" if self.default == () else self._default_text(self.default)
        return f"{self.name}: {self.annotation(is_response)} = {value}"

    @staticmethod
    def _default_text(default: object) -> str:
        return "ZERO_UUID" if default == "ZERO_UUID" else repr(default).replace("'", '"')

    def assignment(self) -> list[str]:
        if self.default != ():
            return [f"        self.{self.name} = {self.name}"]
        fresh = "[]" if self.is_array else f"{self.element}()"
        value = f"{fresh} if {self.name} is EMPTY else {self.name}"
        one = f"        self.{self.name} = {value}"
        return [one] if len(one) <= LINE else [f"        self.{self.name} = (", f"            {value}", "        )"]


def _versions(text: str | None) -> str:
    return "" if text is None or text == "none" else text


def _range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def _flexible_from(definition: Definition) -> int | None:
    text = definition["flexibleVersions"]
    return None if text == "none" else int(text.rstrip("+"))


def _structs(definition: Definition) -> list[tuple[str, list[dict[str, Any]]]]:
    """Returns (name, fields) of every nested struct, innermost first."""
    found: dict[str, list[dict[str, Any]]] = {}

    def visit(fields: list[dict[str, Any]]) -> None:
        for field in fields:
            element = field["type"].removeprefix("[]")
            if field.get("fields"):
                visit(field["fields"])
                found[element] = field["fields"]
            elif element in common:
                visit(common[element])
                found.setdefault(element, common[element])

    common = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", ())}
    visit(definition["fields"])
    return list(found.items())


def _join(opening: str, items: list[str], closing: str, indent: str) -> list[str]:
    """Returns one line if it fits, else one item per line."""
    one = f"{indent}{opening}{', '.join(items)}{closing}"
    if len(one) <= LINE:
        return [one]
    return [f"{indent}{opening}", *(f"{indent}    {item}," for item in items), f"{indent}{closing}"]


def _class(name: str, fields: list[Field], head: list[str], is_response: bool) -> list[str]:
    names = [f'"{field.name}"' for field in fields]
    slots = ["    __slots__ = ()"] if not names else _join("__slots__ = (", names, ")", "    ")
    if len(names) == 1:
        slots = [f"    __slots__ = ({names[0]},)"]
    lines = [f"class {name}(Message):", *slots, *head]
    if not fields:
        return lines
    rows = [f"({field.row()})," for field in fields]
    if len(rows) == 1:
        lines += [f"    FIELDS = ({rows[0]})", ""]
    else:
        lines += ["    FIELDS = (", *(f"        {row}" for row in rows), "    )", ""]
    return [*lines, "    if TYPE_CHECKING:", *(f"        {field.attribute(is_response)}" for field in fields)]


def module(definition: Definition) -> str:
    """Returns the Python source of one message module."""
    name = definition["name"]
    is_response = definition["type"] == "response"
    nested = _structs(definition)
    low, high = _range(definition["validVersions"])
    flexible = _flexible_from(definition)
    head = [f"    API_KEY = {definition['apiKey']}"] if "apiKey" in definition else []
    head += [f"    MIN_VERSION = {low}", f"    MAX_VERSION = {high}"]
    head += [] if flexible is None else [f"    FLEXIBLE_FROM = {flexible}"]
    bodies: list[list[str]] = []
    for struct, raw in nested:
        bodies.append(_class(struct, [Field(f) for f in raw], [], is_response))
    bodies.append(_class(name, [Field(f) for f in definition["fields"]], head, is_response))
    text = "".join("\n\n" + "\n".join(body) + "\n" for body in bodies)
    shared = ("EMPTY", "ZERO_UUID", "Buffer", "Message", "Records")
    words = [word for word in shared if re.search(rf"\b{word}\b", text)]
    span = f"version {low}" if low == high else f"versions {low}-{high}"
    guard = "\nTYPE_CHECKING = False\n" if "TYPE_CHECKING" in text else ""
    return (
        f'"""{definition["name"]}, {span}. Written by transcribe.py: change nothing here."""\n\n'
        "from __future__ import annotations\n\n"
        f"from kafka_shim.protocol.message import {', '.join(words)}\n{guard}{text}"
    )


def is_record(definition: Definition) -> bool:
    return definition["type"] not in {"request", "response", "header"}


def module_path(definition: Definition) -> str:
    folder = "records" if is_record(definition) else "messages"
    return f"{folder}/{snake(definition['name'])}.py"


def api_keys(definitions: list[tuple[str, Definition]]) -> str:
    """Returns the source of the table of request types."""
    rows = []
    for _, definition in sorted(definitions, key=lambda pair: int(pair[1].get("apiKey", -1))):
        if definition["type"] != "request":
            continue
        low, high = _range(definition["validVersions"])
        flexible = _flexible_from(definition)
        unstable = bool(definition.get("latestVersionUnstable", False))
        listeners = tuple(definition["listeners"])
        name = definition["name"].removesuffix("Request")
        cells = [name, low, high, flexible, unstable, listeners, snake(name)]
        text = ", ".join(repr(cell) for cell in cells).replace("None", "NEVER").replace("'", '"')
        rows.append(f"    {definition['apiKey']}: ({text}),\n")
    return (
        '"""Every request type of Kafka, by api key. Written by transcribe.py: change nothing here."""\n\n'
        "from kafka_shim.protocol.message import NEVER\n\n"
        "# name, first and last valid version, first flexible one, last one is unstable, listeners with it, module\n"
        "API_KEYS: dict[int, tuple[str, int, int, int, bool, tuple[str, ...], str]] = {\n" + "".join(rows) + "}\n"
    )


def record_types(definitions: list[tuple[str, Definition]]) -> str:
    """Returns the source of the tables from a record type to its classes, one for each internal topic."""
    tables: dict[str, dict[int, str]] = {}
    kinds = {"coordinator-key": "_KEYS", "coordinator-value": "_VALUES", "metadata": "_RECORDS"}
    for registry, definition in definitions:
        if registry and definition["type"] in kinds:
            table = tables.setdefault(registry + kinds[definition["type"]], {})
            table[int(definition["apiKey"])] = f"{snake(definition['name'])}.{definition['name']}"
    text = '"""Record types of the internal topics. Written by transcribe.py: change nothing here."""\n'
    for name, table in sorted(tables.items()):
        rows = "".join(f'    {key}: "{table[key]}",\n' for key in sorted(table))
        text += f"\n{name}: dict[int, str] = {{\n{rows}}}\n"
    return text


def outputs(libs: Path) -> dict[str, str]:
    """Returns everything this script writes: path below ``shim/protocol`` -> text."""
    definitions = list(read_definitions(libs))
    files = {module_path(definition): module(definition) for _, definition in definitions}
    if len(files) != len(definitions):
        raise ValueError("two messages share a module")
    files["messages/__init__.py"] = '"""Requests, responses and headers, one module each."""\n'
    files["records/__init__.py"] = '"""Records of internal topics, and other data that is stored, one module each."""\n'
    files["api_keys.py"] = api_keys(definitions)
    files["record_types.py"] = record_types(definitions)
    return files


def main() -> None:
    files = outputs(Path(sys.argv[1]))
    for folder in ("messages", "records"):
        (HERE / folder).mkdir(exist_ok=True)
        for old in (HERE / folder).glob("*.py"):
            if f"{folder}/{old.name}" not in files:
                old.unlink()
    for path, text in files.items():
        (HERE / path).write_text(text)
    print(f"{len(files)} files")


if __name__ == "__main__":
    main()
