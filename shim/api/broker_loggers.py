"""The broker's loggers as config resources (KIP-412): their levels can be read and set, but do not survive a
restart.

They are the root logger, the loggers of this broker's modules, and Kafka's own names for what a module of this broker
does, so that tools and runbooks which set a level by Kafka's name find it. A level set by such a name holds for the
module. A name without a level of its own shows that of its nearest ancestor, as in Log4j.
"""

from __future__ import annotations

import logging

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.config_checks import node_id_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# As of other options that change.
announcer = logging.getLogger("kafka_shim.metadata")
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

# Kafka's logger -> the logger of the module that does its work here.
KAFKA_NAMES = {
    "kafka": "kafka_shim",
    "org.apache.kafka": "kafka_shim",
    "kafka.coordinator.transaction.TransactionCoordinator": "kafka_shim.txn",
    "kafka.log.LogCleaner": "kafka_shim.storage.cleaner",
    "kafka.log.LogManager": "kafka_shim.storage.logs",
    "kafka.network.DataPlaneAcceptor": "kafka_shim.acceptor",
    "kafka.network.SocketServer": "kafka_shim.connection",
    "kafka.request.logger": "kafka_shim.request",
    "kafka.server.BrokerServer": "kafka_shim.server",
    "kafka.server.ControllerServer": "kafka_shim.metadata",
    "kafka.server.KafkaApis": "kafka_shim.api",
    "kafka.server.KafkaRequestHandler": "kafka_shim.dispatch",
    "kafka.server.ReplicaManager": "kafka_shim.storage",
    "org.apache.kafka.controller.QuorumController": "kafka_shim.metadata.store",
    "org.apache.kafka.coordinator.group.GroupCoordinatorService": "kafka_shim.group",
    "org.apache.kafka.server.FetchSessionCacheShard": "kafka_shim.api.fetch_sessions",
    "org.apache.kafka.server.quota.ClientQuotaManager": "kafka_shim.quota",
    "org.apache.kafka.server.quota.ClientQuotaManager$ThrottledChannelReaper": "kafka_shim.quota",
    "org.apache.kafka.storage.internals.log.Cleaner": "kafka_shim.storage.compaction",
    "org.apache.kafka.storage.internals.log.LogCleaner": "kafka_shim.storage.cleaner",
    "org.apache.kafka.storage.internals.log.LogLoader": "kafka_shim.storage.recovery",
    "org.apache.kafka.storage.internals.log.UnifiedLog": "kafka_shim.storage.log",
}
# Levels set by Kafka's names, in Log4j's words. Of this process, as are the levels of the modules.
_set_by_name: dict[str, str] = {}


def levels() -> dict[str, str]:
    """Returns the level of each logger by name, in Log4j's words."""
    own = [name for name in sorted(logging.root.manager.loggerDict) if _is_own(name)]
    return {name: _level(name) for name in (ROOT, *own, *KAFKA_NAMES)}


def _level(name: str) -> str:
    inherited = _inherited(name) if name in KAFKA_NAMES else None
    own = logging.getLogger(name if _is_own(name) else None)
    return inherited or _level_name(own.getEffectiveLevel())


def _inherited(name: str) -> str | None:
    while name:
        if name in _set_by_name:
            return _set_by_name[name]
        name = name.rpartition(".")[0]
    return None


def _is_own(name: str) -> bool:
    return name == "kafka_shim" or name.startswith("kafka_shim.")


def _level_name(level: int) -> str:
    """Returns the closest of Kafka's level names."""
    return next((name for name, number in reversed(LEVELS.items()) if level >= number and name != "TRACE"), "DEBUG")


def alter(node_id: int, name: str, changes: Sequence[tuple[str, int, str | None]], *, validate_only: bool) -> None:
    """Set levels of loggers. `changes` are (logger, operation, level). Raises KafkaError, and then changes none."""
    try:
        requested = node_id_of(name)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}") from None
    if requested != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {node_id}, but received {requested}")
    for logger, operation, level in changes:
        if operation not in (SET, DELETE):
            word = "APPEND" if operation == 2 else "SUBTRACT"
            reason = f"{word} operation is not allowed for the BROKER_LOGGER resource"
            raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
        if not _exists(logger):
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
            _tell_and_change(logger, (level or "").upper() if operation == SET else None)


def _exists(name: str) -> bool:
    return name == ROOT or name in KAFKA_NAMES or (_is_own(name) and name in logging.root.manager.loggerDict)


def _tell_and_change(name: str, level: str | None) -> None:
    """At WARN, as Kafka tells it, and where that is too low before the change, after it."""
    line = f"the level of logger {name} changes from {_level(name)} to {level or 'none of its own'}"
    is_heard = announcer.isEnabledFor(logging.WARNING)
    if is_heard:
        announcer.warning("%s", line)
    _change(name, level)
    if not is_heard:
        announcer.warning("%s", line)


def _change(name: str, level: str | None) -> None:
    module = KAFKA_NAMES.get(name)
    if module is not None:
        if level is None:
            _set_by_name.pop(name, None)
        else:
            _set_by_name[name] = level
    logger = logging.getLogger() if name == ROOT else logging.getLogger(module or name)
    logger.setLevel(logging.NOTSET if level is None else LEVELS[level])
