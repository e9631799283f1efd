"""The log of decisions: a denial at INFO, a permission at DEBUG, in the words of Kafka's `kafka.authorizer.logger`.

Only what a client asked for is logged, not what the broker asks on its own to fill in authorized operations or to
filter a list. A client can make thousands of denials a second: beyond `MAX_LINES_PER_SECOND` they are counted, and
one line says how many.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from kafka_shim.line_limit import LineLimit
from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.security.printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from kafka_shim.clock import Clock
    from kafka_shim.security.acl import AclOperation, Authorizer, ResourceType

logger = logging.getLogger("kafka_shim.authorizer")

MAX_LINES_PER_SECOND = 100
# Group ids and transactional ids may have 32,767 characters.
MAX_SHOWN = 256


class Asked(NamedTuple):
    """Who asked for which operation on resources of which type, by a request of which API."""

    api_key: int
    principal: str
    host: str
    operation: AclOperation
    resource_type: ResourceType


class AuditLog:
    """Owned by the broker. Event-loop thread only."""

    __slots__ = ("_authorizer", "_denials")

    def __init__(self, authorizer: Authorizer, clock: Clock) -> None:
        self._authorizer = authorizer
        self._denials = LineLimit(logger, clock, level=logging.INFO, period_ms=1000)

    def shows_allowed(self) -> bool:
        """Whether permissions are logged too."""
        return logger.isEnabledFor(logging.DEBUG)

    def note(self, asked: Asked, names: Collection[str], allowed: Collection[str], *, logs_denied: bool) -> None:
        """Log a decision about `names`, of which `allowed` are."""
        shows_allowed = self.shows_allowed()
        for name in names:
            if name in allowed:
                if shows_allowed:
                    logger.debug("%s", self._line(asked, name, "Allowed"))
            elif logs_denied and self._denials.has_room(MAX_LINES_PER_SECOND):
                logger.info("%s", self._line(asked, name, "Denied"))

    def _line(self, asked: Asked, name: str, verdict: str) -> str:
        api_key, principal, host, operation, resource_type = asked
        kind = "".join(word.capitalize() for word in resource_type.name.split("_"))
        line = (
            f"Principal = {printable(principal, MAX_SHOWN)} is {verdict} operation = {operation.name} "
            f"from host = {host} on resource = {kind}:LITERAL:{printable(name, MAX_SHOWN)} "
            f"for request = {API_KEYS[api_key][0]}"
        )
        rule = getattr(self._authorizer, "rule", None)
        if rule is None:
            return line
        return f"{line} based on rule {rule(principal, host, operation, resource_type, name)}"
