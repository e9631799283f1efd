"""Which option has an effect, which tests show it, and the same tests with the option taken away.

A test names the options whose effect it shows: `@pytest.mark.option("log.retention.ms", "topic:retention.ms")`. Names
without a level are the broker's. With KAFKA_SHIM_WITHOUT_OPTION=NAME in the environment this option is never set, and
every test that names it must fail: `python scripts/options.py prove`.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kafka_shim.config import (
    BROKER_OPTIONS,
    CLIENT_METRICS_OPTIONS,
    GROUP_OPTIONS,
    TOPIC_OPTIONS,
    BrokerConfig,
    Option,
    TopicConfig,
    parse,
    providers,
    refusal,
)
from kafka_shim.metadata.image import RESOURCE_GROUP, Image

TESTS = Path(__file__).resolve().parents[1]
SOURCES = TESTS.parent
VARIABLE = "KAFKA_SHIM_WITHOUT_OPTION"
TABLES: dict[str, dict[str, Option]] = {
    "": BROKER_OPTIONS,
    "topic:": TOPIC_OPTIONS,
    "group:": GROUP_OPTIONS,
    "client-metrics:": CLIENT_METRICS_OPTIONS,
}


def states() -> dict[str, str]:
    """Option with its level -> "effect", "refused", or why it has no effect."""
    found = {}
    for level, table in TABLES.items():
        for name, option in table.items():
            missing = refusal(name)
            found[level + name] = f"refused: {missing}" if missing else option.idle_reason or "effect"
    return found


def with_effect() -> set[str]:
    return {name for name, state in states().items() if state == "effect"}


def marked_tests() -> dict[str, list[str]]:
    """Option -> the tests that name it, as node ids under `shim/tests`."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for name in _marked(node):
                    found.setdefault(name, []).append(f"{path.relative_to(TESTS)}::{node.name}")
    return found


def _marked(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.option":
            for argument in decorator.args:
                yield ast.literal_eval(argument)


@functools.cache
def reads() -> tuple[set[str], set[str]]:
    """(attributes read from a configuration, texts) in the code outside of `shim/config` and of tests."""
    attributes, texts = set(), set()
    for path in SOURCES.rglob("*.py"):
        folders = path.relative_to(SOURCES).parts
        if folders[0] in ("tests", "config") or "messages" in folders or "records" in folders:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                holder = node.value
                if getattr(holder, "attr", getattr(holder, "id", "")) in ("config", "_config"):
                    attributes.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
    return attributes, texts


def take_away(label: str) -> None:
    """From now on the option is never set in this process."""
    level, _, name = label.rpartition(":")
    if level == "topic":
        _take_from_topics(name)
    elif level == "group":
        _take_from_groups(name)
    else:
        _take_from_brokers(name)


def _take_from_topics(name: str) -> None:
    really = TopicConfig._set

    def put(self: TopicConfig, option: str, text: str) -> None:
        if option != name:
            really(self, option, text)

    TopicConfig._set = put  # type: ignore[method-assign, assignment]


def _take_from_groups(name: str) -> None:
    really = Image.config_of

    def config_of(self: Image, kind: int, resource: str) -> dict[str, str]:
        stored = really(self, kind, resource)
        return {key: value for key, value in stored.items() if kind != RESOURCE_GROUP or key != name}

    Image.config_of = config_of  # type: ignore[method-assign, assignment]


def _take_from_brokers(name: str) -> None:
    attribute = name.replace(".", "_")
    really = parse._apply

    def is_it(option: str) -> bool:
        return option == name or (option.startswith("listener.name.") and option.endswith(f".{name}"))

    def put(self: BrokerConfig, key: str, value: Any) -> None:
        if key == "given":
            value = {option: text for option, text in value.items() if not is_it(option)}
        if key != attribute:
            object.__setattr__(self, key, value)

    def apply(config: BrokerConfig, values: Mapping[str, Any]) -> None:
        really(config, {option: value for option, value in values.items() if option != name})

    if name == providers.OPTION:
        providers.resolve = lambda options, providers_from=None: dict(options)
    BrokerConfig.__setattr__ = put  # type: ignore[method-assign, assignment]
    parse._apply = apply
