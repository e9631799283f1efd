"""All client quotas of a broker (Kafka: QuotaFactory.QuotaManagers)."""

from __future__ import annotations

import logging

from kafka_shim.host_names import HostNames
from kafka_shim.quota.client_quota_manager import ClientQuotaManager
from kafka_shim.quota.connection_quotas import ConnectionQuotas
from kafka_shim.quota.entities import IP, entity_of
from kafka_shim.quota.rate import Rate, TokenBucket
from kafka_shim.quota.request_throttle import RequestThrottle
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.turns import Steps

    # (type, name) of each part of an entity -> key -> value, as the metadata image holds them.
    Stored = Mapping[tuple[tuple[str, str | None], ...], Mapping[str, float]]
    Bounds = Mapping[str, Mapping[Any, float]]

logger = logging.getLogger("kafka_shim.quota")

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"


class Quotas:
    """The manager of each resource. `is_enabled` is False while no client has a quota: requests then do without."""

    __slots__ = (
        "_by_key",
        "clock",
        "connections",
        "controller_mutation",
        "fetch",
        "hosts",
        "is_enabled",
        "longest_request_throttle_ms",
        "produce",
        "request",
    )

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self.clock = clock
        windows = config.quota_window_num, config.quota_window_size_seconds
        self.produce = ClientQuotaManager(clock, Rate, *windows)
        self.fetch = ClientQuotaManager(clock, Rate, *windows)
        # In percent of one thread.
        self.request = ClientQuotaManager(clock, Rate, *windows)
        self.controller_mutation = ClientQuotaManager(
            clock, TokenBucket, config.controller_quota_window_num, config.controller_quota_window_size_seconds
        )
        self.connections = ConnectionQuotas(clock, *windows)
        # The addresses of the hosts that have a quota of connections.
        self.hosts = HostNames()
        # Kafka never throttles longer than one window for time of request threads.
        self.longest_request_throttle_ms = config.quota_window_size_seconds * 1000
        self.is_enabled = False
        self._by_key = {
            PRODUCER_BYTE_RATE: self.produce,
            CONSUMER_BYTE_RATE: self.fetch,
            REQUEST_PERCENTAGE: self.request,
            CONTROLLER_MUTATION_RATE: self.controller_mutation,
        }

    def throttle(self, principal: str, client_id: str | None, size_bytes: int) -> RequestThrottle:
        """Returns what counts one request, whose time begins now. `principal` is TYPE:NAME."""
        return RequestThrottle(self, principal, client_id, size_bytes)

    def set_quotas(self, stored: Stored) -> None:
        """Take over the quotas of the metadata image, at the start."""
        self.set_bounds(at_once(bounds_in_steps(stored, self.hosts)))

    async def look_up_hosts(self, stored: Stored) -> None:
        """Find the addresses of hosts with a quota, at the start."""
        named = {name: None for ((kind, name), *_) in stored if kind == IP and name is not None}
        if not named:
            return
        lost, _ = await self.hosts.look_up(named)
        if lost:
            logger.warning("no address is known of %s: its quota of connections holds for none", ", ".join(lost))
        self.set_quotas(stored)

    def set_bounds(self, bounds: Bounds) -> None:
        """Take over what `bounds_in_steps` made of the quotas of the metadata image."""
        for key, manager in self._by_key.items():
            manager.set_quotas(bounds.get(key, {}))
        self.connections.set_quotas(bounds.get(CONNECTION_CREATION_RATE, {}))
        self.is_enabled = any(bounds.get(key) for key in self._by_key)


def bounds_in_steps(stored: Stored, hosts: HostNames) -> Steps[Bounds]:
    """Returns by key the bound of each entity, or of each address. A directory may contain keys of another version."""
    bounds: dict[str, dict[Any, float]] = {}
    for parts, values in list(stored.items()):
        is_address = parts[0][0] == IP
        entity = _address(parts[0][1], hosts) if is_address else entity_of(parts)
        for key, value in values.items():
            if (key == CONNECTION_CREATION_RATE) is is_address:
                bounds.setdefault(key, {})[entity] = value
        yield
    return bounds


def _address(name: str | None, hosts: HostNames) -> str | None:
    return None if name is None else hosts.address_of(name)


def quotas_of(quotas: Quotas | None, config: BrokerConfig, clock: Clock, stored: Stored) -> Quotas | None:
    """Returns the quotas that hold what the metadata image stores: the given ones, or new ones if there are none yet.
    None if nothing is stored and nothing was: requests then pay nothing for quotas."""
    if quotas is None:
        if not stored:
            return None
        quotas = Quotas(config, clock)
    quotas.set_quotas(stored)
    return quotas
