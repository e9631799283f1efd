"""What the answers to failed authentications have in common."""

from __future__ import annotations

from kafka_shim.waiters import pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.broker import Broker
    from kafka_shim.security.sasl.authenticator import Authenticator


async def hold_back_failure(broker: Broker, authenticator: Authenticator) -> None:
    """Wait as long as the answer to a failed authentication is held back, or until the broker stops. The connection
    handles nothing meanwhile."""
    if not broker.stopping:
        await pause(broker.clock, broker.parked, authenticator.failure_delay_ms)
