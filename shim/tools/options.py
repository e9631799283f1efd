"""Parsing for those of Kafka's tools that have flat options (there: joptsimple): `--name value`, `--name=value`, unique
abbreviations. What is wrong is said on stderr and ends the tool with status 1, as in Kafka."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import NoReturn

    from kafka_shim.client.cluster import Cluster

VERSION = "4.3.1"
FLAG, VALUE, OPTIONAL, NUMBER = "flag", "value", "optional", "number"


class UsageError(Exception):
    """The words do not fit. The message is printed with the options, the exit status is 1."""


@dataclass(slots=True)
class Given:
    """What the words say: each option with its values; a flag has none."""

    values_of: dict[str, list[str]] = field(default_factory=dict)
    # The options in the order of the words, each as often as it is given.
    order: list[str] = field(default_factory=list)

    def has(self, *names: str) -> bool:
        """Whether one of these options is given."""
        return any(name in self.values_of for name in names)

    def all(self, name: str) -> list[str]:
        return self.values_of.get(name, [])

    def one(self, name: str, default: str | None = None) -> str | None:
        """The value of an option. Raises UsageError if it is given several times."""
        values = self.values_of.get(name)
        if values and len(values) > 1:
            raise UsageError(f"Found multiple arguments for option {name}, but you asked for only one")
        return values[0] if values else default

    def text(self, name: str, default: str = "") -> str:
        return self.one(name) or default

    def number(self, name: str) -> int | None:
        value = self.one(name)
        return None if value is None else int(value)

    def require(self, *names: str) -> None:
        """Raises UsageError unless all are given."""
        for name in names:
            if name not in self.values_of:
                raise UsageError(f'Missing required argument "[{name}]"')

    def exclude(self, name: str, others: Iterable[str]) -> None:
        """Raises UsageError if `name` is given with one of `others`."""
        for other in others:
            if self.has(name) and self.has(other):
                raise UsageError(f'Option "[{name}]" can\'t be used with option "[{other}]"')

    def exactly_one(self, *names: str) -> str:
        """Returns which of `names` is given. Raises UsageError unless it is one."""
        found = [name for name in names if name in self.values_of]
        if len(found) != 1:
            raise UsageError(
                "Exactly one of the following arguments is required: " + ", ".join(f"[{n}]" for n in names)
            )
        return found[0]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one tool by their names: FLAG, VALUE, OPTIONAL (value) or NUMBER."""

    about: str
    kinds: Mapping[str, str]

    def parse(self, words: Sequence[str]) -> Given:
        """Raises UsageError; `--help` and `--version` raise SystemExit."""
        given = Given()
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if word == "--":
                break
            if not word.startswith("-") or word == "-":
                continue  # Kafka's tools pass over words that belong to no option
            name, equals, value = word.lstrip("-").partition("=")
            name = self._full(name)
            kind = self.kinds.get(name, FLAG)
            values = given.values_of.setdefault(name, [])
            given.order.append(name)
            if kind == FLAG:
                continue
            if not equals:
                if kind == OPTIONAL and (at == len(words) or words[at].startswith("-")):
                    continue
                if at == len(words):
                    raise UsageError(f"Option {name} requires an argument")
                value = words[at]
                at += 1
            if kind == NUMBER:
                try:
                    int(value)
                except ValueError:
                    raise UsageError(f"Cannot parse argument '{value}' of option {name}") from None
            values.append(value)
        if given.has("help") or not words:
            raise UsageError(self.about)
        if given.has("version"):
            print(VERSION)
            raise SystemExit(0)
        return given

    def _full(self, name: str) -> str:
        known = {**self.kinds, "help": FLAG, "version": FLAG}
        if name in known:
            return name
        found = [each for each in known if each.startswith(name)]
        if len(found) != 1:
            raise UsageError(f"{name} is not a recognized option")
        return found[0]

    def usage(self) -> str:
        shown = {FLAG: "", VALUE: " <value>", OPTIONAL: " [value]", NUMBER: " <number>"}
        lines = [
            f"--{name}{shown[kind]}" for name, kind in sorted({**self.kinds, "help": FLAG, "version": FLAG}.items())
        ]
        return "".join(f"{line}\n" for line in ["Option", *lines])

    def fail(self, message: object) -> NoReturn:
        """Say what is wrong, with the options, and end with status 1."""
        sys.stderr.write(f"{message}\n{self.usage()}")
        raise SystemExit(1)


def connect(given: Given, client_id: str, properties: Mapping[str, str] | None = None) -> Cluster:
    """The cluster that `--bootstrap-server` (or `--bootstrap-controller`) and `--command-config` name, and `properties`
    over the latter. Raises ConfigError."""
    address = given.text("bootstrap-server") or given.text("bootstrap-controller")
    return connect_to(address, given.one("command-config"), client_id, properties)


def connect_to(address: str, path: str | None, client_id: str, properties: Mapping[str, str] | None = None) -> Cluster:
    """The cluster at `address`, with the properties of the file `path` and `properties` over them, and the values that
    their `config.providers` have. Raises ConfigError."""
    from kafka_shim.client.cluster import Cluster
    from kafka_shim.client_security import ClientSecurity
    from kafka_shim.config import read_properties, resolve

    found = resolve({**(read_properties(path) if path else {}), **(properties or {})})
    return Cluster(address, security=ClientSecurity(found) if found else None, client_id=client_id)


def properties_of(pairs: Iterable[str]) -> dict[str, str]:
    """`key=value` arguments; the value may be missing."""
    return {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
