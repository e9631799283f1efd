"""Classes that an option names: one of Kafka's own, which is built in here, or a Python class by its dotted path."""

from __future__ import annotations

from importlib import import_module
from inspect import isasyncgenfunction, iscoroutinefunction

from kafka_shim.config import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any


def load_class(
    option: str,
    name: str,
    built_in: Mapping[str, str],
    methods: Collection[str],
    awaited: Collection[str],
    optional: Collection[str],
) -> type:
    """Returns the class that the option names. `built_in` maps Kafka's class names to dotted paths of ours. `methods`
    are what the class must have, `optional` those it may have; those `awaited` may be async. Imports the module.

    Raises ConfigError, one line, if there is no such class, its module fails, or it lacks a method."""
    module_name, _, class_name = built_in.get(name, name).rpartition(".")
    ours = " and ".join(sorted(built_in)) or "none"
    try:
        found = getattr(import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"{option}={name} cannot be loaded: {error}; of Java's classes {ours} is built in, any other class must be "
            "a Python class, module.Class, on the module path"
        ) from error
    except Exception as error:  # what the module does is its user's
        raise ConfigError(f"{option}={name} cannot be loaded: {_one_line(error)}") from error
    missing = [method for method in methods if not callable(getattr(found, method, None))]
    if not isinstance(found, type) or missing:
        lacks = f"has no method {', '.join(missing)}" if missing else "is not a class"
        raise ConfigError(f"{option}={name} {lacks}")
    for method in {*methods, *optional, "configure"}.difference(awaited):
        function = getattr(found, method, None)  # what it returns would be taken for its answer
        if iscoroutinefunction(function) or isasyncgenfunction(function):
            raise ConfigError(f"{option}={name}: {method} is async, but nothing awaits it: make it a plain function")
    return found


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def make_plugin(
    option: str,
    name: str,
    built_in: Mapping[str, str],
    methods: Collection[str],
    *configuration: Any,
    awaited: Collection[str] = (),
    optional: Collection[str] = (),
) -> Any:
    """Returns an object of the class that the option names, made without arguments and, if it has `configure`,
    configured. Raises ConfigError, one line."""
    plugin_class = load_class(option, name, built_in, methods, awaited, optional)
    try:
        plugin: Any = plugin_class()
        configure = getattr(plugin, "configure", None)
        if configure is not None:
            configure(*configuration)
    except ConfigError:
        raise
    except Exception as error:  # a user's class: whatever it raises stops the start with one line
        raise ConfigError(f"{option}={name} cannot be configured: {_one_line(error)}") from error
    return plugin
