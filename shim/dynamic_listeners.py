"""Listeners that are opened and closed while the broker runs, as the stored option `listeners` changes (KIP-226).

Sources: DynamicListenerConfig, SocketServer.addListeners and removeListeners, KafkaConfig.validateValues and
AbstractKafkaConfig.listenerListToEndPoints of Kafka 4.3.1.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from copy import copy
from ipaddress import ip_address

from kafka_shim.config import CHECKS_ALL_LISTENERS, LISTENER_LIMITS, ConfigError, is_listener_security
from kafka_shim.listeners import SECURED, cannot_listen, has_name, listeners_of, printable
from kafka_shim.metadata.registration import SECURITY_PROTOCOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kafka_shim.broker import Broker
    from kafka_shim.config import BrokerConfig
    from kafka_shim.listeners import Address
    from kafka_shim.session import Listener

logger = logging.getLogger("kafka_shim.server")

LISTENERS, PROTOCOLS, ADVERTISED = "listeners", "listener.security.protocol.map", "advertised.listeners"
CONTROLLERS = "controller.listener.names"
# What Java parses as a port, which `listeners_of` bounds further.
MOST_PORT, MOST_DIGITS = 0x7FFFFFFF, 20
_ENDPOINT = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_CLASS = "org.apache.kafka.common.config.ConfigException"


class DynamicListeners:
    """Of one running broker, owned by its server. Event-loop thread only. The listeners that the broker starts with
    are not its concern until `listeners` is stored without them."""

    def __init__(
        self,
        broker: Broker,
        open_one: Callable[[Listener, Sequence[Address]], None],
        close_one: Callable[[Listener], None],
        opened_late: Callable[[], None],
    ) -> None:
        """`open_one` binds and serves a listener, on the first of these addresses if there are any, and raises OSError
        or ConfigError; `close_one` is its opposite. `opened_late` is called when one has been opened after `apply`."""
        self._broker = broker
        self._open = open_one
        self._close = close_one
        self._opened_late = opened_late
        # Listeners whose host is looked up, by name.
        self._looked_up: dict[str, asyncio.Task[None]] = {}

    def check(self, proposed: Mapping[str, str]) -> set[str]:
        """Return the names of the listeners that the broker has with the `proposed` dynamic options. Raise ConfigError
        with Kafka's words if the listeners cannot become those."""
        config = self._broker.config
        before, after = _with(config, config.dynamic), _with(config, proposed)
        is_of_listeners = _texts(before) != _texts(after)
        if is_of_listeners:
            _check_start(before, after)
        if is_of_listeners or any(_text(before, name) != _text(after, name) for name in CHECKS_ALL_LISTENERS):
            try:
                _check_change(before, after)
            except ConfigError as err:
                raise ConfigError(
                    f"Invalid value {_CLASS}: {err} for configuration Invalid dynamic configuration"
                ) from err
        wanted, _ = listeners_of(after)
        return {one.name for one in wanted}

    def apply(self, *, may_block: bool) -> None:
        """Close the listeners that the options in force do not have any more, and open the others. A listener stays as
        it is while its name does, whatever its address. One whose host is a name is opened when the system has found
        its address, which blocks the event loop only if it may. One that cannot be opened is logged, as by Kafka."""
        broker = self._broker
        try:
            wanted, _ = listeners_of(_with(broker.config, broker.config.dynamic))
        except ConfigError as err:
            logger.error("the stored listeners are not opened: %s", err)  # noqa: TRY400 an option, not a bug
            return
        names = {one.name for one in wanted}
        for listener in [one for one in broker.listeners if one.name not in names]:
            broker.listeners.remove(listener)
            self._close(listener)
            logger.info("closed the listener %s", printable(listener))
        for name in [name for name in self._looked_up if name not in names]:
            self._looked_up.pop(name).cancel()
        known = {one.name for one in broker.listeners} | self._looked_up.keys()
        for listener in (one for one in wanted if one.name not in known):
            if not may_block and has_name(listener):
                task = asyncio.get_running_loop().create_task(self._look_up(listener))
                self._looked_up[listener.name] = task
            else:
                self._open_logged(listener, ())

    def stop(self) -> None:
        """Open no listener any more whose host is being looked up."""
        for task in self._looked_up.values():
            task.cancel()
        self._looked_up.clear()

    async def _look_up(self, listener: Listener) -> None:
        """Find the addresses of the listener's host in a thread, and open it."""
        loop, clock = asyncio.get_running_loop(), self._broker.clock
        clock.begin_work()
        try:
            found = await loop.getaddrinfo(
                listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
        except (OSError, UnicodeError) as err:
            _log_unopened(listener, cannot_listen(listener, err))
        else:
            self._open_logged(listener, found)
            self._opened_late()
        finally:
            clock.end_work()
            if self._looked_up.get(listener.name) is asyncio.current_task():
                del self._looked_up[listener.name]

    def _open_logged(self, listener: Listener, addresses: Sequence[Address]) -> None:
        try:
            self._open(listener, addresses)
        except (OSError, ConfigError) as err:
            _log_unopened(listener, err)
        else:
            self._broker.listeners.append(listener)
            logger.info("opened the listener %s", printable(listener))


def _log_unopened(listener: Listener, err: Exception) -> None:
    why = err.strerror if isinstance(err, OSError) and err.filename is None else err
    logger.error("the listener %s is not opened: %s", listener.name, why or err)


def _with(config: BrokerConfig, dynamic: Mapping[str, str]) -> BrokerConfig:
    """The options of the start, with the two options that are dynamic here."""
    view = copy(config)
    view.dynamic = dict(dynamic)
    view.listeners = dynamic.get(LISTENERS, config.listeners)
    if PROTOCOLS in dynamic:
        view.listener_security_protocol_map = dynamic[PROTOCOLS]
        view.given = {**config.given, PROTOCOLS: dynamic[PROTOCOLS]}
    return view


def _texts(config: BrokerConfig) -> tuple[str, str]:
    return config.listeners, config.listener_security_protocol_map


def _text(config: BrokerConfig, name: str) -> str | None:
    return config.dynamic.get(name, config.given.get(name))


# --- what a broker does not start with


def _check_start(before: BrokerConfig, after: BrokerConfig) -> None:
    protocols = _protocols(after)
    hosts = {name: host for name, host, _ in _endpoints(after.listeners, protocols)}
    advertised = _advertised(after, protocols)
    controllers = set(after.controller_listener_names)
    if controllers and not controllers & set(hosts):
        raise _unmet(
            f"{CONTROLLERS} must contain at least one value appearing in the '{LISTENERS}' configuration when running "
            "the KRaft controller role"
        )
    if not controllers <= set(hosts):
        raise _unmet(
            f"{CONTROLLERS} must only contain values appearing in the '{LISTENERS}' configuration when running the "
            "KRaft controller role"
        )
    if not advertised:
        raise _unmet(
            f"There must be at least one broker advertised listener. Perhaps all listeners appear in {CONTROLLERS}?"
        )
    between = (after.inter_broker_listener_name or after.security_inter_broker_protocol).upper()
    if between not in advertised and between in _advertised(before, _protocols(before)):
        raise _unmet(
            f"inter.broker.listener.name must be a listener name defined in {ADVERTISED}. The valid options based on "
            f"currently configured listeners are {','.join(advertised)}"
        )
    if not set(advertised) <= set(hosts):
        raise _unmet(
            f"{ADVERTISED} listener names must be equal to or a subset of the ones defined in {LISTENERS}. Found "
            f"{','.join(advertised)}. The valid options based on the current configuration are {','.join(hosts)}"
        )
    known = {name for name, _, _ in _endpoints(before.listeners, _protocols(before))}
    if after.advertised_listeners is None and any(hosts[name] == "0.0.0.0" for name in set(advertised) - known):
        raise _unmet(f"{ADVERTISED} cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address.")


def _unmet(text: str) -> ConfigError:
    return ConfigError(f"requirement failed: {text}")


def _protocols(config: BrokerConfig) -> dict[str, str]:
    """Return the security protocol of each listener name."""
    found = {}
    # Blanks before a comma go afterwards: an expression that begins with them would read a long row of them many times.
    *entries, last = re.split(r",\s*", config.listener_security_protocol_map)
    for entry in filter(None, [*(one.rstrip() for one in entries), last]):
        name, colon, protocol = entry.rpartition(":")
        if not colon:
            # The words of Java's substring.
            reason = f"begin 0, end -1, length {len(entry)}"
            raise ConfigError(f"Error parsing configuration property '{PROTOCOLS}': {reason}")
        if protocol.strip().upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(f"Invalid security protocol `{protocol.strip()}` defined in {PROTOCOLS}")
        found[name.strip().upper()] = protocol.strip().upper()
    if PROTOCOLS not in config.given:
        _require_names(config.listeners)
        for name in config.controller_listener_names:
            found.setdefault(name, "PLAINTEXT")
    return found


def _require_names(listeners: str) -> None:
    """Raise ConfigError for an entry without a name. Kafka only looks for it where it may add to the default map of
    protocols, and as far as the first listener that does not allow that (effectiveListenerSecurityProtocolMap)."""
    for entry in listeners.split(","):
        name, colon, _ = entry.strip().partition(":")
        if not colon:
            raise ConfigError(f"Unable to parse a listener name from {name}")
        if name.upper() in SECURED:
            return


def _advertised(config: BrokerConfig, protocols: Mapping[str, str]) -> list[str]:
    """Return the names of the advertised listeners but the controller's."""
    text = config.listeners if config.advertised_listeners is None else config.advertised_listeners
    endpoints = _endpoints(text, protocols, is_bound=config.advertised_listeners is None)
    return [name for name, _, _ in endpoints if name not in config.controller_listener_names]


def _endpoints(text: str, protocols: Mapping[str, str], *, is_bound: bool = True) -> list[tuple[str, str, int]]:
    """Return (name, host, port) of each entry. Of two that are bound the ports or the families differ."""
    entries = [entry.strip() for entry in text.split(",")]
    if not text.strip():
        raise ConfigError(f"Configuration '{LISTENERS}' must not be empty. Valid values include: any non-empty value")
    shown = f"[{', '.join(entries)}]"
    try:
        found = [_endpoint(entry, protocols) for entry in entries]
        _check_names(found, shown)
        if is_bound:
            _check_ports(found, shown)
    except ConfigError as err:
        raise ConfigError(f"Error creating broker listeners from '{shown}': {err}") from err
    return found


def _endpoint(entry: str, protocols: Mapping[str, str]) -> tuple[str, str, int]:
    parts = _ENDPOINT.fullmatch(entry)
    if parts is None:
        raise ConfigError(f"Unable to parse {entry} to a broker endpoint")
    name = parts[1].upper()
    if not name:
        raise ConfigError("The provided listener name is null or empty string")
    # Python converts no number of thousands of digits.
    if len(parts[3]) > MOST_DIGITS or not -MOST_PORT <= int(parts[3]) <= MOST_PORT:
        raise ConfigError(f'For input string: "{parts[3]}"')
    if name not in protocols:
        raise ConfigError(f"No security protocol defined for listener {name}")
    return name, parts[2], int(parts[3])


def _check_names(endpoints: Sequence[tuple[str, str, int]], shown: str) -> None:
    if len({name for name, _, _ in endpoints}) < len(endpoints):
        raise ConfigError(f"Each listener must have a different name, listeners: {shown}")


def _check_ports(endpoints: Iterable[tuple[str, str, int]], shown: str) -> None:
    hosts: dict[int, list[str]] = {}
    for _, host, port in endpoints:
        if port:
            hosts.setdefault(port, []).append(host)
    for port, same in hosts.items():
        addresses = [host for host in same if _family(host)]
        if len(same) - len(addresses) > 1:
            raise ConfigError(f"Each listener must have a different port, listeners: {shown}")
        if len(addresses) > 2:
            raise ConfigError(
                "Each listener must have a different port unless exactly one listener has an IPv4 address and the "
                f"other IPv6 address, listeners: {shown}, port: {port}"
            )
        if len(addresses) == 2 and (len(same) > 2 or _family(addresses[0]) == _family(addresses[1])):
            raise ConfigError(
                "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, listeners: "
                f"{shown}, port: {port}"
            )


def _family(host: str) -> int:
    """4 or 6 for an address, 0 for a name."""
    try:
        return ip_address(host).version
    except ValueError:
        return 0


# --- what a running broker does not change


def _check_change(before: BrokerConfig, after: BrokerConfig) -> None:
    old, new = _protocols(before), _protocols(after)
    old_names, names = (
        [name for name, _, _ in _endpoints(one.listeners, all_)] for one, all_ in ((before, old), (after, new))
    )
    advertised = _advertised(before, old)
    if not set(advertised) <= set(names):
        raise ConfigError(f"Advertised listeners '{_set(advertised)}' must be a subset of listeners '{_set(names)}'")
    for name in (name for name in names if name in old_names):
        # Kafka looks at the options of the start alone here: a listener with a stored option of SASL lets none of
        # `CHECKS_ALL_LISTENERS` change until it goes or that option does.
        if _fixed(before, {}, name) != _fixed(after, after.dynamic, name):
            raise ConfigError(
                f"Configs cannot be updated dynamically for existing listener {_shown(name)}, restart broker or create "
                "a new listener for update"
            )
        if old[name] != new[name]:
            raise ConfigError(f"Security protocol cannot be updated for existing listener {_shown(name)}")


def _fixed(config: BrokerConfig, dynamic: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the options of one listener that do not change while it is open."""
    prefix = f"listener.name.{name.lower()}."
    return {
        option: text
        for option, text in {**config.given, **dynamic}.items()
        if option.startswith(prefix)
        and not is_listener_security(option.removeprefix(prefix))
        and option.removeprefix(prefix) not in LISTENER_LIMITS
    }


def _set(names: Iterable[str]) -> str:
    """Format listener names as Scala prints a set of them."""
    return f"Set({', '.join(_shown(name) for name in names)})"


def _shown(name: str) -> str:
    return f"ListenerName({name})"
