"""Login modules and their options: from a `sasl.jaas.config` option (Kafka: JaasConfig, JaasContext) or from the JAAS
file that `KAFKA_OPTS` names with `-Djava.security.auth.login.config=`.

No message contains a value, because most values are passwords.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from kafka_shim.config import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILE_PROPERTY = "java.security.auth.login.config"
SECTION = "KafkaServer"
_FLAGS = frozenset({"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"})
# A comment without an end goes to that of the text, a quoted text to that of its line. A slash alone begins a comment.
_TOKEN = re.compile(
    r"""[\0- ]+|/\*.*?(?:\*/|\Z)|/[^\n\r]*|(?P<quoted>"(?:\\.|[^"\\\n\r])*|'(?:\\.|[^'\\\n\r])*)["']?|"""
    r"""(?P<word>[A-Za-z_$\xa0-\U0010ffff][\w.$\xa0-\U0010ffff-]*)|(?P<number>[-.\d][\w.]*)|(?P<other>.)""",
    re.DOTALL | re.ASCII,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


class LoginModule:
    """One entry: the name of a Java class and its options."""

    __slots__ = ("name", "options")

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self.name = name
        self.options = options

    def __repr__(self) -> str:
        return f"LoginModule({self.name}, {len(self.options)} options)"


def parse_jaas(text: str) -> LoginModule:
    """Return the one login module of a `sasl.jaas.config` option. Raises ConfigError with Kafka's message."""
    tokens = _tokens(text)
    modules = []
    for kind, token in tokens:
        modules.append(_module(kind, token, tokens))
    if not modules:
        raise ConfigError("Login module not specified in JAAS config")
    if len(modules) != 1:
        raise ConfigError(f"JAAS config property contains {len(modules)} login modules, should be 1 module")
    return modules[0]


def parse_jaas_file(text: str) -> dict[str, list[LoginModule]]:
    """Return the login modules of each section of a JAAS file. Raises ConfigError."""
    sections: dict[str, list[LoginModule]] = {}
    tokens = _tokens(text)
    for kind, name in tokens:
        if kind not in ("word", "quoted") or next(tokens, _END)[1] != "{":
            raise ConfigError("a section of a JAAS file is NAME { MODULE FLAG OPTIONS; };")
        modules = sections[name] = []
        for inner_kind, token in tokens:
            if token == "}" and inner_kind == "other":
                break
            modules.append(_module(inner_kind, token, tokens))
        if next(tokens, _END)[1] != ";":
            raise ConfigError(f"section {name} of a JAAS file ends with }};")
    return sections


def login_modules(listener: str, own_text: str | None) -> list[LoginModule]:
    """Return all login modules; a section of a JAAS file may have one for each mechanism. Raises ConfigError."""
    if own_text is not None:
        return [parse_jaas(own_text)]
    path = jaas_file()
    own_section = f"{listener.lower()}.{SECTION}"
    if path is not None:
        try:
            sections = parse_jaas_file(Path(path).read_text(encoding="utf-8"))
        except (OSError, ConfigError, ValueError) as err:
            raise ConfigError(f"{FILE_PROPERTY}: cannot use {path}: {err}") from None
        modules = sections.get(own_section) or sections.get(SECTION)
        if modules:
            return modules
    raise ConfigError(
        f"Could not find a '{SECTION}' or '{own_section}' entry in the JAAS configuration. System property "
        f"'{FILE_PROPERTY}' is {path or 'not set'}; set listener.name.{listener.lower()}.MECHANISM.sasl.jaas.config, "
        "with the mechanism in lower case"
    )


def jaas_file() -> str | None:
    """Return the path of the JAAS file, or None."""
    path = java_property(FILE_PROPERTY)
    return None if path is None else path.removeprefix("file:")


def java_property(name: str) -> str | None:
    """Return a property that `KAFKA_OPTS` gives to Kafka's JVM as `-DNAME=VALUE`, or None."""
    try:
        words = shlex.split(os.environ.get("KAFKA_OPTS", ""))
    except ValueError:
        return None
    values = [word.partition("=")[2] for word in words if word.startswith(f"-D{name}=")]
    return values[-1] if values else None


_END = ("end", "")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) as Java's StreamTokenizer does with Kafka's settings."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "quoted":
            yield kind, _ESCAPE.sub(_escaped, match[kind][1:])
        elif kind is not None:
            yield kind, match[kind]


def _escaped(found: re.Match[str]) -> str:
    text = found[1]
    return chr(int(text, 8)) if "0" <= text[0] <= "7" else _LETTERS.get(text, text)


def _module(kind: str, name: str, tokens: Iterator[tuple[str, str]]) -> LoginModule:
    if kind not in ("word", "quoted"):
        raise ConfigError("Login module not specified in JAAS config")
    kind, flag = next(tokens, _END)
    if kind == "end":
        raise ConfigError("Login module control flag not specified in JAAS config")
    if kind not in ("word", "quoted"):
        raise ConfigError("Login module control flag is not available in the JAAS config")
    if flag.upper() not in _FLAGS:
        raise ConfigError(f"Invalid login module control flag '{flag}' in JAAS config")
    options: dict[str, str] = {}
    for key_kind, key in tokens:
        if key_kind == "other" and key == ";":
            return LoginModule(name, options)
        equals, (value_kind, value) = next(tokens, _END), next(tokens, _END)
        if equals != ("other", "=") or value_kind not in ("word", "quoted"):
            raise ConfigError(f"Value not specified for key '{key}' in JAAS config")
        options[key] = value
    raise ConfigError("JAAS config entry not terminated by semi-colon")
