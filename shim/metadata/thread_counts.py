"""The changes of numbers of threads that Kafka refuses. This broker has not these threads, and refuses the same, so
that no value is stored which Kafka would not take.

Sources: DynamicThreadPool, DataPlaneAcceptor, LogCleaner.validateReconfiguration and DynamicRemoteLogConfig of
Kafka 4.3.1.
"""

from __future__ import annotations

from kafka_shim.config import BROKER_OPTIONS, ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

CLEANER_THREADS = "log.cleaner.threads"
NETWORK_THREADS = "num.network.threads"
POOLS = ("num.io.threads", "num.replica.fetchers", "num.recovery.threads.per.data.dir", "background.threads")
REMOTE_POOLS = (
    "remote.log.reader.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
)
FOLLOWERS, FORMER_FOLLOWERS = "remote.log.manager.follower.thread.pool.size", "remote.log.manager.thread.pool.size"
_CLASS = "org.apache.kafka.common.config.ConfigException"


def check_thread_counts(static: Mapping[str, str], current: Mapping[str, str], proposed: Mapping[str, str]) -> None:
    """Raise ConfigError if the `proposed` dynamic options leave the range that is allowed from the `current` ones; both
    stand over the `static` ones."""
    if current == proposed:
        return
    before, after = ({**static, **dynamic} for dynamic in (current, proposed))
    reasons = [
        _pool(NETWORK_THREADS, _number(before, option, NETWORK_THREADS), _number(after, option, NETWORK_THREADS))
        for option in sorted({NETWORK_THREADS, *_of_listeners(before), *_of_listeners(after)})
    ]
    reasons += [_pool(name, _number(before, name), _number(after, name)) for name in POOLS]
    reasons.append(_cleaner(_number(before, CLEANER_THREADS), _number(after, CLEANER_THREADS)))
    reasons += [_pool(name, _number(before, name), _number(after, name)) for name in REMOTE_POOLS]
    current_count, count = _number(before, FOLLOWERS, FORMER_FOLLOWERS), _number(after, FOLLOWERS, FORMER_FOLLOWERS)
    reasons.append(_pool(FOLLOWERS, current_count, count))
    wrong = next(filter(None, reasons), None)
    if wrong is not None:
        raise ConfigError(f"Invalid value {_CLASS}: {wrong} for configuration Invalid dynamic configuration")


def _of_listeners(options: Mapping[str, str]) -> list[str]:
    return [name for name in options if name.startswith("listener.name.") and name.endswith(f".{NETWORK_THREADS}")]


def _number(options: Mapping[str, str], name: str, default: str = "") -> int:
    """The value of an option; of one that is not set, that of the option `default`, as the one for all listeners."""
    if name not in options and default:
        name = default
    return int(options.get(name) or BROKER_OPTIONS[name].default or 0)


def _cleaner(current: int, proposed: int) -> str:
    if proposed == current:
        return ""
    if proposed < 1:
        return "Log cleaner threads should be at least 1"
    if proposed < current // 2:
        return f"Log cleaner threads cannot be reduced to less than half the current value {current}"
    if proposed > current * 2:
        return f"Log cleaner threads cannot be increased to more than double the current value {current}"
    return ""


def _pool(name: str, current: int, proposed: int) -> str:
    head = f"Dynamic thread count update validation failed for {name}={proposed}, value should"
    if proposed == current:
        return ""
    if proposed < current // 2:
        return f"{head} be at least half the current value {current}"
    if proposed > current * 2:
        return f"{head} not be greater than double the current value {current}"
    return ""
