"""Values of options that are kept elsewhere: `config.providers` and references `${NAME:PATH:KEY}` or `${NAME:KEY}`.

`config.providers` lists names; `config.providers.NAME.class` is one of Kafka's three classes, and
`config.providers.NAME.param.PARAMETER` its parameters:

| Class | PATH | KEY | Parameter |
| --- | --- | --- | --- |
| FileConfigProvider | a properties file | one of its keys | `allowed.paths` |
| DirectoryConfigProvider | a directory | a file in it, whose whole text is the value | `allowed.paths` |
| EnvVarConfigProvider | none | an environment variable | `allowlist.pattern` |

A reference to a provider or a key that there is not stays as it is, as in Kafka. KIP-297, KIP-421, KIP-632, KIP-887,
KIP-993; AbstractConfig.resolveConfigVariables, ConfigTransformer and AllowedPaths of Kafka 4.3.1.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path, PurePosixPath

from kafka_shim.config.defaults import ConfigError
from kafka_shim.config.properties import decode_properties, parse_properties

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    # (path, key) -> the value, or None if there is none.
    Provider = Callable[[str, str], str | None]

logger = logging.getLogger(__name__)

OPTION = "config.providers"
_PACKAGE = "org.apache.kafka.common.config.provider."


def is_of_providers(name: str) -> bool:
    """Whether the option says where values come from, and has no other effect."""
    return name == OPTION or name.startswith(f"{OPTION}.")


def resolve(options: Mapping[str, str], providers_from: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the options with the values that their references stand for. `providers_from` are the options that have
    the providers; the same ones, if it is None.

    Raises ConfigError if a provider cannot be made, or a file or directory that is referred to cannot be read.
    """
    providers = _providers(options if providers_from is None else providers_from)
    if not providers:
        return dict(options)

    return {name: _with_values(text, providers) for name, text in options.items()}


def _with_values(text: str, providers: Mapping[str, Provider]) -> str:
    """Returns the text with the values of its references ${PROVIDER:KEY} and ${PROVIDER:PATH:KEY}. They begin with the
    first `${` since the last brace was closed, and a key may contain colons, as in Kafka. Reads a text once."""
    *parts, rest = text.split("}")
    found = []
    for part in parts:
        before, _, reference = part.partition("${")
        name, _, place = reference.partition(":")
        provider = providers.get(name) if ":" in reference else None
        path, colon, key = place.partition(":")
        value = None
        if provider is not None:
            value = provider(path, key) if colon else provider("", path)
        found.append(f"{part}}}" if value is None else before + value)
    return "".join(found) + rest


def _providers(options: Mapping[str, str]) -> dict[str, Provider]:
    made = {}
    for name in filter(None, options.get(OPTION, "").split(",")):
        class_option = f"{OPTION}.{name}.class"
        class_name = options.get(class_option)
        if class_name is None:
            continue
        make = _CLASSES.get(class_name)
        if make is None:
            raise ConfigError(
                f"Invalid value {class_name} for configuration {class_option}: Could not load config provider class or "
                f"one of its dependencies; there are {', '.join(_CLASSES)}"
            )
        prefix = f"{OPTION}.{name}.param."
        made[name] = make(_Parameters(prefix, options))
    return made


class _Parameters:
    """The parameters of one provider."""

    __slots__ = ("_options", "_prefix")

    def __init__(self, prefix: str, options: Mapping[str, str]) -> None:
        self._prefix = prefix
        self._options = options

    def option(self, name: str) -> str:
        """The option that sets this parameter."""
        return self._prefix + name

    def get(self, name: str, default: str) -> str:
        """The text of a parameter."""
        return self._options.get(self.option(name), default)


# --- the three providers


def _of_files(parameters: _Parameters) -> Provider:
    allowed = _AllowedPaths(parameters)

    def get(path: str, key: str) -> str | None:
        checked = allowed.checked(path)
        if checked is None:
            return None
        try:
            return parse_properties(decode_properties(checked.read_bytes())).get(key)
        except (OSError, ValueError):  # no file that can be read, or no path at all
            raise ConfigError(f"Could not read properties from file {path}") from None

    return get


def _of_directories(parameters: _Parameters) -> Provider:
    allowed = _AllowedPaths(parameters)

    def get(path: str, key: str) -> str | None:
        checked = allowed.checked(path)
        if checked is None:
            return None
        # A key is the name of a file in the directory, never a way out of it.
        if not checked.is_dir():
            logger.warning("The path %s is not a directory", path)
            return None
        if "/" in key or not (checked / key).is_file():
            return None
        try:
            return (checked / key).read_bytes().decode("utf-8")
        except (OSError, ValueError):
            raise ConfigError(f"Could not read file {checked / key} for property {key}") from None

    return get


def _of_environment(parameters: _Parameters) -> Provider:
    text = parameters.get("allowlist.pattern", ".*")
    try:
        pattern = re.compile(text, re.ASCII)
    except re.error as err:
        option = parameters.option("allowlist.pattern")
        raise ConfigError(f"Invalid value {text} for configuration {option}: {err}") from None

    def get(path: str, key: str) -> str | None:
        if path:
            raise ConfigError(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'")
        return os.environ.get(key) if pattern.fullmatch(key) else None

    return get


class _AllowedPaths:
    """The parameter `allowed.paths`. Paths are compared by their names, as in Kafka: symbolic links are followed."""

    def __init__(self, parameters: _Parameters) -> None:
        """Raises ConfigError."""
        self._option = parameters.option("allowed.paths")
        text = parameters.get("allowed.paths", "")
        try:
            self._allowed = None if not text else tuple(map(_existing, text.rstrip(",").split(",")))
        except ConfigError as err:
            raise ConfigError(f"{err} ({self._option})") from None

    def checked(self, path: str) -> Path | None:
        """Return the path to read, or None where there is none or it is not allowed."""
        if not path:
            return None
        if self._allowed is None:
            return Path(path)
        normal = _normal(path)
        if any(normal.is_relative_to(one) for one in self._allowed):
            return Path(normal)
        logger.warning("The path %s is not allowed to be accessed: it is not in %s", path, self._option)
        return None


def _existing(text: str) -> PurePosixPath:
    path = _normal(text)
    if not path.is_absolute():
        raise ConfigError(f"Path {path if text else ''} is not absolute")
    if not Path(path).exists():
        raise ConfigError(f"Path {path} does not exist")
    return path


def _normal(text: str) -> PurePosixPath:
    """The path without `.` and `..`, by its text alone."""
    return PurePosixPath(re.sub("^/+", "/", os.path.normpath(text)))


_CLASSES: dict[str, Callable[[_Parameters], Provider]] = {
    _PACKAGE + "FileConfigProvider": _of_files,
    _PACKAGE + "DirectoryConfigProvider": _of_directories,
    _PACKAGE + "EnvVarConfigProvider": _of_environment,
}
