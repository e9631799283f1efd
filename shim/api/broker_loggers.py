"""The broker's loggers as config resources (KIP-412): their levels can be read and set, but do not survive a
restart.
"""

from __future__ import annotations

import logging

from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = "root"
SET, DELETE = 0, 1

# Log4j's level names, which clients send.
LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def loggers() -> dict[str, logging.Logger]:
    """Returns the root logger and the loggers of the broker's modules, by name."""
    own = {
        name: logging.getLogger(name)
        for name in sorted(logging.root.manager.loggerDict)
        if name == "kafka_shim" or name.startswith("kafka_shim.")
    }
    return {ROOT: logging.getLogger(), **own}


def level_name(level: int) -> str:
    """Returns the closest of Kafka's level names."""
    return next((name for name, number in reversed(LEVELS.items()) if level >= number and name != "TRACE"), "DEBUG")


def alter(node_id: int, name: str, changes: Sequence[tuple[str, int, str | None]], *, validate_only: bool) -> None:
    """Set levels of loggers. `changes` are (logger, operation, level). Raises KafkaError, and then changes none."""
    if not name.lstrip("-").isdecimal():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {node_id}, but received {name}")
    known = loggers()
    for logger, operation, level in changes:
        if operation not in (SET, DELETE):
            word = "APPEND" if operation == 2 else "SUBTRACT"
            reason = f"{word} operation is not allowed for the BROKER_LOGGER resource"
            raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
        if logger not in known:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {logger} does not exist!")
        if operation == SET and (level or "").upper() not in LEVELS:
            reason = (
                f"Cannot set the log level of {logger} to {level} as it is not a supported log level. "
                f"Valid log levels are {', '.join(sorted(LEVELS))}"
            )
            raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
        if operation == DELETE and logger == ROOT:
            reason = "Removing the log level of the root logger is not allowed"
            raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    if not validate_only:
        for logger, operation, level in changes:
            known[logger].setLevel(LEVELS[(level or "").upper()] if operation == SET else logging.NOTSET)
